/**
 * The context manager: stores the complete history and returns a view that fits for each request. See
 * src/docs/context.md.
 */
import {
  type ContextManager,
  type ContextOverflow,
  type Coordinator,
  errorMessage,
  type JsonObject,
  type Message,
  messageTokens,
  type Provider,
  type RequestOptions,
  requestTokens,
  toFrozenObject,
  toolTokens,
} from "../base.ts";
import {
  irreducibleTokens,
  isDue,
  LearnedLimits,
  type Limits,
  limitsOf,
  overflow,
  type Proposal,
  requestBudget,
} from "./budget.ts";
import { CompactedView, readSaved } from "./compacted_view.ts";
import type { Config } from "./config.ts";
import { ReportedUsage } from "./calibration.ts";
import { promptOf, type SystemPromptFactory, takesBreakpoints } from "./request_message.ts";
import { type Capped, MessageVariants, recallTool } from "./shorten.ts";

/** Size of the last view; returned by the capability `context.status`. */
export interface ContextStatus {
  /** Tokens of the last view. */
  readonly tokens: number;
  /** Token budget of the last view. */
  readonly budget: number;
  /** Level of the last compaction, 1 to 8; 0 before the first. */
  readonly level: number;
  /** Compactions in this session. */
  readonly compactions: number;
}

/** Part of the coordinator that a context uses. */
export type ContextCoordinator = Pick<Coordinator, "hooks" | "session_state" | "getCapability">;

/** Options of a context that extends this one. */
export interface SimpleOptions {
  /** Module id: source of notifications and key in `session_state`. Default `context-simple`. */
  readonly id?: string;
  /** Frozen system messages at the start of every view; they are not part of the history. */
  readonly fixed?: readonly Message[];
  /** Summarises the messages that compactions left out; see {@link Summarise}. */
  readonly summarise?: Summarise;
}

/**
 * Resolves to a frozen message that summarises the dropped messages, or null for a view without a summary.
 * Called once after compactions that dropped messages. It must not throw and must limit its own time.
 */
export type Summarise = (dropped: readonly Message[], facts: SummaryFacts) => Promise<Message | null>;

/** Inputs of a summary. */
export interface SummaryFacts {
  /** The previous summary. */
  readonly previous: Message | null;
  /** The provider of the request. */
  readonly provider: Provider | undefined;
}

/** Maximum of compactions in one request: hooks that receive compaction events may add messages. */
const MAX_COMPACTIONS = 8;

/**
 * A context manager with mechanical compaction. Messages are copied and frozen when they are added, and never
 * changed.
 */
export class SimpleContext implements ContextManager {
  readonly #coordinator: ContextCoordinator;
  readonly #config: Config;
  readonly #id: string;
  readonly #options: SimpleOptions;
  readonly #forms: MessageVariants;
  #history: Message[] = [];
  #view: CompactedView;
  readonly #usage: ReportedUsage;
  readonly #learned = new LearnedLimits();
  #factory: SystemPromptFactory | null = null;
  /** Tokens and budget of the last view. */
  #tokens = 0;
  #budget = 0;
  readonly #warned = new Set<string>();
  /** Reports of compactions whose events were not emitted yet. */
  #unreported: JsonObject[] = [];
  /** Error of the last attempt to save the decisions; null when it succeeded. */
  #unsaved: unknown = null;
  /**
   * Whether compaction events are being emitted: a hook that requests a view then must not emit them again.
   */
  #emitting = false;

  /** Creates an empty context; {@link setMessages} restores the decisions of an earlier run. */
  constructor(coordinator: ContextCoordinator, config: Config, options: SimpleOptions = {}) {
    this.#coordinator = coordinator;
    this.#config = config;
    this.#options = options;
    this.#id = options.id ?? "context-simple";
    this.#forms = new MessageVariants(config.recall);
    this.#view = new CompactedView(config, this.#forms, this.#options.fixed);
    this.#usage = new ReportedUsage(coordinator, config.token_meter === "calibrated");
  }

  /** Size of the last view. */
  get status(): ContextStatus {
    const { level, compactions } = this.#view;
    return { tokens: this.#tokens, budget: this.#budget, level, compactions };
  }

  /** The full history: the stored messages themselves, frozen. */
  get history(): readonly Message[] {
    return this.#history;
  }

  /**
   * Appends a message. A tool result above `max_tool_result_bytes` is stored in full and capped in views;
   * this emits `context:tool_result_ingress_truncated {tool_call_id, original_bytes, kept_bytes}`.
   */
  async addMessage(message: Message): Promise<void> {
    const capped = this.#add(message);
    if (capped) await this.#emit("context:tool_result_ingress_truncated", { ...capped });
  }

  #add(message: Message): Capped | null {
    const stored = toFrozenObject(message) as unknown as Message; // any value: toRequestMessage checks it
    this.#history.push(stored);
    return this.#view.add(stored);
  }

  getMessages(): Promise<Message[]> {
    return Promise.resolve(structuredClone(this.#history));
  }

  /**
   * Replaces the history. Restores compaction decisions from `session_state` if they were made for the
   * beginning of this history, and the usage that earlier runs reported.
   */
  setMessages(messages: Message[]): Promise<void> {
    this.#reset();
    const saved = readSaved(this.#coordinator.session_state, this.#id);
    this.#learned.restore(saved?.limits);
    this.#usage.begin();
    for (const message of messages) {
      this.#add(message);
      if (this.#history.length === saved?.messages && this.#view.restore(saved, this.#history)) {
        this.#usage.forget();
      }
      const notice = this.#view.noticeFor(Infinity);
      this.#usage.recall(
        this.#history.length,
        () => this.#view.transcript.tokens + (notice ? messageTokens(notice) : 0),
      );
    }
    return Promise.resolve();
  }

  clear(): Promise<void> {
    this.#reset();
    return Promise.resolve();
  }

  #reset(): void {
    this.#history = [];
    this.#view = new CompactedView(this.#config, this.#forms, this.#options.fixed);
    this.#usage.forget();
    this.#warned.clear();
  }

  setSystemPromptFactory(factory: SystemPromptFactory | null): void {
    this.#factory = factory;
  }

  /**
   * Resolves to a view that fits: the stored, frozen messages, compacted when they reach `compact_threshold`
   * of the budget, or when the provider refused the last view (`overflow`). Until the next compaction, each
   * view starts with the previous one without its notice. The caller owns the array.
   *
   * @throws {PreampError} `context_overflow` when the system messages, the first and last human message and
   * the calls after it exceed the budget. The context is unchanged then.
   */
  async getMessagesForRequest(options: RequestOptions = {}): Promise<Message[]> {
    await this.#usage.learnLast(this.#view.calibration);
    this.#view.transcript.setPrompt(this.#factory && await promptOf(this.#factory));
    const extras = this.#learn(options);
    const budget = await requestBudget(options, this.#config, extras, this.#view.calibration.isKnown);
    const limits = limitsOf(
      Math.min(budget, this.#learned.of(options.provider) - extras),
      this.#config,
      this.#view.calibration,
    );
    if (limits.reserve_ignored) await this.#warnOfReserve(limits);
    if (isDue(this.#view.transcript, limits)) await this.#compactToFit(limits);
    if (this.#options.summarise) await this.#summarise(this.#options.summarise, options.provider, limits);
    return this.#viewOf(options.provider, limits, extras);
  }

  /**
   * Learns from the usage of the last answer, and from a refusal; returns the tokens of tools and injections.
   */
  #learn({ tools, injections, overflow, provider }: RequestOptions): number {
    const tool_tokens = toolTokens(tools);
    this.#usage.learn(tool_tokens, this.#view.calibration);
    const extras = tool_tokens + requestTokens(injections ?? []);
    if (overflow) this.#learnRefusal(overflow, provider, extras);
    return extras;
  }

  async #compactToFit(limits: Limits): Promise<void> {
    for (let round = 1; round <= MAX_COMPACTIONS; round++) {
      if (!await this.#compact(limits)) return;
      if (this.#view.transcript.tokens <= limits.budget) return; // else hooks added messages
    }
  }

  /** Returns the view of a request. @throws {PreampError} `context_overflow` when it does not fit. */
  #viewOf(provider: Provider | undefined, limits: Limits, extras: number): Message[] {
    const { transcript, calibration } = this.#view;
    const { tokens } = transcript;
    // possible when a hook adds messages at each compaction
    if (tokens > limits.budget) throw overflow(calibration.tokensOf(tokens), limits.provider_budget);
    this.#warned.delete("overflow");
    const notice = this.#view.noticeFor(limits.budget - tokens);
    const total = tokens + (notice ? messageTokens(notice) : 0);
    this.#tokens = calibration.tokensOf(total);
    this.#budget = Math.max(0, limits.provider_budget);
    this.#usage.recordRequest(total, extras);
    const marked = this.#config.cache_breakpoints && takesBreakpoints(provider);
    const kept = marked ? transcript.marked : transcript.view; // only grows until the next compaction makes another
    const view = kept.slice();
    if (notice) view.push(notice);
    return view;
  }

  /** Learns the size of the refused request and what the model takes. */
  #learnRefusal(overflow: ContextOverflow, provider: Provider | undefined, extras: number): void {
    const { transcript, calibration } = this.#view;
    const notice = this.#view.noticeFor(Infinity);
    const view = transcript.tokens + (notice ? messageTokens(notice) : 0);
    this.#usage.learnRefused({ view, extras, reported: overflow.requested_tokens }, calibration);
    this.#learned.learn(provider, overflow, calibration.tokensOf(transcript.tokens) + extras);
  }

  async #warnOfReserve({ provider_budget }: Limits): Promise<void> {
    const reserve = this.#config.compaction_notice_token_reserve;
    const fact = `is not above compaction_notice_token_reserve (${reserve}), which is ignored`;
    await this.#warn("reserve", `The budget of ${provider_budget} tokens ${fact}`);
  }

  /** Compacts once and emits the events; resolves to false when no compaction is needed. */
  async #compact(limits: Limits): Promise<boolean> {
    const proposal = await this.#propose(limits);
    if (!proposal) return false;
    if (this.#emitting) return this.#commit(proposal, limits);
    this.#emitting = true;
    const view = this.#view;
    const { messages, compactions } = view;
    try {
      await this.#emit("context:pre_compact", {
        before_tokens: view.calibration.tokensOf(view.transcript.tokens),
        before_messages: view.transcript.view.length,
        budget: limits.provider_budget,
        target_tokens: view.calibration.tokensOf(proposal.goal.target),
      });
      // hooks may have added messages or requested a view meanwhile
      const same = this.#view === view && view.messages === messages && view.compactions === compactions;
      const now = same ? proposal : this.#view.propose(limits);
      if (now) this.#commit(now, limits);
      for (let report = this.#unreported.shift(); report; report = this.#unreported.shift()) {
        await this.#emit("context:compaction", report);
        const { before_tokens, after_tokens, before_messages, after_messages } = report;
        const sizes = { before_tokens, after_tokens, before_messages, after_messages };
        await this.#emit("context:post_compact", sizes);
      }
      if (this.#unsaved !== null) {
        const message = `Compactions of this run cannot be saved; the next run compacts again: ${
          errorMessage(this.#unsaved)
        }`;
        await this.#warn("unsaved", message);
      }
    } finally {
      this.#emitting = false;
    }
    return true;
  }

  /** Returns the planned compaction; warns once when the target or the budget cannot be reached. */
  async #propose(limits: Limits): Promise<Proposal | null> {
    const { transcript, calibration } = this.#view;
    try {
      const proposal = this.#view.propose(limits);
      const least = irreducibleTokens(transcript);
      if (!proposal && least > limits.target) {
        const [fixed, target] = [calibration.tokensOf(least), calibration.tokensOf(limits.target)];
        const message =
          `Messages that must stay take ${fixed} tokens, more than the compaction target of ${target}: compaction waits until the budget of ${limits.provider_budget} is used up`;
        await this.#warn("target", message);
      }
      return proposal;
    } catch (error) {
      await this.#warn("overflow", errorMessage(error), "error");
      throw error;
    }
  }

  #commit(proposal: Proposal, limits: Limits): true {
    this.#unreported.push(this.#view.commit(proposal, limits));
    this.#save();
    return true;
  }

  /** Summarises what was left out; a summary that does not fit is not used. */
  async #summarise(
    summarise: Summarise,
    provider: Provider | undefined,
    limits: Limits,
  ): Promise<void> {
    const view = this.#view;
    if (this.#emitting) return;
    const dropped = view.takeFresh().flatMap((place) => this.#history[place] ?? []);
    if (dropped.length === 0) return;
    const previous = view.lead;
    const summary = await summarise(dropped, { previous, provider });
    if (!summary || view !== this.#view) return;
    view.lead = summary;
    if (view.transcript.tokens > limits.budget) view.lead = previous;
    else this.#save();
  }

  #save(): void {
    try {
      const limits = this.#learned.save();
      const saved = this.#view.save(this.#history);
      this.#coordinator.session_state[this.#id] = limits ? { ...saved, limits } : saved;
    } catch (error) {
      this.#unsaved = error; // `session_state` is full: the next run compacts again
    }
  }

  async #warn(key: string, message: string, level: "warning" | "error" = "warning"): Promise<void> {
    if (this.#warned.has(key)) return;
    this.#warned.add(key);
    await this.#emit("user:notification", { message, level, source: this.#id });
  }

  async #emit(event: string, data: JsonObject): Promise<void> {
    await this.#coordinator.hooks.emit(event, data);
  }
}

const EVENTS = [
  "context:pre_compact",
  "context:compaction",
  "context:post_compact",
  "context:tool_result_ingress_truncated",
];

/** Mounts a context together with its recall tool, its status capability and the list of its events. */
export async function publish(
  coordinator: Coordinator,
  context: SimpleContext,
  { id, recall }: { id: string; recall: boolean },
): Promise<void> {
  await coordinator.mount("context", context);
  if (recall) await coordinator.mount("tools", recallTool(() => context.history));
  coordinator.registerCapability("context.status", () => context.status);
  coordinator.registerContributor("observability.events", id, () => EVENTS);
}
