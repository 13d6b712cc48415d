/**
 * What the host answers when a guest asks: through the session's guarded handles, never past them. So ceilings, hooks, approvals
 * and events hold for a guest as for anybody (architecture.md, Guards).
 */
import { isObject, toPlain, toPlainObject } from "../../sdk/json.ts";
import type {
  ChatRequest,
  ContextManager,
  Coordinator,
  HookRegistry,
  Message,
  Provider,
  RequestOptions,
  Tool,
} from "../../sdk/types.ts";
import { errorMessage } from "../../sdk/errors.ts";
import type { EmissionTable } from "./emission_table.ts";
import type { GuestRequestOptions } from "./guest_connection.ts";
import { plainCall } from "../protocol.ts";

/** How a question of a module is answered. */
export interface ServeOptions extends GuestRequestOptions {
  /** What the module was told of events. */
  readonly emissions: EmissionTable;
}

/** What of the session is asked of: the coordinator's, or an orchestrator's arguments. */
export interface SessionHandles {
  readonly coordinator: Coordinator;
  readonly context: ContextManager | null;
  readonly providers: Record<string, Provider>;
  readonly tools: Record<string, Tool>;
  readonly hooks: HookRegistry;
}

/** Returns what a module finds around it when nobody gives it anything else. */
export function sessionHandles(coordinator: Coordinator): SessionHandles {
  return {
    coordinator,
    get context() {
      return coordinator.context;
    },
    get providers() {
      return coordinator.providers;
    },
    get tools() {
      return coordinator.tools;
    },
    hooks: coordinator.hooks,
  };
}

/** Answers one question. @throws {TypeError} when there is nobody to ask; else what was thrown by whoever was asked. */
export async function serveRequest(
  around: SessionHandles,
  target: string,
  method: string,
  args: readonly unknown[],
  options: ServeOptions,
): Promise<unknown> {
  const [kind, name = ""] = splitOnce(target);
  switch (kind) {
    case "hooks":
      return await serveHooks(around.hooks, method, args, options);
    case "context":
      return await serveContext(around, method, args);
    case "provider":
      return await serveProvider(own(around.providers, name, "provider"), method, args, options);
    case "tool":
      return await serveTool(own(around.tools, name, "tool"), around, args, options);
    case "coordinator":
      return await serveCoordinator(around.coordinator, method, args, options);
    case "capability":
      return await serveCapability(around.coordinator, method, args);
    case "clock":
      await around.coordinator.clock.after(Math.max(0, Number(args[0]) || 0), options.signal);
      return undefined;
    default:
      throw new TypeError(`Cannot ask ${JSON.stringify(target)}: there is no such thing in a session`);
  }
}

function splitOnce(target: string): [string, string?] {
  const slash = target.indexOf("/");
  return slash < 0 ? [target] : [target.slice(0, slash), target.slice(slash + 1)];
}

function own<T>(map: Record<string, T>, name: string, what: string): T {
  const found = Object.hasOwn(map, name) ? map[name] : undefined;
  if (found === undefined) {
    throw new TypeError(`Cannot call ${what} "${name}": none is mounted under that name`);
  }
  return found;
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
  around: SessionHandles,
  method: string,
  args: readonly unknown[],
): Promise<unknown> {
  const { context } = around;
  if (!context) throw new TypeError("Cannot call the context manager: none is mounted");
  switch (method) {
    case "addMessage":
      return await context.addMessage(toPlainObject(args[0]) as unknown as Message); // the guard reads it
    case "getMessages":
      return await context.getMessages();
    case "setMessages":
      return await context.setMessages(toPlain(args[0]) as unknown as Message[]); // the guard reads them
    case "clear":
      return await context.clear();
    case "getMessagesForRequest": {
      const { provider, ...rest } = isObject(args[0]) ? args[0] : {};
      const options = rest as RequestOptions; // plain data of the contract's shape; the guard reads it
      if (typeof provider === "string") options.provider = own(around.providers, provider, "provider");
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
  const request = toPlainObject(args[0]) as unknown as ChatRequest; // the guard reads it
  const response = await provider.complete(
    request,
    args[1] === true ? { signal, onDelta: (delta) => onPiece(delta) } : { signal },
  );
  const calls = response.tool_calls;
  return calls ? { ...response, tool_calls: calls.map(plainCall) } : response;
}

async function serveTool(
  tool: Tool,
  { coordinator }: SessionHandles,
  [input, call]: readonly unknown[],
  { signal, onPiece }: GuestRequestOptions,
): Promise<unknown> {
  const given = toPlainObject(input);
  if (!isObject(call) || typeof call.id !== "string") return await tool.execute(given);
  const { session_id } = coordinator;
  const progress = (text: string) => onPiece(String(text));
  return await tool.execute(given, { id: call.id, signal, session_id, progress });
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
