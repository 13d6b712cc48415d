/**
 * Serves the requests of a guest through the session's guarded handles, so that limits, hooks, approvals and events apply to a
 * guest as to any other module (src/docs/architecture.md#guards).
 */
import { isObject, toPlain, toPlainObject } from "../../sdk/json.ts";
import type {
  ChatRequest,
  ContextManager,
  Coordinator,
  Emission,
  HookRegistry,
  Message,
  Provider,
  RequestOptions,
  Tool,
} from "../../sdk/types.ts";
import { errorMessage } from "../../sdk/errors.ts";
import { type NumberedEmission, plainCall } from "../protocol.ts";
import type { GuestRequestOptions } from "./open_requests.ts";

/** Options of {@link serveRequest}. */
export interface ServeOptions extends GuestRequestOptions {
  /** Emissions that the guest has received. */
  readonly emissions: EmissionTable;
}

/** The session for the requests of one call. */
export interface SessionHandles {
  readonly coordinator: Coordinator;
  /** Objects that serve the requests: the coordinator's own, or the arguments of an orchestrator. */
  readonly parts: Pick<Coordinator, "context" | "providers" | "tools" | "hooks">;
}

/** Number of emissions that are kept: more than a loop uses at once. */
const MAX_KEPT = 256;

/**
 * Emissions that one guest has received. The session identifies an emission by object identity, so a loop that processes a hook
 * result must name the original emission.
 */
export class EmissionTable {
  readonly #kept = new Map<number, Emission>();
  #next = 1;

  /** Adds an emission and returns it with its number. */
  add(emission: Emission): NumberedEmission {
    const number = this.#next++;
    this.#kept.set(number, emission);
    this.#kept.delete(number - MAX_KEPT);
    return { number, emission };
  }

  /** Returns the emission with this number after assigning the guest's fields, or a new one if the number is unknown. */
  resolve(number: unknown, fields: unknown): Emission {
    const changed = toPlainObject(fields);
    const kept = typeof number === "number" ? this.#kept.get(number) : undefined;
    return kept ? Object.assign(kept, changed) : changed as unknown as Emission; // parsed leniently when it is processed
  }
}

/** Serves one request. @throws {TypeError} if the target does not exist; the error of the called object. */
export async function serveRequest(
  handles: SessionHandles,
  target: string,
  method: string,
  args: readonly unknown[],
  options: ServeOptions,
): Promise<unknown> {
  const { coordinator, parts } = handles;
  const slash = target.indexOf("/");
  const name = slash < 0 ? "" : target.slice(slash + 1);
  switch (slash < 0 ? target : target.slice(0, slash)) {
    case "hooks":
      return await serveHooks(parts.hooks, method, args, options);
    case "context":
      return await serveContext(handles, method, args);
    case "provider":
      return await serveProvider(own(parts.providers, name, "provider"), method, args, options);
    case "tool":
      return await serveTool(own(parts.tools, name, "tool"), handles, args, options);
    case "coordinator":
      return await serveCoordinator(coordinator, method, args, options);
    case "capability":
      return await serveCapability(coordinator, method, args);
    case "clock":
      return await coordinator.clock.after(Math.max(0, Number(args[0]) || 0), options.signal);
    default:
      throw new TypeError(`Cannot call ${JSON.stringify(target)}: a session has no such object`);
  }
}

function own<T>(map: Record<string, T>, name: string, label: string): T {
  if (Object.hasOwn(map, name)) return map[name]!; // just checked
  throw new TypeError(`Cannot call ${label} "${name}": nothing is mounted under that name`);
}

function unknownMethod(target: string, method: string): TypeError {
  return new TypeError(`Cannot call ${target}.${method}: there is no such method`);
}

async function serveHooks(
  hooks: HookRegistry,
  method: string,
  args: readonly unknown[],
  { emissions }: ServeOptions,
): Promise<unknown> {
  const event = String(args[0]);
  const data = isObject(args[1]) ? args[1] : null;
  if (method === "emit") return emissions.add(await hooks.emit(event, data));
  if (method === "emitAndCollect") {
    return await hooks.emitAndCollect(event, data, typeof args[2] === "number" ? args[2] : undefined);
  }
  throw unknownMethod("hooks", method);
}

async function serveContext(
  { parts: { context, providers } }: SessionHandles,
  method: string,
  args: readonly unknown[],
): Promise<unknown> {
  if (!context) throw new TypeError("Cannot call the context manager: none is mounted");
  switch (method) {
    case "addMessage":
      return await context.addMessage(toPlainObject(args[0]) as unknown as Message); // checked by the guard
    case "getMessages":
      return await context.getMessages();
    case "setMessages":
      return await context.setMessages(toPlain(args[0]) as unknown as Message[]); // checked by the guard
    case "clear":
      return await context.clear();
    case "getMessagesForRequest": {
      const { provider, ...rest } = isObject(args[0]) ? args[0] : {};
      const options = rest as RequestOptions; // plain data of the contract's shape; the guard reads it
      if (typeof provider === "string") options.provider = own(providers, provider, "provider");
      return await context.getMessagesForRequest(options);
    }
    default:
      throw unknownMethod("context", method);
  }
}

async function serveProvider(
  provider: Provider,
  method: string,
  args: readonly unknown[],
  { signal, onPiece }: GuestRequestOptions,
): Promise<unknown> {
  if (method === "listModels") return toPlain(await provider.listModels());
  if (method !== "complete") throw unknownMethod("provider", method);
  const request = toPlainObject(args[0]) as unknown as ChatRequest; // checked by the guard
  const options = args[1] === true ? { signal, onDelta: onPiece } : { signal };
  const response = await provider.complete(request, options);
  const calls = response.tool_calls;
  return calls ? { ...response, tool_calls: calls.map(plainCall) } : response;
}

async function serveTool(
  tool: Tool,
  { coordinator }: SessionHandles,
  [input, call]: readonly unknown[],
  { signal, onPiece }: GuestRequestOptions,
): Promise<unknown> {
  const plain = toPlainObject(input);
  if (!isObject(call) || typeof call.id !== "string") return await tool.execute(plain);
  const { session_id } = coordinator;
  const progress = (text: string) => onPiece(String(text));
  return await tool.execute(plain, { id: call.id, signal, session_id, progress });
}

async function serveCoordinator(
  coordinator: Coordinator,
  method: string,
  args: readonly unknown[],
  { emissions }: ServeOptions,
): Promise<unknown> {
  switch (method) {
    case "unmount":
      return await coordinator.unmount(String(args[0]), typeof args[1] === "string" ? args[1] : undefined);
    case "collectContributions":
      return toPlain(await coordinator.collectContributions(String(args[0])));
    case "sessionStatus":
      return (await coordinator.sessionStatus()).toDict();
    case "processHookResult": {
      const emission = emissions.resolve(args[3], args[0]);
      const name = typeof args[2] === "string" ? args[2] : undefined;
      return await coordinator.processHookResult(emission, String(args[1]), name);
    }
    default:
      throw unknownMethod("coordinator", method);
  }
}

async function serveCapability(
  coordinator: Coordinator,
  method: string,
  [name, ...args]: readonly unknown[],
): Promise<unknown> {
  const value = coordinator.getCapability(String(name));
  const called = method === ""
    ? value
    : isObject(value) && Object.hasOwn(value, method)
    ? value[method]
    : null;
  if (typeof called !== "function") {
    throw new TypeError(
      `Cannot call capability "${String(name)}": it has no function ${JSON.stringify(method)}`,
    );
  }
  try {
    return toPlain(await called.apply(method === "" ? undefined : value, args));
  } catch (error) {
    throw error instanceof Error ? error : new Error(errorMessage(error));
  }
}
