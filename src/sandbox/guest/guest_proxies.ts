/** Proxies of a guest's objects for the session: their data are copies, their methods send calls. */
import type { AnswerBounds } from "../../sdk/checks.ts";
import { isObject, type JsonObject, toPlain } from "../../sdk/json.ts";
import type {
  ChatRequest,
  ChatResponse,
  CompleteOptions,
  Coordinator,
  HookHandler,
  Orchestrator,
  Provider,
  RequestOptions,
  Tool,
  ToolCallContext,
} from "../../sdk/types.ts";
import type { GuestLimits, Shape } from "../protocol.ts";
import type { CallOptions } from "./guest_connection.ts";
import type { SessionHandles } from "./guest_requests.ts";

/** Calls one object of a guest. */
export interface ObjectCall {
  (method: string, args: readonly unknown[], options: ObjectCallOptions): Promise<unknown>;
}

/** Options of {@link ObjectCall}. */
export interface ObjectCallOptions extends Omit<CallOptions, "host"> {
  /** Handles that serve the requests of the call. Default: those of the coordinator. */
  readonly handles?: SessionHandles;
}

/** Most bytes of a model's answer or of a history. */
export const MAX_LARGE_BYTES = 8 * 1024 * 1024;
/** Most bytes of a hook result or of a function's result. */
const MAX_SMALL_BYTES = 1024 * 1024;

/** Most bytes of what a running tool writes for people, beside its result; the guest sends no more. */
const MAX_SHOWN_BYTES = 2 * 1024 * 1024;

/** Returns the options of calls whose caller sets no timeout. */
function untimed({ call_timeout_s }: GuestLimits, max_bytes: number): ObjectCallOptions {
  return { max_bytes, deadline_ms: call_timeout_s * 1000 };
}

/**
 * Milliseconds that a tool has to end after its signal aborted: a call is over half a second after its
 * deadline.
 */
const TOOL_GRACE_MS = 500;

/** Returns an object with the method if the guest's object has it. */
function method<T>(shape: Shape, name: string, call: T): Record<string, T> {
  return shape.methods.includes(name) ? { [name]: call } : {};
}

export function toolProxy(shape: Shape, call: ObjectCall, limits: GuestLimits): Tool {
  return {
    ...shape.data,
    // in the guest, where a slow schema delays only its own module
    checkInput: async (input: JsonObject) => {
      const found = await call("checkInput", [toPlain(input)], untimed(limits, MAX_SMALL_BYTES));
      const are_texts = Array.isArray(found) && found.every((problem) => typeof problem === "string");
      return are_texts ? found : ["the tool rejected the input without a reason"];
    },
    ...method(shape, "preview", async (input: JsonObject) => {
      return String(await call("preview", [toPlain(input)], untimed(limits, MAX_SMALL_BYTES)));
    }),
    ...method(shape, "execute", (input: JsonObject, context?: ToolCallContext) => {
      const { id = "", session_id = "", signal } = context ?? {};
      const onNote = (note: unknown) => {
        if (typeof note === "string") context?.progress(note);
        else if (isObject(note) && typeof note.output === "string") {
          context?.output?.(note.output, note.stream === "stderr" ? "stderr" : "stdout");
        }
      };
      const { max_tool_output_bytes, max_tool_image_bytes } = limits;
      const max_bytes = max_tool_output_bytes + max_tool_image_bytes + MAX_SHOWN_BYTES;
      const options = { signal, max_bytes, onNote, grace_ms: TOOL_GRACE_MS };
      return call("execute", [toPlain(input), { id, session_id }, max_tool_output_bytes], options);
    }),
  } as unknown as Tool; // checked by the mount
}

/** Returns the proxy of a provider. `data` returns its current data, which may change. */
export function providerProxy(
  shape: Shape,
  data: () => JsonObject,
  call: ObjectCall,
  { max_answer_tool_calls, max_answer_blocks }: AnswerBounds,
): Provider {
  const { name, priority } = shape.data;
  return {
    name,
    ...(priority === undefined ? {} : { priority }),
    ...method(shape, "getInfo", () => fieldOrThrow(data(), "info")),
    ...method(shape, "getModelInfo", () => fieldOrThrow(data(), "model_info")),
    ...method(shape, "listModels", () => call("listModels", [], { max_bytes: MAX_SMALL_BYTES })),
    ...method(shape, "parseToolCalls", (response: ChatResponse) => response.tool_calls ?? []),
    ...method(shape, "complete", (request: ChatRequest, options: CompleteOptions = {}) => {
      const { signal, onDelta } = options;
      const onNote = onDelta && ((delta: unknown) => onDelta(delta as Parameters<typeof onDelta>[0]));
      // checked in the guest, so that the host never reads an answer that is too large
      const args = [toPlain(request), onDelta !== undefined, { max_answer_tool_calls, max_answer_blocks }];
      return call("complete", args, { signal, onNote, max_bytes: MAX_LARGE_BYTES });
    }),
  } as unknown as Provider; // checked by the mount
}

function fieldOrThrow(data: JsonObject, field: string): unknown {
  const error = data[`${field}_error`];
  if (typeof error === "string") throw new Error(error);
  return data[field];
}

/** What the proxy of a context manager needs of its host. */
export interface ContextHost {
  /** Publishes a function for the guest and returns its name. */
  pass(fn: () => unknown): string;
  /** Returns the name of a provider. */
  nameOf(provider: Provider): string | undefined;
  /** Reports a system prompt that the guest did not receive. */
  warn(error: unknown): void;
}

/** Returns the proxy of a context manager. */
export function contextProxy(shape: Shape, call: ObjectCall, limits: GuestLimits, host: ContextHost): object {
  const options = untimed(limits, MAX_LARGE_BYTES);
  const forward = (name: string) => (...args: unknown[]) => call(name, args.map(toPlain), options);
  return {
    ...method(shape, "addMessage", forward("addMessage")),
    ...method(shape, "getMessages", forward("getMessages")),
    ...method(shape, "setMessages", forward("setMessages")),
    ...method(shape, "clear", forward("clear")),
    ...method(shape, "getMessagesForRequest", ({ provider, ...rest }: RequestOptions = {}) => {
      const name = provider && host.nameOf(provider);
      return forward("getMessagesForRequest")(name === undefined ? rest : { ...rest, provider: name });
    }),
    ...method(shape, "setSystemPromptFactory", (factory: (() => unknown) | null) => {
      const name = typeof factory === "function" ? host.pass(factory) : null;
      call("setSystemPromptFactory", [name], options).catch(host.warn);
    }),
  };
}

/** Returns the proxy of an orchestrator. The arguments of `execute` serve its requests. */
export function orchestratorProxy(shape: Shape, call: ObjectCall, own: () => Coordinator): object {
  const execute: Orchestrator["execute"] = (prompt, context, providers, tools, hooks, options) => {
    const { coordinator = own(), ...rest } = options ?? {};
    const handles = { coordinator, parts: { context, providers, tools, hooks } };
    const args = [toPlain(prompt), toPlain(rest)];
    return call("execute", args, { max_bytes: MAX_LARGE_BYTES, handles }) as Promise<string>; // checked by the session
  };
  return {
    ...(shape.data.resumable === true ? { resumable: true } : {}),
    ...method(shape, "execute", execute),
  };
}

/**
 * Returns the proxy of a hook handler. Wildcard handlers receive no deltas, since each would cost a message.
 */
export function handlerProxy(event: string, call: ObjectCall, timeout_ms: number): HookHandler {
  const is_wildcard = event.includes("*");
  return (name, data) => {
    if (is_wildcard && (name.endsWith(":delta") || name === "tool:output")) return null;
    const options = { max_bytes: MAX_SMALL_BYTES, deadline_ms: timeout_ms };
    return call("", [name, toPlain(data)], options) as Promise<JsonObject | null>; // parsed by the hook chain
  };
}

/** Returns the proxy of a method; `""` is the object itself, a function. */
export function functionProxy(
  call: ObjectCall,
  limits: GuestLimits,
  name = "",
): (...args: unknown[]) => Promise<unknown> {
  return (...args) => call(name, args.map(toPlain), untimed(limits, MAX_SMALL_BYTES));
}

/** Returns the proxy of any other object. */
export function objectProxy({ data, methods }: Shape, call: ObjectCall, limits: GuestLimits): object {
  const proxy: Record<string | symbol, unknown> = { ...data };
  for (const name of methods) {
    if (name === "then") continue; // a proxy must not be thenable
    proxy[SYMBOLS.get(name) ?? name] = functionProxy(call, limits, name);
  }
  return proxy;
}

/** Names of methods whose key is a symbol. */
const SYMBOLS: ReadonlyMap<string, symbol> = new Map([
  ["@@asyncDispose", Symbol.asyncDispose],
  ["@@dispose", Symbol.dispose],
]);
