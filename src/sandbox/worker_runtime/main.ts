/**
 * First file of a guest's worker: receives the port, hardens the globals, links the module and serves the
 * host's calls.
 */
import { consoleMethods } from "../../sdk/console.ts";
import { installSdk, moduleOf } from "../../sdk/sdk_global.ts";
import { inputSchemaOf, methodOf } from "../../sdk/snake_case_aliases.ts";
import { isObject, type JsonObject, toPlain } from "../../sdk/json.ts";
import { bind, JSON, map, Object, push, Reflect, slice } from "../../sdk/primordials.ts";
import type { ChatRequest, ChatResponse, Message, Module, Prompt } from "../../sdk/types.ts";
import {
  INSTANCE_METHODS,
  type LoadAhead,
  LOADED,
  type MountAnswer,
  plainCall,
  type SessionDelta,
  type SessionSnapshot,
  type Shape,
  type ToGuest,
} from "../protocol.ts";
import { encodeError } from "../error_codec.ts";
import { GuestCoordinator } from "./coordinator_proxy.ts";
import { harden, hideOwnFrames } from "./harden.ts";
import { GuestObjects, shapeAt, shapeOf } from "./exported_objects.ts";
import { GuestRpc, type OpenCall, tooLarge } from "./rpc.ts";
import { type AnswerBounds, checkAnswerBounds } from "../../sdk/checks.ts";
import { toChatResponse } from "../../sdk/messages.ts";
import { withoutImages } from "../../sdk/result_content.ts";
import { unknownFields } from "../../sdk/returned_fields.ts";
import { isResult, toToolResult } from "../../sdk/tools.ts";

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
      const linked = moduleOf(await import(url) as Record<string, unknown>);
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

/**
 * Makes the console of this isolate write to the host's log: lines of the process log, never bytes on its
 * output.
 */
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

/** Serves a call of an object; resolves to plain data. */
async function serveCall(
  call: OpenCall,
  objects: GuestObjects,
  coordinator: GuestCoordinator,
): Promise<unknown> {
  const { point, object } = objects.get(call.ref);
  switch (point) {
    case "tools":
      return await serveTool(call, object);
    case "providers":
      return await serveProvider(call, object);
    case "context":
      return await serveContext(call, object, coordinator);
    case "orchestrator":
      return await serveOrchestrator(call, object, coordinator);
    default:
      return await serveFunction(call, object);
  }
}

/** Most characters that a call shows while it runs, and what a note takes besides its text. */
const MAX_OUTPUT_CHARS = 256 * 1024, NOTE_CHARS = 64;

/**
 * Serves a call of a tool. `checkInput` evaluates the tool's schema here, where a slow schema delays only its
 * own module.
 */
async function serveTool({ method, args, signal, note }: OpenCall, tool: object): Promise<unknown> {
  const input = args[0] as JsonObject; // messages of the host are well-formed
  if (method === "checkInput") {
    const { inputProblems } = await import("../../sdk/loop/tool_input_validation.ts");
    return await inputProblems({ input_schema: inputSchemaOf(tool) }, input);
  }
  if (method === "preview") return String(await methodOf(tool, "preview")!(input));
  const { id, session_id } = args[1] as { id: string; session_id: string };
  const progress = (text: string) => note(String(text));
  let room = MAX_OUTPUT_CHARS;
  const show = (written: string, stream?: string) => {
    const text = String(written);
    room -= text.length + NOTE_CHARS;
    if (room >= 0) note({ output: text, stream: String(stream) });
  };
  const context = { id, session_id, signal, progress, output: show };
  const returned = await methodOf(tool, "execute")!(input, context);
  const { success, output, error, content } = toToolResult(returned);
  const texts: JsonObject = { success, output, error };
  if (content) texts.content = withoutImages(content);
  const unknown = isResult(returned) ? unknownFields("tool result", returned) : [];
  for (let index = 0; index < unknown.length; index++) texts[unknown[index]!] = null; // for the host's warning
  const { length } = JSON.stringify(texts);
  const max_bytes = args[2] as number; // from the host
  if (length > max_bytes) throw tooLarge(length, max_bytes);
  return content ? { ...texts, content } : texts;
}

async function serveProvider({ method, args, signal, note }: OpenCall, provider: object): Promise<unknown> {
  if (method === "listModels") return toPlain(await methodOf(provider, "listModels")!());
  const request = args[0] as ChatRequest;
  const options = args[1] === true
    ? { signal, onDelta: (delta: unknown) => note(toPlain(delta)) }
    : { signal };
  const answer = await methodOf(provider, "complete")!(request, options);
  const bounds = args[2] as AnswerBounds; // from the host
  checkAnswerBounds(answer, bounds); // here, so that the host never reads an answer that is too large
  // an invalid answer is sent as it is: the guard in the host reports what is wrong
  if (typeof answer !== "string" && !isObject(answer)) return toPlain(answer);
  const parse = methodOf(provider, "parseToolCalls") as ((response: ChatResponse) => unknown) | undefined;
  const response = toChatResponse(answer, parse);
  checkAnswerBounds(response, bounds); // the provider may parse calls from its content
  const plain = toPlain(response) as JsonObject;
  if (response.tool_calls) plain.tool_calls = map(response.tool_calls, plainCall);
  return plain;
}

async function serveContext(
  { method, args }: OpenCall,
  context: object,
  coordinator: GuestCoordinator,
): Promise<unknown> {
  if (method === "setSystemPromptFactory") {
    const factory = args[0] === null ? null : () => coordinator.callBack(args[0] as string);
    return toPlain(methodOf(context, method)!(factory));
  }
  if (method === "getMessagesForRequest" && isObject(args[0])) {
    const { provider, ...options } = args[0];
    const found = typeof provider === "string" ? coordinator.providers[provider] : undefined;
    return toPlain(await methodOf(context, method)!(found ? { ...options, provider: found } : options));
  }
  return toPlain(await methodOf(context, method)!(...args as Message[])); // as in the contract
}

async function serveOrchestrator(
  { args }: OpenCall,
  orchestrator: object,
  coordinator: GuestCoordinator,
): Promise<unknown> {
  const { 0: prompt, 1: options } = args as [Prompt, JsonObject];
  const { providers, tools, hooks } = coordinator;
  const execute = methodOf(orchestrator, "execute")!;
  const execute_options = { ...options, coordinator };
  return toPlain(await execute(prompt, coordinator.conversation, providers, tools, hooks, execute_options));
}

/** Calls a function (method `""`) or a method of any other object. */
async function serveFunction({ method, args }: OpenCall, object: object): Promise<unknown> {
  const called = method === ""
    ? object as (...args: unknown[]) => unknown
    : methodOf(object, method) ?? symbolMethod(object, method);
  if (typeof called !== "function") throw new Error(`Cannot call ${method}: the object has no such method`);
  const value = await called(...args);
  return value === undefined ? undefined : toPlain(value);
}

function symbolMethod(object: object, method: string): ((...args: unknown[]) => unknown) | undefined {
  const symbol = method === "@@asyncDispose" ? Symbol.asyncDispose : Symbol.dispose;
  const found = Reflect.get(object, symbol);
  return typeof found === "function" ? bind(found, object) : undefined;
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

/**
 * Loads parts of the SDK and the validator of tool inputs, since the permission to read files may be revoked
 * later.
 */
async function loadAhead(parts: readonly string[]): Promise<void> {
  await Promise.all([
    installSdk(parts),
    import("../../sdk/loop/tool_input_validation.ts"),
    import("@cfworker/json-schema"),
  ]);
}
