/** Proxies of a guest's objects for the session: their data are copies, their methods send calls. */
import type { AnswerBounds } from "../../sdk/answer_bounds.ts";
import { isObject, type JsonObject, toPlain } from "../../sdk/json.ts";
import type {
  ChatRequest,
  ChatResponse,
  CompleteOptions,
  Coordinator,
  ExecuteOptions,
  HookHandler,
  HookRegistry,
  Message,
  Prompt,
  Provider,
  RequestOptions,
  Tool,
  ToolCallContext,
} from "../../sdk/types.ts";
import type { SessionHandles } from "./guest_requests.ts";
import type { Shape } from "../protocol.ts";

/** Calls one object of a guest. */
export interface ObjectCall {
  (method: string, args: readonly unknown[], options: ObjectCallOptions): Promise<unknown>;
}

/** Options of {@link ObjectCall}. */
export interface ObjectCallOptions {
  signal?: AbortSignal | undefined;
  grace_ms?: number;
  deadline_ms?: number | undefined;
  max_bytes: number;
  onNote?: ((value: unknown) => void) | undefined;
  /** Handles that serve the requests of the call. Default: those of the coordinator. */
  handles?: SessionHandles;
}

/** Limits of the calls of one guest. */
export interface CallBounds extends AnswerBounds {
  /** Most bytes of a tool's output (`isolation.max_tool_output_bytes`). */
  max_tool_output_bytes: number;
  /** Timeout of calls whose caller sets none, in milliseconds. */
  deadline_ms: number;
}

/** Most bytes of a model's answer or of a history. */
const MAX_LARGE_BYTES = 8 * 1024 * 1024;
/** Most bytes of a hook result or of a function's result. */
const MAX_SMALL_BYTES = 1024 * 1024;

/** Milliseconds that a tool has to end after its signal aborted, so that a call is over half a second after its deadline. */
const TOOL_GRACE_MS = 250;

/** Returns an object with the method if the guest's object has it. */
function method<T>(shape: Shape, name: string, call: T): Record<string, T> {
  return shape.methods.includes(name) ? { [name]: call } : {};
}

/** Returns the proxy of a tool. */
export function toolProxy(shape: Shape, call: ObjectCall, bounds: CallBounds): Tool {
  const { max_tool_output_bytes: max_bytes, deadline_ms } = bounds;
  return {
    ...shape.data,
    // schemas that may be slow are evaluated in the guest; others here, which saves a round trip for each call
    ...(isPlainSchema(shape.data.input_schema) ? {} : {
      checkInput: async (input: JsonObject) => {
        const found = await call("checkInput", [toPlain(input)], { max_bytes: MAX_SMALL_BYTES, deadline_ms });
        const are_texts = Array.isArray(found) && found.every((problem) => typeof problem === "string");
        return are_texts ? found : ["the tool rejected the input without a reason"];
      },
    }),
    ...method(shape, "execute", (input: JsonObject, context?: ToolCallContext) => {
      const { id = "", session_id = "", signal } = context ?? {};
      const onNote = (text: unknown) => {
        if (typeof text === "string") context?.progress(text);
      };
      const options = { signal, max_bytes, onNote, grace_ms: TOOL_GRACE_MS };
      return call("execute", [toPlain(input), { id, session_id }], options);
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

/** Returns the proxy of a context manager. `pass` publishes a function of the host and returns its name. */
export function contextProxy(
  shape: Shape,
  call: ObjectCall,
  bounds: CallBounds,
  { pass, nameOf, warn }: {
    pass(fn: () => unknown): string;
    nameOf(provider: Provider): string | undefined;
    warn(error: unknown): void;
  },
): object {
  const options = { max_bytes: MAX_LARGE_BYTES, deadline_ms: bounds.deadline_ms };
  const forward = (name: string) => (...args: unknown[]) => call(name, args.map(toPlain), options);
  return {
    ...method(shape, "addMessage", (message: Message) => forward("addMessage")(message)),
    ...method(shape, "getMessages", () => forward("getMessages")()),
    ...method(shape, "setMessages", (messages: Message[]) => forward("setMessages")(messages)),
    ...method(shape, "clear", () => forward("clear")()),
    ...method(shape, "getMessagesForRequest", ({ provider, ...rest }: RequestOptions = {}) => {
      const name = provider && nameOf(provider);
      return forward("getMessagesForRequest")(name === undefined ? rest : { ...rest, provider: name });
    }),
    ...method(shape, "setSystemPromptFactory", (factory: (() => unknown) | null) => {
      const name = typeof factory === "function" ? pass(factory) : null;
      call("setSystemPromptFactory", [name], options).catch(warn);
    }),
  };
}

/** Returns the proxy of an orchestrator. The arguments of `execute` serve its requests. */
export function orchestratorProxy(
  shape: Shape,
  call: ObjectCall,
  defaultCoordinator: () => Coordinator,
): object {
  return {
    ...(shape.data.resumable === true ? { resumable: true } : {}),
    ...method(shape, "execute", (
      prompt: Prompt,
      context: SessionHandles["context"],
      providers: Record<string, Provider>,
      tools: Record<string, Tool>,
      hooks: HookRegistry,
      options?: ExecuteOptions,
    ) => {
      const { coordinator = defaultCoordinator(), ...rest } = options ?? {};
      const handles = { coordinator, context, providers, tools, hooks };
      return call("execute", [toPlain(prompt), toPlain(rest)], {
        max_bytes: MAX_LARGE_BYTES,
        handles,
      });
    }),
  };
}

/** Returns the proxy of a hook handler. Wildcard handlers receive no deltas, since each would cost a message. */
export function handlerProxy(event: string, call: ObjectCall, timeout_ms: number): HookHandler {
  const is_wildcard = event.includes("*");
  return (name, data) => {
    if (is_wildcard && name.endsWith(":delta")) return null;
    const options = { max_bytes: MAX_SMALL_BYTES, deadline_ms: timeout_ms };
    return call("", [name, toPlain(data)], options) as Promise<JsonObject | null>; // parsed by the hook chain
  };
}

/** Returns the proxy of a function. */
export function functionProxy(
  call: ObjectCall,
  bounds: CallBounds,
): (...args: unknown[]) => Promise<unknown> {
  const options = { max_bytes: MAX_SMALL_BYTES, deadline_ms: bounds.deadline_ms };
  return (...args) => call("", args.map(toPlain), options);
}

/** Returns the proxy of any other object. */
export function objectProxy(shape: Shape, call: ObjectCall, bounds: CallBounds): object {
  const options = { max_bytes: MAX_SMALL_BYTES, deadline_ms: bounds.deadline_ms };
  const found: Record<string | symbol, unknown> = { ...(isObject(shape.data) ? shape.data : {}) };
  for (const name of shape.methods) {
    if (name === "then") continue; // a proxy must not be thenable
    const key = name === "@@asyncDispose"
      ? Symbol.asyncDispose
      : name === "@@dispose"
      ? Symbol.dispose
      : name;
    found[key] = (...args: unknown[]) => call(name, args.map(toPlain), options);
  }
  return found;
}

/** Keywords that are annotations or take constant time for each part of an input. */
const SIMPLE: ReadonlySet<string> = new Set([
  ...["$schema", "title", "description", "default", "examples", "deprecated"],
  ...["type", "enum", "const", "required", "additionalProperties"],
  ...["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"],
  ...["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"],
]);

/** Most parts of a schema that the host evaluates, and most values in one of its lists. */
const MAX_PARTS = 500;

/**
 * Returns whether the host may evaluate a schema of a guest: it has only keywords that look at each part of an input once.
 * Patterns, references and alternatives can take unlimited time and are evaluated in the guest.
 */
export function isPlainSchema(schema: unknown): boolean {
  const open = [schema];
  for (let part = 0; part < open.length; part++) {
    const subschema = open[part];
    if (typeof subschema === "boolean") continue;
    if (!isObject(subschema) || open.length > MAX_PARTS) return false;
    for (const [keyword, value] of Object.entries(subschema)) {
      if (keyword === "properties" && isObject(value)) open.push(...Object.values(value));
      else if (keyword === "items" || (keyword === "additionalProperties" && isObject(value))) {
        open.push(value);
      } else if (!SIMPLE.has(keyword) || (Array.isArray(value) && value.length > MAX_PARTS)) return false;
    }
  }
  return true;
}
