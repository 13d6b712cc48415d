/** The guard around a context manager: logs every write, and keeps each tool call followed by its result. */
import { isCallBlock } from "../sdk/checks.ts";
import { errorMessage, PreampError } from "../sdk/errors.ts";
import { isObject, toFrozenObject, toPlain } from "../sdk/json.ts";
import { injectionMessage, placeInjections } from "../sdk/loop/chat_request.ts";
import { describeKind } from "../sdk/value_path.ts";
import { methodOf, withSnakeCase } from "../sdk/snake_case_aliases.ts";
import type { ContextManager, Message, RequestOptions } from "../sdk/types.ts";
import type { SessionContext } from "./session_context.ts";

type Method = (...args: unknown[]) => unknown;

interface PendingCall {
  readonly id: string;
  readonly name: string;
  /** The result; it waits here for the results of earlier calls. Null: none arrived. */
  result: Message | null;
}

const NO_CALLS: ReadonlyMap<string, PendingCall> = new Map();

/**
 * Tool calls of the last assistant message that have no result yet. Orders the results: each call has one,
 * and they follow the message in call order, whatever the order in which a loop stores them.
 */
class PendingCalls {
  #by_id = NO_CALLS;
  /** The calls in order; those before `#next` have a stored result. */
  #calls: readonly PendingCall[] = [];
  #next = 0;

  /** Starts over with the calls of an assistant message. */
  expect(message: Message): void {
    this.#by_id = callsOf(message);
    this.#calls = this.#by_id === NO_CALLS ? [] : [...this.#by_id.values()];
    this.#next = 0;
  }

  /** Whether any call has no stored result. */
  get any(): boolean {
    return this.#next < this.#calls.length;
  }

  has(id: string): boolean {
    return this.#by_id.has(id) && !this.isAnswered(id);
  }

  isAnswered(id: string): boolean {
    const call = this.#by_id.get(id);
    return call !== undefined && call.result !== null;
  }

  /** Adds the result of a pending call; returns the results that can be stored now, in call order. */
  addResult(id: string, result: Message): Message[] {
    this.#by_id.get(id)!.result = result; // pending, so it is known
    const first = this.#next;
    while (this.any && this.#calls[this.#next]!.result !== null) this.#next++; // below the length
    return this.#calls.slice(first, this.#next).map(({ result }) => result!); // checked
  }

  /**
   * Ends all pending calls; returns the results that were not stored, with the content of `contentOf` for a
   * call without a result.
   */
  closeAll(contentOf: (id: string, name: string) => Message["content"]): Message[] {
    const open = this.#calls.slice(this.#next);
    this.#next = this.#calls.length;
    for (const call of open) {
      const { id, name } = call;
      call.result ??= Object.freeze({ role: "tool", tool_call_id: id, name, content: contentOf(id, name) });
    }
    return open.map(({ result }) => result!); // just set
  }
}

/** Returns the calls of an assistant message by id: from `tool_calls`, else from its content blocks. */
function callsOf({ tool_calls, content }: Message): ReadonlyMap<string, PendingCall> {
  const listed: readonly unknown[] = Array.isArray(tool_calls)
    ? tool_calls
    : Array.isArray(content)
    ? content.filter(isCallBlock)
    : [];
  if (listed.length === 0) return NO_CALLS;
  const calls = new Map<string, PendingCall>();
  for (const call of listed) {
    if (!isObject(call)) continue;
    const id = String(call.id);
    calls.set(id, { id, name: String(call.name ?? call.tool), result: null });
  }
  return calls;
}

/** The guard of a context manager; modules and the loop receive its handles only. */
export class ContextGuard {
  /** For modules. */
  readonly handle: ContextManager = new ContextHandle(this, false);
  /** For the orchestrator: a view that it requests closes the pending calls of the last answer. */
  readonly loop_handle: ContextManager = new ContextHandle(this, true);
  readonly #session: SessionContext;
  readonly #inner: Record<
    "addMessage" | "getMessagesForRequest" | "getMessages" | "setMessages" | "clear",
    Method
  >;
  readonly #setSystemPromptFactory: Method | undefined;
  #count = 0;
  readonly #calls = new PendingCalls();
  /** Messages that wait until all results of the last assistant message are stored. */
  #deferred: Message[] = [];

  constructor(session: SessionContext, context: ContextManager) {
    this.#session = session;
    this.#setSystemPromptFactory = methodOf(context, "setSystemPromptFactory");
    this.#inner = {
      addMessage: requireMethod(context, "addMessage"),
      getMessagesForRequest: requireMethod(context, "getMessagesForRequest"),
      getMessages: requireMethod(context, "getMessages"),
      setMessages: requireMethod(context, "setMessages"),
      clear: requireMethod(context, "clear"),
    };
  }

  /** Whether any tool call has no result yet. */
  get has_open_calls(): boolean {
    return this.#calls.any;
  }

  /** Adds the message of a hook, whatever its role, after the results of pending calls. */
  async inject(message: Message): Promise<void> {
    if (this.#calls.any) this.#deferred.push(message);
    else await this.addMessage(message);
  }

  /**
   * Appends a message. While tool calls are pending, other messages are deferred until the last result is
   * stored. Results are stored in call order; a second result of the same call is dropped.
   */
  async addMessage(message: Message): Promise<void> {
    const plain = toMessage(message);
    await (plain.role === "tool" ? this.#addResult(plain) : this.#addOther(plain));
  }

  async #addOther(plain: Message): Promise<void> {
    if (this.#calls.any) {
      if (plain.role !== "assistant" || this.#isRunning()) return void this.#deferred.push(plain);
      await this.closeCalls(); // the model was called again: no results will follow
    }
    await this.#inner.addMessage(plain);
    const stored = this.#log(plain);
    if (stored) await stored;
    if (plain.role === "assistant") this.#calls.expect(plain);
  }

  async #addResult(plain: Message): Promise<void> {
    const id = String(plain.tool_call_id);
    if (this.#calls.isAnswered(id)) {
      this.#session.host.warn("tool_result_dropped", `Call "${id}" has a result already`);
      return;
    }
    const is_known = this.#calls.has(id);
    const added = this.#addResults(is_known ? this.#calls.addResult(id, plain) : [plain]);
    const is_last = !this.#calls.any; // another result may be added meanwhile
    await added;
    if (is_last) await this.#addDeferred();
  }

  /**
   * Stores and logs results, also those that the context manager refuses, because the log is the history.
   * Rejects with its first error.
   */
  async #addResults(results: readonly Message[]): Promise<void> {
    let refusal: { error: unknown } | null = null;
    for (let index = 0; index < results.length; index++) {
      const result = results[index]!; // below the length
      try {
        await this.#inner.addMessage(result);
      } catch (error) {
        refusal ??= { error };
      }
      const stored = this.#log(result);
      if (stored) await stored;
    }
    if (refusal) throw refusal.error;
  }

  #isRunning(): boolean {
    const calls = this.#session.turn?.calls ?? [];
    return calls.some((call) => this.#calls.has(call.id) && call.started && call.ended === null);
  }

  #log(message: Message): Promise<void> | void {
    return this.#session.write("context:message", { index: this.#count++, message });
  }

  async #addDeferred(): Promise<void> {
    for (const message of this.#deferred.splice(0)) await this.addMessage(message);
  }

  /** Adds a result for every pending call. Errors of the context manager become warnings. */
  async closeCalls(): Promise<void> {
    if (!this.#calls.any) return;
    const results = this.#calls.closeAll((id, name) => this.#session.steps.resultContentFor(id, name));
    for (const result of results) {
      await this.#addResults([result]).catch((error) =>
        this.#session.host.warn("context_failed", errorMessage(error))
      );
    }
    await this.#addDeferred();
  }

  /**
   * Returns a view for the loop, after closing the pending calls of the last answer. The injections of hooks
   * are at its end. One for a provider begins the next request, so that what hooks inject there counts in its
   * budget.
   *
   * @throws {PreampError} `denied` when hooks deny the request.
   */
  async getMessagesForLoop(options: RequestOptions | number = {}): Promise<Message[]> {
    if (this.#calls.any && !this.#isRunning()) await this.closeCalls();
    const { turn, steps } = this.#session;
    if (turn !== null && typeof options !== "number" && options.provider && !options.overflow) {
      await steps.viewFor(turn, options.provider.name, options.max_reached === true);
      if (turn.denied !== null) throw new PreampError("denied", turn.denied);
    }
    const pending = turn?.pending.slice() ?? [];
    if (turn === null || pending.length === 0 || typeof options === "number") {
      return await this.getMessagesForRequest(options);
    }
    turn.placed = pending.length;
    const injections = [...pending.map(injectionMessage), ...options.injections ?? []];
    return placeInjections(await this.getMessagesForRequest({ ...options, injections }), pending);
  }

  async getMessagesForRequest(options: RequestOptions | number = {}): Promise<Message[]> {
    // older modules pass (token_budget, provider) in place of an object
    const request = typeof options === "number" ? { token_budget: options } : options;
    const view = await this.#inner.getMessagesForRequest(request);
    if (!Array.isArray(view)) {
      throw new PreampError(
        "module_invalid",
        `Cannot read the view of the context manager: must be a list of messages: received ${
          describeKind(view)
        }`,
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

  /** Sets the history of a continued session without logging it again. */
  async load(messages: readonly Message[]): Promise<void> {
    await this.#inner.setMessages(messages.map((message) => toFrozenObject(message) as unknown as Message));
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
   * Sets the function that returns the system prompt of each request. Does nothing when the context manager
   * does not have this optional method.
   */
  setSystemPromptFactory(factory: unknown): void {
    const returned = this.#setSystemPromptFactory?.(factory);
    if (!(returned instanceof Promise)) return;
    returned.catch((error) => this.#session.host.warn("system_prompt_lost", errorMessage(error)));
  }
}

/**
 * The context manager that modules receive. A class, because an object literal with two spellings of each
 * method takes 100 times as long to create.
 */
class ContextHandle implements ContextManager {
  readonly #guard: ContextGuard;
  readonly #is_for_loop: boolean;

  constructor(guard: ContextGuard, is_for_loop: boolean) {
    this.#guard = guard;
    this.#is_for_loop = is_for_loop;
  }

  addMessage(message: Message): Promise<void> {
    return this.#guard.addMessage(message);
  }

  getMessagesForRequest(options?: RequestOptions): Promise<Message[]> {
    return this.#is_for_loop
      ? this.#guard.getMessagesForLoop(options)
      : this.#guard.getMessagesForRequest(options);
  }

  getMessages(): Promise<Message[]> {
    return this.#guard.getMessages();
  }

  setMessages(messages: Message[]): Promise<void> {
    return this.#guard.setMessages(messages);
  }

  clear(): Promise<void> {
    return this.#guard.clear();
  }

  setSystemPromptFactory(factory: unknown): void {
    this.#guard.setSystemPromptFactory(factory);
  }

  /** Returns false: older modules call it, but a view is compacted when it is made. */
  should_compact(): boolean {
    return false;
  }

  /** Does nothing: older modules call it, but a view is compacted when it is made. */
  compact(): Promise<void> {
    return Promise.resolve();
  }
}

withSnakeCase(ContextHandle);

function requireMethod(context: ContextManager, name: string): Method {
  const method = methodOf(context, name);
  if (!method) {
    throw new PreampError(
      "module_invalid",
      `Cannot use the context manager: it must have ${name}()`,
    );
  }
  return method;
}

/**
 * Returns a message as frozen plain data with a role, and with a string or blocks as content.
 * @throws {PreampError} `module_invalid` when it is no object.
 */
function toMessage(message: unknown): Message {
  if (!isObject(message)) {
    const received = describeKind(message);
    throw new PreampError(
      "module_invalid",
      `Cannot add a message: must be {role, content}: received ${received}`,
    );
  }
  const plain = toFrozenObject(message);
  const { role, content } = plain;
  if (role !== undefined && role !== null && (typeof content === "string" || Array.isArray(content))) {
    return plain as unknown as Message;
  }
  const text = content === undefined || content === null ? "" : content;
  return toFrozenObject({
    ...plain,
    role: role ?? "user",
    content: typeof text === "string" || Array.isArray(text) ? text : JSON.stringify(text),
  }) as unknown as Message;
}
