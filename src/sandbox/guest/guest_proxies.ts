/** A guest's objects as the session holds them: their data as they were told, their methods as calls. */
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

/** How one object of a guest is called. */
export interface ObjectCall {
  (method: string, args: readonly unknown[], options: ObjectCallOptions): Promise<unknown>;
}

/** What a call of an object is bounded by. */
export interface ObjectCallOptions {
  signal?: AbortSignal | undefined;
  grace_ms?: number;
  deadline_ms?: number | undefined;
  max_bytes: number;
  onNote?: ((value: unknown) => void) | undefined;
  /** What it may ask of; default: the session as the coordinator has it. */
  handles?: SessionHandles;
}

/** Bounds of the calls of one guest. */
export interface CallBounds extends AnswerBounds {
  /** Output of a tool that is read (trust.md, Limits). */
  max_tool_output_bytes: number;
  /** Milliseconds a call may take whose caller sets no deadline of its own. */
  deadline_ms: number;
}

/** Bytes of a model's answer, of a history, of a loop's questions. */
const MAX_LARGE_BYTES = 8 * 1024 * 1024;
/** Bytes of a hook's answer, of a contribution, of what a function returns. */
const MAX_SMALL_BYTES = 1024 * 1024;

/** Milliseconds that a tool has to end after its signal aborted: with them a call is over half a second after its deadline. */
const TOOL_GRACE_MS = 250;

/** Returns an object with the method if the guest's object has it. */
function method<T>(shape: Shape, name: string, call: T): Record<string, T> {
  return shape.methods.includes(name) ? { [name]: call } : {};
}

/** Returns a guest's tool. */
export function toolProxy(shape: Shape, call: ObjectCall, bounds: CallBounds): Tool {
  const { max_tool_output_bytes: max_bytes, deadline_ms } = bounds;
  return {
    ...shape.data,
    // what may take for ever is evaluated in the guest; the rest here, which saves each call a way there and back
    ...(isPlainSchema(shape.data.input_schema) ? {} : {
      checkInput: async (input: JsonObject) => {
        const found = await call("checkInput", [toPlain(input)], { max_bytes: MAX_SMALL_BYTES, deadline_ms });
        const are_texts = Array.isArray(found) && found.every((one) => typeof one === "string");
        return are_texts ? found : ["the tool did not say what is wrong"];
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
  } as unknown as Tool; // the mount checks what it is
}

/** Returns a guest's provider. `data` is asked each time: it may be told anew. */
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
      // checked there already: an answer that is too much is never read here
      const args = [toPlain(request), onDelta !== undefined, { max_answer_tool_calls, max_answer_blocks }];
      return call("complete", args, { signal, onNote, max_bytes: MAX_LARGE_BYTES });
    }),
  } as unknown as Provider; // the mount checks what it is
}

function fieldOrThrow(data: JsonObject, field: string): unknown {
  const error = data[`${field}_error`];
  if (typeof error === "string") throw new Error(error);
  return data[field];
}

/** Returns a guest's context manager. `pass` gives a function of the host a name the guest may call it by. */
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
      const given = typeof factory === "function" ? pass(factory) : null;
      call("setSystemPromptFactory", [given], options).catch(warn);
    }),
  };
}

/** Returns a guest's orchestrator; `around` are its arguments, and all that it may ask of. */
export function orchestratorProxy(
  shape: Shape,
  call: ObjectCall,
  standard: () => Coordinator,
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
      const { coordinator = standard(), ...rest } = options ?? {};
      const around = { coordinator, context, providers, tools, hooks };
      return call("execute", [toPlain(prompt), toPlain(rest)], {
        max_bytes: MAX_LARGE_BYTES,
        handles: around,
      });
    }),
  };
}

/** Returns a guest's handler. Observers of everything are not told deltas: each would cost a message (modules.md). */
export function handlerProxy(event: string, call: ObjectCall, timeout_ms: number): HookHandler {
  const observes = event.includes("*");
  return (told, data) => {
    if (observes && told.endsWith(":delta")) return null;
    const options = { max_bytes: MAX_SMALL_BYTES, deadline_ms: timeout_ms };
    return call("", [told, toPlain(data)], options) as Promise<JsonObject | null>; // the chain reads it
  };
}

/** Returns a guest's function. */
export function functionProxy(
  call: ObjectCall,
  bounds: CallBounds,
): (...args: unknown[]) => Promise<unknown> {
  const options = { max_bytes: MAX_SMALL_BYTES, deadline_ms: bounds.deadline_ms };
  return (...args) => call("", args.map(toPlain), options);
}

/** Returns any other object of a guest. */
export function objectProxy(shape: Shape, call: ObjectCall, bounds: CallBounds): object {
  const options = { max_bytes: MAX_SMALL_BYTES, deadline_ms: bounds.deadline_ms };
  const found: Record<string | symbol, unknown> = { ...(isObject(shape.data) ? shape.data : {}) };
  for (const name of shape.methods) {
    if (name === "then") continue; // an object that is waited for must not choose when the waiting ends
    const key = name === "@@asyncDispose"
      ? Symbol.asyncDispose
      : name === "@@dispose"
      ? Symbol.dispose
      : name;
    found[key] = (...args: unknown[]) => call(name, args.map(toPlain), options);
  }
  return found;
}

/** Keywords whose value is compared with, or says nothing about the input. */
const SIMPLE: ReadonlySet<string> = new Set([
  ...["$schema", "title", "description", "default", "examples", "deprecated"],
  ...["type", "enum", "const", "required", "additionalProperties"],
  ...["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"],
  ...["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"],
]);

/** Parts of one schema, and values of one list: more is nobody's description of an input. */
const MAX_PARTS = 500;

/** Returns whether a schema is made of such keywords alone, all the way down. */
export function isPlainSchema(schema: unknown): boolean {
  const open = [schema];
  for (let part = 0; part < open.length; part++) {
    const one = open[part];
    if (typeof one === "boolean") continue;
    if (!isObject(one) || open.length > MAX_PARTS) return false;
    for (const [keyword, value] of Object.entries(one)) {
      if (keyword === "properties" && isObject(value)) open.push(...Object.values(value));
      else if (keyword === "items" || (keyword === "additionalProperties" && isObject(value))) {
        open.push(value);
      } else if (!SIMPLE.has(keyword) || (Array.isArray(value) && value.length > MAX_PARTS)) return false;
    }
  }
  return true;
}
