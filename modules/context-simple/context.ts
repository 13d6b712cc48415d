/** The context manager: keeps the whole history, and gives each request a view of it that fits. */
import {
  type ContextManager,
  type Coordinator,
  deepFreeze,
  errorMessage,
  type JsonObject,
  type Message,
  messageTokens,
  type RequestOptions,
  toPlainObject,
} from "preamp";
import { requestBudget } from "./budget.ts";
import type { Config } from "./config.ts";
import {
  irreducibleTokens,
  isDue,
  type Limits,
  limitsOf,
  overflow,
  type Proposal,
  proposeCompaction,
} from "./escalation.ts";
import { compactionNotice } from "./notice.ts";
import { type Capped, capToolResult, toRequestMessage } from "./request_message.ts";
import {
  decisionsOf,
  fingerprint,
  readSaved,
  type Saved,
  shortenedOf,
  STATE_KEY,
  withPlaces,
} from "./sticky.ts";
import { type Decisions, entriesOf, Transcript } from "./transcript.ts";

/** How full the context was at the last request; what the capability `context.status` returns. */
export interface ContextStatus {
  /** Tokens of the last view. */
  readonly tokens: number;
  /** Tokens it might have had. */
  readonly budget: number;
  /** Level of the last compaction, 1 to 8; 0 before the first. */
  readonly level: number;
  /** Compactions in this session. */
  readonly compactions: number;
}

/** Times a request starts over because a hook added messages while it was told of a compaction; our choice. */
const MOST_ROUNDS = 8;

/** See the top of the file. Messages are copied and frozen when they are added, and never touched again. */
export class SimpleContext implements ContextManager {
  readonly #coordinator: Pick<Coordinator, "hooks" | "session_state">;
  readonly #config: Config;
  #history: Message[] = [];
  #fingerprint = 0;
  #transcript = new Transcript();
  /** Places of the messages left out. */
  #removed: [number, number][] = [];
  #level = 0;
  #compactions = 0;
  #notice: Message | null = null;
  #tokens = 0;
  #budget = 0;
  readonly #warned = new Set<string>();
  /** Compactions that are done and not told yet. */
  #untold: JsonObject[] = [];
  /** Why the last decisions could not be kept for the next run. */
  #unsaved: unknown = null;
  /** Whether hooks are being told of a compaction, so that one who asks for a view does not start the next telling. */
  #telling = false;

  /** Creates an empty context; decisions of an earlier run are taken up by {@link setMessages}. */
  constructor(coordinator: Pick<Coordinator, "hooks" | "session_state">, config: Config) {
    this.#coordinator = coordinator;
    this.#config = config;
  }

  /** How full the context was at the last request. */
  get status(): ContextStatus {
    return { tokens: this.#tokens, budget: this.#budget, level: this.#level, compactions: this.#compactions };
  }

  /**
   * Appends a message. A tool result above `max_tool_result_bytes` is stored whole and shown capped, which
   * `context:tool_result_ingress_truncated {tool_call_id, original_bytes, kept_bytes}` tells.
   */
  async addMessage(message: Message): Promise<void> {
    const lost = this.#add(message);
    if (lost) await this.#coordinator.hooks.emit("context:tool_result_ingress_truncated", { ...lost });
  }

  #add(given: Message): Capped | null {
    const stored = deepFreeze(toPlainObject(given)) as unknown as Message; // whatever it is: toRequestMessage looks at it
    const index = this.#history.push(stored) - 1;
    this.#fingerprint = fingerprint(this.#fingerprint, stored);
    const message = toRequestMessage(stored);
    if (!message) return null;
    const cap = this.#config.max_tool_result_bytes;
    const short = cap === null ? null : capToolResult(message, cap);
    this.#transcript.add(short?.message ?? message, index);
    return short?.capped ?? null;
  }

  /** Resolves to a copy of the full history, as it was added. */
  getMessages(): Promise<Message[]> {
    return Promise.resolve(structuredClone(this.#history));
  }

  /**
   * Replaces the history. Decisions of the session's compactions are taken up again when `session_state` has some that were
   * made for the beginning of this history.
   */
  setMessages(messages: Message[]): Promise<void> {
    this.#reset();
    const saved = readSaved(this.#coordinator.session_state);
    let matches = false;
    for (const message of messages) {
      this.#add(message);
      if (this.#history.length === saved?.messages) matches = this.#fingerprint === saved.fingerprint;
    }
    if (saved && matches) this.#restore(saved);
    return Promise.resolve();
  }

  /** Empties the history. */
  clear(): Promise<void> {
    this.#reset();
    return Promise.resolve();
  }

  #reset(): void {
    this.#history = [];
    this.#fingerprint = 0;
    this.#transcript = new Transcript();
    this.#removed = [];
    this.#level = 0;
    this.#compactions = 0;
    this.#notice = null;
    this.#warned.clear();
  }

  #restore(saved: Saved): void {
    const decisions = decisionsOf(saved, this.#transcript);
    this.#level = saved.level;
    this.#compactions = saved.compactions;
    this.#carryOut(decisions);
  }

  /**
   * Resolves to a view that fits: the stored messages themselves (frozen), compacted when they take `compact_threshold` of the
   * budget or more. While the history grows, each view begins with the one before, less its notice, until the next
   * compaction.
   *
   * @throws {PreampError} `context_overflow` when what must stay (system messages, first and last human message, the calls
   * after it) is larger than the budget. Nothing is changed then.
   */
  async getMessagesForRequest(options: RequestOptions = {}): Promise<Message[]> {
    const limits = await this.#limits(options);
    for (let round = 1; isDue(this.#transcript, limits) && round <= MOST_ROUNDS; round++) {
      if (!await this.#compact(limits)) break;
    }
    const { view, tokens } = this.#transcript;
    if (tokens > limits.budget) throw overflow(tokens, limits.budget); // a hook adds more each time it is told
    this.#warned.delete("overflow");
    const notice = this.#noticeFor(limits.budget - tokens);
    this.#tokens = tokens + (notice ? messageTokens(notice) : 0);
    return notice ? [...view, notice] : view.slice();
  }

  async #limits(options: RequestOptions): Promise<Limits> {
    const limits = limitsOf(await requestBudget(options, this.#config), this.#config);
    this.#budget = Math.max(0, limits.budget);
    if (limits.reserve_ignored) {
      const reserve = this.#config.compaction_notice_token_reserve;
      const message =
        `The budget of ${limits.budget} tokens is not above compaction_notice_token_reserve (${reserve}), which is ignored`;
      await this.#warn("reserve", message);
    }
    return limits;
  }

  /** Compacts once and tells hooks; resolves to false when the view is to stay as it is. */
  async #compact(limits: Limits): Promise<boolean> {
    const proposal = await this.#announced(limits);
    if (!proposal) return false;
    if (this.#telling) return this.#commit(proposal, limits);
    this.#telling = true;
    const [transcript, messages, compactions] = [this.#transcript, this.#history.length, this.#compactions];
    try {
      await this.#emit("context:pre_compact", {
        before_tokens: this.#transcript.tokens,
        before_messages: this.#transcript.view.length,
        budget: limits.budget,
        target_tokens: proposal.goal.target,
      });
      // Hooks may have added messages meanwhile, or have asked for a view.
      const same = this.#transcript === transcript && this.#history.length === messages &&
        this.#compactions === compactions;
      const now = same ? proposal : this.#propose(limits);
      if (now) this.#commit(now, limits);
      for (let report = this.#untold.shift(); report; report = this.#untold.shift()) {
        await this.#emit("context:compaction", report);
        const { before_tokens, after_tokens, before_messages, after_messages } = report;
        await this.#emit("context:post_compact", {
          before_tokens,
          after_tokens,
          before_messages,
          after_messages,
        });
      }
      if (this.#unsaved !== null) {
        const message = `Compactions of this run will be decided anew in the next: ${
          errorMessage(this.#unsaved)
        }`;
        await this.#warn("unsaved", message);
      }
    } finally {
      this.#telling = false;
    }
    return true;
  }

  #propose(limits: Limits): Proposal | null {
    return proposeCompaction(this.#transcript, limits, this.#config);
  }

  /** Returns the proposal; warns, once, when the target or the budget is out of reach. */
  async #announced(limits: Limits): Promise<Proposal | null> {
    try {
      const proposal = this.#propose(limits);
      const least = irreducibleTokens(this.#transcript);
      if (!proposal && least > limits.target) {
        const message =
          `Messages that must stay take ${least} tokens, more than compaction aims at (${limits.target}): it waits until the budget of ${limits.budget} is used up`;
        await this.#warn("target", message);
      }
      return proposal;
    } catch (error) {
      await this.#warn("overflow", errorMessage(error), "error");
      throw error;
    }
  }

  #commit({ plan, goal }: Proposal, limits: Limits): true {
    const before_tokens = this.#transcript.tokens;
    const before_messages = this.#transcript.view.length;
    const { messages_removed, messages_truncated, user_messages_stubbed } = plan; // of what is new: read before it is not
    this.#level = plan.level;
    this.#compactions++;
    this.#carryOut(plan);
    this.#save();
    this.#untold.push({
      before_tokens,
      after_tokens: this.#transcript.tokens,
      before_messages,
      after_messages: this.#transcript.view.length,
      messages_removed,
      messages_truncated,
      user_messages_stubbed,
      system_messages_preserved: this.#transcript.system_count,
      strategy_level: plan.level,
      budget: limits.budget,
      target_tokens: goal.target,
      protected_recent: this.#config.protected_recent,
      protected_tool_results: this.#config.protected_tool_results,
    });
    return true;
  }

  #carryOut(decisions: Decisions): void {
    const places = [...decisions.removed].flatMap(entriesOf).map((entry) => entry.index);
    this.#removed = withPlaces(this.#removed, places.filter((place) => place >= 0));
    this.#transcript.apply(decisions);
    const verbosity = this.#config.compaction_notice_verbosity;
    this.#notice = compactionNotice(this.#transcript.tally, this.#level, verbosity);
  }

  #save(): void {
    const saved: Saved = {
      version: 1,
      messages: this.#history.length,
      fingerprint: this.#fingerprint,
      removed: this.#removed,
      shortened: shortenedOf(this.#transcript),
      level: this.#level,
      compactions: this.#compactions,
    };
    try {
      this.#coordinator.session_state[STATE_KEY] = saved;
    } catch (error) {
      this.#unsaved = error; // full: the view stands, only a later run decides anew
    }
  }

  /** Returns the notice when there is something to tell, room for it, and no call at the end that still runs. */
  #noticeFor(room: number): Message | null {
    const { compaction_notice_enabled, compaction_notice_min_level } = this.#config;
    const notice = this.#notice;
    if (!notice || !compaction_notice_enabled || this.#level < compaction_notice_min_level) return null;
    return !this.#transcript.running && messageTokens(notice) <= room ? notice : null;
  }

  async #warn(what: string, message: string, level: "warning" | "error" = "warning"): Promise<void> {
    if (this.#warned.has(what)) return;
    this.#warned.add(what);
    await this.#emit("user:notification", { message, level, source: "context-simple" });
  }

  async #emit(event: string, data: JsonObject): Promise<void> {
    await this.#coordinator.hooks.emit(event, data);
  }
}
