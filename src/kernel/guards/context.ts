/** The guard around a context manager: every write goes into the log; what tool calls still wait for an answer is known here. */
import { PreampError } from "../../sdk/errors.ts";
import { deepFreeze, isObject, toPlain, toPlainObject } from "../../sdk/json.ts";
import { methodOf, withSnakeCase } from "../../sdk/spelling.ts";
import type { ContextManager, JsonObject, Message, RequestOptions } from "../../sdk/types.ts";
import type { Core } from "../core.ts";
import type { Injections } from "../injections.ts";

type Method = (...args: unknown[]) => unknown;

/** The guarded handle of a context manager. */
export class ContextHandle implements ContextManager {
  readonly #core: Core;
  readonly #injections: Injections;
  readonly #inner: Record<
    "addMessage" | "getMessagesForRequest" | "getMessages" | "setMessages" | "clear",
    Method
  >;
  #count = 0;
  /** Calls of the last assistant message without a result yet: id → tool name. */
  #open = new Map<string, string>();

  constructor(core: Core, context: ContextManager, injections: Injections) {
    this.#core = core;
    this.#injections = injections;
    this.#inner = {
      addMessage: need(context, "addMessage"),
      getMessagesForRequest: need(context, "getMessagesForRequest"),
      getMessages: need(context, "getMessages"),
      setMessages: need(context, "setMessages"),
      clear: need(context, "clear"),
    };
  }

  /** Calls that wait for a result: id → tool name. */
  get open_calls(): ReadonlyMap<string, string> {
    return this.#open;
  }

  async addMessage(message: Message): Promise<void> {
    const begun = this.#core.beginTurn();
    if (begun) await begun;
    const plain = toMessage(message);
    await this.#inner.addMessage(toPlainObject(plain));
    await this.#note(plain);
    if (this.#open.size === 0) { for (const held of this.#injections.release()) await this.addMessage(held); }
  }

  #note(message: Message): Promise<void> | void {
    if (message.role === "tool" && message.tool_call_id !== undefined) {
      this.#open.delete(message.tool_call_id);
    }
    if (message.role === "assistant") this.#open = openCalls(message);
    return this.#core.write("context:message", { index: this.#count++, message: deepFreeze(message) });
  }

  async getMessagesForRequest(options: RequestOptions | number = {}): Promise<Message[]> {
    // R0 calls it with keyword arguments (an options object here); upstream's older form is (token_budget, provider)
    const given = typeof options === "number" ? { token_budget: options } : options;
    const view = await this.#inner.getMessagesForRequest(given);
    if (!Array.isArray(view)) {
      throw new PreampError(
        "module_invalid",
        `Cannot read the view of the context manager: must be an array: received ${typeof view}`,
      );
    }
    return view;
  }

  async getMessages(): Promise<Message[]> {
    const messages = await this.#inner.getMessages();
    return Array.isArray(messages) ? messages.map((message) => toPlain(message) as unknown as Message) : [];
  }

  async setMessages(messages: Message[]): Promise<void> {
    const plain = messages.map(toMessage);
    await this.load(plain);
    await this.#core.write("context:reset", { messages: plain });
  }

  /** Sets the history of a continued session: the log has it already. */
  async load(messages: readonly Message[]): Promise<void> {
    await this.#inner.setMessages(messages.map((message) => toPlainObject(message)));
    this.#count = messages.length;
    this.#open = new Map();
    for (const message of messages) {
      if (message.role === "assistant") this.#open = openCalls(message);
      else if (message.tool_call_id !== undefined) this.#open.delete(message.tool_call_id);
    }
  }

  async clear(): Promise<void> {
    await this.#inner.clear();
    this.#count = 0;
    this.#open = new Map();
    await this.#core.write("context:reset", { messages: [] });
  }

  /** Older modules ask; a view is compacted when it is made (C31). */
  should_compact(): boolean {
    return false;
  }

  /** Older modules call it; a view is compacted when it is made (C31). */
  compact(): Promise<void> {
    return Promise.resolve();
  }
}

withSnakeCase(ContextHandle);

function need(context: ContextManager, name: string): Method {
  const method = methodOf(context, name);
  if (!method) {
    throw new PreampError(
      "module_invalid",
      `Cannot use the context manager: it must have ${name}(): received none`,
    );
  }
  return method;
}

/** Returns any message in the canonical shape (behaviour.md §4.6): plain data, calls in both spellings. */
function toMessage(message: unknown): Message {
  const plain = toPlainObject(message) as unknown as Message & JsonObject;
  plain.role ??= "user";
  plain.content ??= "";
  return plain;
}

function openCalls(message: Message): Map<string, string> {
  const open = new Map<string, string>();
  if (Array.isArray(message.tool_calls)) {
    for (const call of message.tool_calls) {
      if (isObject(call)) open.set(String(call.id), String(call.name ?? call.tool));
    }
  } else if (Array.isArray(message.content)) {
    for (const block of message.content) {
      if (block.type === "tool_call") open.set(String(block.id), String(block.name));
    }
  }
  return open;
}
