/** The guard around a context manager: every write goes into the log; what tool calls still wait for an answer is known here. */
import { errorMessage, PreampError } from "../../sdk/errors.ts";
import { deepFreeze, isObject, toPlain, toPlainObject } from "../../sdk/json.ts";
import { methodOf, withSnakeCase } from "../../sdk/spelling.ts";
import type { ContextManager, JsonObject, Message, RequestOptions } from "../../sdk/types.ts";
import type { Core } from "../core.ts";
import type { Injections } from "../injections.ts";

type Method = (...args: unknown[]) => unknown;

/** What the guard needs of the session beside the core. */
export interface ContextDuties {
  /** Tells an answer that no `provider:response` has told. */
  tellResponse(): Promise<unknown> | void;
  /** Returns what a call is answered with that nobody answered. */
  closingText(id: string, name: string): string;
}

/** The guarded handle of a context manager. */
export class ContextHandle implements ContextManager {
  readonly #core: Core;
  readonly #injections: Injections;
  readonly #duties: ContextDuties;
  readonly #inner: Record<
    "addMessage" | "getMessagesForRequest" | "getMessages" | "setMessages" | "clear",
    Method
  >;
  readonly #setSystemPromptFactory: Method | undefined;
  #count = 0;
  /** Calls of the last assistant message without a result yet: id → tool name. */
  #open = new Map<string, string>();
  /** Calls of the last assistant message that have their result. */
  #answered = new Set<string>();

  constructor(core: Core, context: ContextManager, injections: Injections, duties: ContextDuties) {
    this.#core = core;
    this.#injections = injections;
    this.#duties = duties;
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

  /**
   * Appends a message. While calls wait for their results, what would come between them is kept until the last result is
   * there; a second result of one call is dropped: every call is answered once.
   */
  async addMessage(message: Message): Promise<void> {
    const begun = this.#core.beginTurn();
    if (begun) await begun;
    const plain = toMessage(message);
    if (plain.role === "assistant") await this.#duties.tellResponse();
    if (plain.role === "tool" && this.#answered.has(String(plain.tool_call_id))) {
      this.#core.host.warn("tool_result_dropped", `Call "${plain.tool_call_id}" was answered already`);
      return;
    }
    if (plain.role !== "tool" && this.#open.size > 0) {
      if (plain.role !== "assistant" || this.#isRunning()) return this.#injections.hold(plain);
      await this.closeCalls(); // the model was asked again: nobody will answer them any more
    }
    await this.#add(plain);
    if (this.#open.size === 0) await this.#release();
  }

  #isRunning(): boolean {
    const calls = this.#core.turn?.calls ?? [];
    return calls.some((call) =>
      this.#open.has(call.id) && call.started && call.settled === null && call.gate !== "denied"
    );
  }

  async #add(plain: Message): Promise<void> {
    await this.#inner.addMessage(toPlainObject(plain));
    await this.#note(plain);
  }

  async #release(): Promise<void> {
    for (const held of this.#injections.release()) await this.addMessage(held);
  }

  /** Answers every call that waits for a result. A context manager that refuses does not stop it: the log is the history. */
  async closeCalls(): Promise<void> {
    if (this.#open.size === 0) return;
    for (const [id, name] of [...this.#open]) {
      const message: Message = {
        role: "tool",
        tool_call_id: id,
        name,
        content: this.#duties.closingText(id, name),
      };
      try {
        await this.#inner.addMessage(toPlainObject(message));
      } catch (error) {
        this.#core.host.warn("context_failed", errorMessage(error));
      }
      await this.#note(message);
    }
    await this.#release();
  }

  #note(message: Message): Promise<void> | void {
    if (message.role === "tool" && message.tool_call_id !== undefined) {
      this.#open.delete(message.tool_call_id);
      this.#answered.add(message.tool_call_id);
    } else if (message.role === "assistant") this.#expect(message);
    return this.#core.write("context:message", { index: this.#count++, message: deepFreeze(message) });
  }

  #expect(message: Message): void {
    this.#open = openCalls(message);
    this.#answered = new Set();
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
      if (message.role === "assistant") this.#expect(message);
      else if (message.tool_call_id !== undefined) this.#open.delete(message.tool_call_id);
    }
  }

  async clear(): Promise<void> {
    await this.#inner.clear();
    this.#count = 0;
    this.#open = new Map();
    await this.#core.write("context:reset", { messages: [] });
  }

  /**
   * Sets who tells the system prompt of each request (behaviour.md §8.1). Does nothing when the context manager has no such
   * thing: it is optional.
   */
  setSystemPromptFactory(factory: unknown): void {
    this.#setSystemPromptFactory?.(factory);
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
  const { content } = plain;
  if (typeof content !== "string" && !Array.isArray(content)) {
    plain.content = content === undefined || content === null ? "" : JSON.stringify(content);
  }
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
      if (isObject(block) && (block.type === "tool_call" || block.type === "tool_use")) {
        open.set(String(block.id), String(block.name));
      }
    }
  }
  return open;
}
