/**
 * First file of a guest's worker: receives the port, hardens the globals, links the module and serves the host's calls. Used in
 * both tiers: in a worker of the server, and in the worker of a child process.
 */
import { consoleMethods } from "../../sdk/console.ts";
import { installSdk } from "../../sdk/sdk_global.ts";
import { methodOf } from "../../sdk/snake_case_aliases.ts";
import { isObject, type JsonObject, toPlain } from "../../sdk/json.ts";
import { JSON, Object, push, Reflect, slice } from "../../sdk/primordials.ts";
import type { Module } from "../../sdk/types.ts";
import {
  INSTANCE_METHODS,
  type LoadAhead,
  LOADED,
  type MountAnswer,
  type SessionDelta,
  type SessionSnapshot,
  type Shape,
  type ToGuest,
} from "../protocol.ts";
import { encodeError } from "../error_codec.ts";
import { GuestCoordinator } from "./coordinator_proxy.ts";
import { harden, hideOwnFrames } from "./harden.ts";
import { GuestObjects, shapeAt, shapeOf } from "./exported_objects.ts";
import { serveCall } from "./serve_call.ts";
import { GuestRpc, type OpenCall } from "./rpc.ts";

/** Serves one module over a port. */
class WorkerRuntime {
  readonly #rpc: GuestRpc;
  readonly #objects = new GuestObjects();
  #module: Module | undefined;
  #coordinator: GuestCoordinator | undefined;
  #view: SessionDelta | undefined;

  constructor(post: (text: string) => void) {
    this.#rpc = new GuestRpc(post, {
      serve: (call) => this.#serve(call),
      view: (view) => {
        this.#view = view;
        this.#coordinator?.update(view);
      },
      cancellation: (state) => this.#coordinator?.cancel(state),
    });
  }

  take(text: string): void {
    const message = JSON.parse(text) as ToGuest; // from the host
    if (message.t === "start") void this.#start(message.code, message.uses);
    else this.#rpc.take(message);
  }

  /** Hardens the globals and links the module, which runs its top level. */
  async #start(code: string, uses: readonly string[]): Promise<void> {
    try {
      await installSdk(uses);
      redirectConsole(this.#rpc);
      reportUncaught(this.#rpc);
      const url = `data:text/javascript;charset=utf-8;base64,${new TextEncoder().encode(code).toBase64()}`;
      harden();
      hideOwnFrames();
      const linked = await import(url) as Record<string, unknown>;
      this.#module = linked as unknown as Module; // checked by the mount
      this.#rpc.sendStartResult({ t: "ready", exports: shapeOf({ ...linked }) });
    } catch (error) {
      this.#rpc.sendStartResult({ t: "failed", error: encodeError(error) });
    }
  }

  async #serve(call: OpenCall): Promise<unknown> {
    if (call.ref !== 0) return await serveCall(call, this.#objects, this.#coordinator!); // the host calls mount first
    if (call.method === "mount") return await this.#mount(call.args);
    await methodOf(this.#module, "onSessionReady")?.(this.#coordinator);
    return this.#objects.shapes();
  }

  async #mount(args: readonly unknown[]): Promise<MountAnswer> {
    const { 0: config, 1: snapshot, 2: point } = args as [JsonObject, SessionSnapshot, string]; // from the host
    const view = this.#view!; // sent with the call
    const coordinator = this.#coordinator = new GuestCoordinator(this.#rpc, this.#objects, snapshot, view);
    const returned = await methodOf(this.#module, "mount")!(coordinator, config);
    return this.#answerOf(returned, point);
  }

  #answerOf(returned: unknown, point: string): MountAnswer {
    if (returned === undefined || returned === null) return { kind: "nothing" };
    if (typeof returned === "function") return { kind: "function", ref: this.#objects.add(returned) };
    if (!isObject(returned)) return { kind: "other", value: toPlain(returned) };
    const methods = Object.hasOwn(INSTANCE_METHODS, point) ? INSTANCE_METHODS[point]! : [];
    const rest_shape = withDisposers(returned);
    if (!hasAll(returned, methods)) {
      return { kind: "object", ref: this.#objects.add(returned), shape: rest_shape };
    }
    const rest = this.#objects.add(returned); // the same object with its other methods
    const shape = shapeAt(point, returned);
    return { kind: "instance", ref: this.#objects.add(returned, point), shape, rest, rest_shape };
  }
}

function hasAll(object: object, methods: readonly string[]): boolean {
  for (let at = 0; at < methods.length; at++) if (!methodOf(object, methods[at]!)) return false;
  return methods.length > 0;
}

function withDisposers(object: object): Shape {
  const { data, methods } = shapeOf(object);
  const names = slice(methods, 0);
  const has = (symbol: symbol) => typeof Reflect.get(object, symbol) === "function";
  if (has(Symbol.asyncDispose)) push(names, "@@asyncDispose");
  if (has(Symbol.dispose)) push(names, "@@dispose");
  return { data, methods: names };
}

/** Makes the console of this isolate write to the host's log: lines of the process log, never bytes on its output. */
function redirectConsole(rpc: GuestRpc): void {
  const { inspect } = Deno;
  Object.assign(console, consoleMethods((level, text) => rpc.log(level, text), (value) => inspect(value)));
}

/** Logs uncaught errors and rejections instead of ending the worker, so that open calls continue. */
function reportUncaught(rpc: GuestRpc): void {
  const report = (event: Event, kind: string, thrown: unknown) => {
    event.preventDefault();
    const { name, message } = encodeError(thrown);
    rpc.log("error", `${kind} ${name}: ${message}`);
  };
  addEventListener("error", (event) => report(event, "Uncaught", event.error));
  addEventListener("unhandledrejection", (event) => report(event, "Unhandled rejection:", event.reason));
}

// the port is a local variable: modules must not reach it through globals
addEventListener("message", (event) => {
  const { port } = (event as MessageEvent<{ port: MessagePort }>).data;
  const post = port.postMessage.bind(port);
  const runtime = new WorkerRuntime((text) => post(text));
  port.onmessage = ({ data }: MessageEvent<string | LoadAhead>) => {
    if (typeof data === "string") runtime.take(data);
    else void answerLoaded(data.parts);
  };
  const answerLoaded = async (parts: readonly string[]) => {
    await loadAhead(parts);
    post(LOADED);
  };
  post(LOADED);
}, { once: true });

let loaded_once = false;

/** Loads parts of the SDK and the validator of tool inputs, since the permission to read files may be revoked later. */
async function loadAhead(parts: readonly string[]): Promise<void> {
  if (loaded_once && parts.length === 0) return; // a later call only checks whether this worker still answers
  loaded_once = true;
  await Promise.all([
    installSdk(parts),
    import("../../sdk/loop/tool_input_validation.ts"),
    import("@cfworker/json-schema"),
  ]);
}
