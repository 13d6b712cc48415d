/**
 * Serves the requests of a guest through the session's guarded handles, so that limits, hooks, approvals and
 * events apply to a guest as to any other module (src/docs/architecture.md#guards).
 */
import { outsideOfCalls } from "../../sdk/request_ids.ts";
import { isObject, toPlain, toPlainObject } from "../../sdk/json.ts";
import type {
  ChatRequest,
  CompleteOptions,
  Coordinator,
  Emission,
  HookRegistry,
  Message,
  Provider,
  RequestOptions,
  Tool,
} from "../../sdk/types.ts";
import { errorMessage } from "../../sdk/errors.ts";
import { parseToolCall } from "../../sdk/tools.ts";
import { type NumberedEmission, plainCall } from "../protocol.ts";
import type { GuestRequest } from "./open_requests.ts";

/** The session for the requests of one call. */
export interface SessionHandles {
  readonly coordinator: Coordinator;
  /** Objects that serve the requests: the coordinator's own, or the arguments of an orchestrator. */
  readonly parts: Pick<Coordinator, "context" | "providers" | "tools" | "hooks">;
}

/** Number of emissions that are kept: more than a loop uses at once. */
const MAX_KEPT = 256;

/**
 * Emissions that one guest has received. The session identifies an emission by object identity, so a loop
 * that processes a hook result must name the original emission.
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

  /**
   * Returns the emission with this number after assigning the guest's fields, or a new one if the number is
   * unknown.
   */
  resolve(number: unknown, fields: unknown): Emission {
    const changed = toPlainObject(fields);
    const kept = typeof number === "number" ? this.#kept.get(number) : undefined;
    return kept ? Object.assign(kept, changed) : changed as unknown as Emission; // parsed leniently when it is processed
  }
}

/**
 * Serves one request. `callBack` calls a function that the guest passed by its ref.
 * @throws {TypeError} if the target does not exist; the error of the called object. */
export async function serveRequest(
  handles: SessionHandles,
  request: GuestRequest,
  emissions: EmissionTable,
  callBack: (ref: number, args: readonly unknown[]) => Promise<unknown>,
): Promise<unknown> {
  const { coordinator, parts } = handles;
  const { target, args, signal } = request;
  const slash = target.indexOf("/");
  const name = slash < 0 ? "" : target.slice(slash + 1);
  switch (slash < 0 ? target : target.slice(0, slash)) {
    case "hooks":
      return await serveHooks(parts.hooks, request, emissions);
    case "context":
      return await serveContext(parts, request);
    case "provider":
      return await serveProvider(own(parts.providers, name, "provider"), request, callBack);
    case "tool":
      return await serveTool(own(parts.tools, name, "tool"), coordinator, request);
    case "coordinator":
      return await serveCoordinator(coordinator, request, emissions);
    case "capability":
      return await serveCapability(coordinator, request);
    case "clock":
      return await coordinator.clock.after(Math.max(0, Number(args[0]) || 0), signal);
    default:
      throw new TypeError(`Cannot call ${JSON.stringify(target)}: a session has no such object`);
  }
}

function own<T>(map: Record<string, T>, name: string, label: string): T {
  if (Object.hasOwn(map, name)) return map[name]!; // just checked
  throw new TypeError(`Cannot call ${label} "${name}": nothing is mounted under that name`);
}

function unknownMethod({ target, method }: GuestRequest): TypeError {
  return new TypeError(`Cannot call ${target}.${method}: there is no such method`);
}

async function serveHooks(
  hooks: HookRegistry,
  request: GuestRequest,
  emissions: EmissionTable,
): Promise<unknown> {
  const { method, args } = request;
  const event = args[0] as string; // checked by the registry
  const data = isObject(args[1]) ? args[1] : null;
  if (method === "emit") return emissions.add(await outsideOfCalls(() => hooks.emit(event, data)));
  if (method !== "emitAndCollect") throw unknownMethod(request);
  return await hooks.emitAndCollect(event, data, typeof args[2] === "number" ? args[2] : undefined);
}

async function serveContext(
  { context, providers }: SessionHandles["parts"],
  request: GuestRequest,
): Promise<unknown> {
  if (!context) throw new TypeError("Cannot call the context manager: none is mounted");
  const { method, args: [arg] } = request;
  switch (method) {
    case "addMessage":
      return await context.addMessage(toPlainObject(arg) as unknown as Message); // checked by the guard
    case "getMessages":
      return await context.getMessages();
    case "setMessages":
      return await context.setMessages(toPlain(arg) as unknown as Message[]); // checked by the guard
    case "clear":
      return await context.clear();
    case "getMessagesForRequest": {
      const { provider, ...rest } = isObject(arg) ? arg : {};
      const options = rest as RequestOptions; // plain data of the contract's shape; the guard reads it
      if (typeof provider === "string") options.provider = own(providers, provider, "provider");
      return await context.getMessagesForRequest(options);
    }
    default:
      throw unknownMethod(request);
  }
}

async function serveProvider(
  provider: Provider,
  request: GuestRequest,
  callBack: (ref: number, args: readonly unknown[]) => Promise<unknown>,
): Promise<unknown> {
  const { method, args, signal, onPiece } = request;
  if (method === "listModels") return toPlain(await provider.listModels());
  if (method !== "complete") throw unknownMethod(request);
  const asked = toPlainObject(args[0]) as unknown as ChatRequest; // checked by the guard
  const { max_retries, shorten } = isObject(args[2]) ? args[2] : {};
  const options: CompleteOptions = { signal };
  if (args[1] === true) options.onDelta = onPiece;
  if (typeof max_retries === "number") options.max_retries = max_retries;
  if (typeof shorten === "number") {
    options.shorten = async (overflow) =>
      toPlainObject(await callBack(shorten, [overflow])) as unknown as ChatRequest; // checked by the guard
  }
  const response = await provider.complete(asked, options);
  const calls = response.tool_calls;
  return calls ? { ...response, tool_calls: calls.map(plainCall) } : response;
}

async function serveTool(
  tool: Tool,
  { session_id }: Coordinator,
  { args: [input, call], signal, onPiece }: GuestRequest,
): Promise<unknown> {
  const plain = toPlainObject(input);
  if (!isObject(call) || typeof call.id !== "string") return await tool.execute(plain);
  const progress = (text: string) => onPiece(String(text));
  return await tool.execute(plain, { id: call.id, signal, session_id, progress });
}

async function serveCoordinator(
  coordinator: Coordinator,
  request: GuestRequest,
  emissions: EmissionTable,
): Promise<unknown> {
  const { method, args } = request;
  switch (method) {
    case "unmount":
      return await coordinator.unmount(String(args[0]), textOf(args[1]));
    case "collectContributions":
      return toPlain(await coordinator.collectContributions(String(args[0])));
    case "sessionStatus":
      return (await coordinator.sessionStatus()).toDict();
    case "callTool":
      return toPlain(await coordinator.callTool(parseToolCall(args[0]), toPlainObject(args[1])));
    case "processHookResult": {
      const emission = emissions.resolve(args[3], args[0]);
      return await coordinator.processHookResult(emission, String(args[1]), textOf(args[2]));
    }
    default:
      throw unknownMethod(request);
  }
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

async function serveCapability(
  coordinator: Coordinator,
  { method, args: [name, ...args] }: GuestRequest,
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
