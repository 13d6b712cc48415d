/** The guard around a context manager: every write goes into the log; what tool calls still wait for an answer is known here. */
import { errorMessage, PreampError } from "../../sdk/errors.ts";
import { deepFreeze, toPlain, toPlainObject } from "../../sdk/json.ts";
import { methodOf, withSnakeCase } from "../../sdk/snake_case_aliases.ts";
import type { ContextManager, JsonObject, Message, RequestOptions } from "../../sdk/types.ts";
import type { SessionContext } from "../session/session_context.ts";
import type { Injections } from "../hooks/injections.ts";
import { PendingCalls } from "./pending_calls.ts";

type Method = (...args: unknown[]) => unknown;

/** What the guard needs of the session beside the session. */
export interface ContextGuardDeps {
  /** Tells an answer that no `provider:response` has told. */
  emitResponse(): Promise<unknown> | void;
  /** Returns what a call is answered with that nobody answered. */
  resultTextFor(id: string, name: string): string;
}

/** The guarded handle of a context manager. */
export class ContextGuard implements ContextManager {
  readonly #session: SessionContext;
  readonly #injections: Injections;
  readonly #deps: ContextGuardDeps;
  readonly #inner: Record<
    "addMessage" | "getMessagesForRequest" | "getMessages" | "setMessages" | "clear",
    Method
  >;
  readonly #takes_frozen: boolean;
  readonly #setSystemPromptFactory: Method | undefined;
  #count = 0;
  readonly #calls = new PendingCalls();

  constructor(
    session: SessionContext,
    context: ContextManager,
    injections: Injections,
    duties: ContextGuardDeps,
  ) {
    this.#session = session;
    this.#injections = injections;
    this.#deps = duties;
    this.#takes_frozen = context.takes_frozen === true;
    this.#setSystemPromptFactory = methodOf(context, "setSystemPromptFactory");
    this.#inner = {
      addMessage: requireMethod(context, "addMessage"),
      getMessagesForRequest: requireMethod(context, "getMessagesForRequest"),
      getMessages: requireMethod(context, "getMessages"),
      setMessages: requireMethod(context, "setMessages"),
      clear: requireMethod(context, "clear"),
    };
  }

  /** Whether tool calls wait for their results. */
  get has_open_calls(): boolean {
    return this.#calls.any;
  }

  /**
   * Appends a message. While calls wait for their results, what would come between them is kept until the last result is
   * there; results are stored in call order, and a second one of the same call is dropped.
   */
  async addMessage(message: Message): Promise<void> {
    const begun = this.#session.beginTurn();
    if (begun) await begun;
    const plain = toMessage(message);
    if (plain.role === "tool") return await this.#addResult(plain);
    const untold = plain.role === "assistant" ? this.#deps.emitResponse() : undefined;
    if (untold) await untold;
    if (this.#calls.any) {
      if (plain.role !== "assistant" || this.#isRunning()) return this.#injections.defer(plain);
      await this.closeCalls(); // the model was asked again: nobody will answer them any more
    }
    await this.#store(plain); // as in #add, which would be one more promise for each message
    const stored = this.#log(plain);
    if (stored) await stored;
    if (plain.role === "assistant") this.#calls.expect(plain);
  }

  async #addResult(plain: Message): Promise<void> {
    const id = String(plain.tool_call_id);
    if (this.#calls.isAnswered(id)) {
      return this.#session.host.warn("tool_result_dropped", `Call "${id}" was answered already`);
    }
    if (!this.#calls.has(id)) await this.#add(plain); // an answer to nothing that we know: the context's own affair
    else {
      const [refusal] = await this.#addResults(this.#calls.addResult(id, plain));
      if (refusal) throw refusal.error;
    }
    if (!this.#calls.any && this.#injections.has_deferred) await this.#addDeferred();
  }

  /** Stores results; returns what the context manager refused. The log has them all the same: it is the history. */
  async #addResults(results: readonly Message[]): Promise<{ error: unknown }[]> {
    const refusals: { error: unknown }[] = [];
    for (const result of results) {
      try {
        await this.#store(result);
      } catch (error) {
        refusals.push({ error });
      }
      const stored = this.#log(result);
      if (stored) await stored;
    }
    return refusals;
  }

  #isRunning(): boolean {
    const calls = this.#session.turn?.calls ?? [];
    return calls.some((call) =>
      this.#calls.has(call.id) && call.started && call.settled === null && call.gate !== "denied"
    );
  }

  async #add(plain: Message): Promise<void> {
    await this.#store(plain);
    const stored = this.#log(plain);
    if (stored) await stored;
  }

  #store(message: Message): unknown {
    return this.#inner.addMessage(this.#takes_frozen ? deepFreeze(message) : toPlainObject(message));
  }

  #log(message: Message): Promise<void> | void {
    return this.#session.write("context:message", { index: this.#count++, message: deepFreeze(message) });
  }

  async #addDeferred(): Promise<void> {
    for (const held of this.#injections.takeDeferred()) await this.addMessage(held);
  }

  /** Answers every call that waits for a result, whatever the context manager says to it. */
  async closeCalls(): Promise<void> {
    if (!this.#calls.any) return;
    const results = this.#calls.closeAll((id, name) => this.#deps.resultTextFor(id, name));
    for (const { error } of await this.#addResults(results)) {
      this.#session.host.warn("context_failed", errorMessage(error));
    }
    await this.#addDeferred();
  }

  /** The handle as the orchestrator has it: asking for a view says that it is done with the calls of the last answer. */
  forLoop(): ContextManager {
    return new LoopContext(this);
  }

  /** The view of a loop that is done with the calls of the last answer. */
  getMessagesForLoop(options?: RequestOptions): Promise<Message[]> {
    if (!this.#calls.any || this.#isRunning()) return this.getMessagesForRequest(options);
    return this.closeCalls().then(() => this.getMessagesForRequest(options));
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
    await this.#session.write("context:reset", { messages: plain });
  }

  /** Sets the history of a continued session: the log has it already. */
  async load(messages: readonly Message[]): Promise<void> {
    await this.#inner.setMessages(messages.map((message) => toPlainObject(message)));
    this.#count = messages.length;
    this.#calls.expect({ role: "assistant", content: "" });
    for (const message of messages) {
      if (message.role === "assistant") this.#calls.expect(message);
      else if (message.tool_call_id !== undefined && this.#calls.has(message.tool_call_id)) {
        this.#calls.addResult(message.tool_call_id, message);
      }
    }
  }

  async clear(): Promise<void> {
    await this.#inner.clear();
    this.#count = 0;
    this.#calls.expect({ role: "assistant", content: "" });
    await this.#session.write("context:reset", { messages: [] });
  }

  /**
   * Sets who tells the system prompt of each request (behaviour.md §8.1). Does nothing when the context manager has no such
   * thing: it is optional.
   */
  setSystemPromptFactory(factory: unknown): void {
    const returned = this.#setSystemPromptFactory?.(factory);
    if (!(returned instanceof Promise)) return;
    returned.catch((error) => this.#session.host.warn("system_prompt_lost", errorMessage(error)));
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

withSnakeCase(ContextGuard);

/** What {@link ContextGuard.forLoop} returns: a class, because an object with two spellings of each method takes 100 times as long to make. */
class LoopContext implements ContextManager {
  readonly #handle: ContextGuard;

  constructor(handle: ContextGuard) {
    this.#handle = handle;
  }

  addMessage(message: Message): Promise<void> {
    return this.#handle.addMessage(message);
  }

  getMessagesForRequest(options?: RequestOptions): Promise<Message[]> {
    return this.#handle.getMessagesForLoop(options);
  }

  getMessages(): Promise<Message[]> {
    return this.#handle.getMessages();
  }

  setMessages(messages: Message[]): Promise<void> {
    return this.#handle.setMessages(messages);
  }

  clear(): Promise<void> {
    return this.#handle.clear();
  }

  setSystemPromptFactory(factory: unknown): void {
    this.#handle.setSystemPromptFactory(factory);
  }

  should_compact(): boolean {
    return this.#handle.should_compact();
  }

  compact(): Promise<void> {
    return this.#handle.compact();
  }
}

withSnakeCase(LoopContext);

function requireMethod(context: ContextManager, name: string): Method {
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
