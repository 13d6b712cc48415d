/** The context manager: keeps the whole history, and gives each request a view of it that fits. */
import {
  type ContextManager,
  type Coordinator,
  errorMessage,
  type JsonObject,
  type Message,
  type Provider,
  type RequestOptions,
  toFrozenObject,
} from "../mod.ts";
import { takesBreakpoints } from "./cache_breakpoints.ts";
import { requestBudget } from "./budget.ts";
import { CompactedView } from "./compacted_view.ts";
import type { Config } from "./config.ts";
import {
  irreducibleTokens,
  isDue,
  type Limits,
  limitsOf,
  overflow,
  type Proposal,
} from "./compaction_trigger.ts";
import { MessageVariants } from "./message_variants.ts";
import { exactMeter } from "./token_counter.ts";
import type { Capped } from "./request_message.ts";
import { readSaved } from "./saved_compaction.ts";
import { promptOf, type SystemPromptFactory } from "./system_prompt.ts";
import { ReportedUsage } from "./reported_usage.ts";

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

/** What a context needs of its coordinator. */
export type Surroundings = Pick<Coordinator, "hooks" | "session_state" | "getCapability">;

/** What a context that is built on this one sets. */
export interface SimpleOptions {
  /** Module id: source of notifications, key in `session_state`. Default `context-simple`. */
  readonly id?: string;
  /** System messages, frozen, that stand first in every view and are in no history. */
  readonly fixed?: readonly Message[];
  /** Makes a message that stands for what compactions left out; see {@link Summarise}. */
  readonly summarise?: Summarise;
}

/**
 * Resolves to a frozen message for what was left out, or null when there is none: the view then stays mechanical. Called once
 * after compactions that left something out. It must not throw and must bound its own time.
 */
export type Summarise = (dropped: readonly Message[], facts: SummaryFacts) => Promise<Message | null>;

/** What a summary is made with. */
export interface SummaryFacts {
  /** The message that stood for what was left out before. */
  readonly previous: Message | null;
  /** The provider of the request. */
  readonly provider: Provider | undefined;
}

/** Times a request starts over because a hook added messages while it was told of a compaction; our choice. */
const MOST_ROUNDS = 8;

/** See the top of the file. Messages are copied and frozen when they are added, and never touched again. */
export class SimpleContext implements ContextManager {
  readonly #coordinator: Surroundings;
  readonly #config: Config;
  readonly #id: string;
  readonly #options: SimpleOptions;
  readonly #forms: MessageVariants;
  #history: Message[] = [];
  #view: CompactedView;
  readonly #usage: ReportedUsage;
  #factory: SystemPromptFactory | null = null;
  #status: ContextStatus = { tokens: 0, budget: 0, level: 0, compactions: 0 };
  readonly #warned = new Set<string>();
  /** Compactions that are done and not told yet. */
  #untold: JsonObject[] = [];
  /** Why the last decisions could not be kept for the next run. */
  #unsaved: unknown = null;
  /** Whether hooks are being told of a compaction, so that one who asks for a view does not start the next telling. */
  #telling = false;

  /** Creates an empty context; decisions of an earlier run are taken up by {@link setMessages}. */
  constructor(coordinator: Surroundings, config: Config, options: SimpleOptions = {}) {
    this.#coordinator = coordinator;
    this.#config = config;
    this.#options = options;
    this.#id = options.id ?? "context-simple";
    this.#forms = new MessageVariants(config.recall);
    this.#view = new CompactedView(config, this.#forms, this.#options.fixed);
    this.#usage = new ReportedUsage(coordinator, config.token_meter === "calibrated");
  }

  /** Not where a derived class has an `addMessage` of its own: that one may change what it is given. */
  get takes_frozen(): boolean {
    return this.addMessage === SimpleContext.prototype.addMessage;
  }

  /** How full the context was at the last request. */
  get status(): ContextStatus {
    return { ...this.#status, level: this.#view.level, compactions: this.#view.compactions };
  }

  /** The full history: the stored messages themselves, frozen. */
  get history(): readonly Message[] {
    return this.#history;
  }

  /**
   * Appends a message. A tool result above `max_tool_result_bytes` is stored whole and shown capped, which
   * `context:tool_result_ingress_truncated {tool_call_id, original_bytes, kept_bytes}` tells.
   */
  async addMessage(message: Message): Promise<void> {
    if (this.#config.token_meter === "exact") this.#forms.meter = await exactMeter();
    const lost = this.#add(message);
    if (lost) await this.#emit("context:tool_result_ingress_truncated", { ...lost });
  }

  #add(given: Message): Capped | null {
    const stored = toFrozenObject(given) as unknown as Message; // whatever it is: toRequestMessage looks at it
    this.#history.push(stored);
    return this.#view.add(stored);
  }

  /** Resolves to a copy of the full history, as it was added. */
  getMessages(): Promise<Message[]> {
    return Promise.resolve(structuredClone(this.#history));
  }

  /**
   * Replaces the history. Decisions of the session's compactions are taken up again when `session_state` has some that were
   * made for the beginning of this history; so is what earlier runs reported of their usage.
   */
  async setMessages(messages: Message[]): Promise<void> {
    if (this.#config.token_meter === "exact") this.#forms.meter = await exactMeter();
    this.#reset();
    const saved = readSaved(this.#coordinator.session_state, this.#id);
    this.#usage.begin();
    for (const message of messages) {
      this.#add(message);
      if (this.#history.length === saved?.messages && this.#view.restore(saved)) this.#usage.forget();
      const notice = this.#view.noticeFor(Infinity);
      this.#usage.recall(
        this.#history.length,
        () => this.#view.transcript.tokens + (notice ? this.#forms.count(notice) : 0),
      );
    }
  }

  /** Empties the history. */
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

  /**
   * Sets who tells the system prompt: asked on every request, its text stands for the stored system messages but those of
   * hooks (behaviour.md §8.1). Null = the stored ones again.
   */
  setSystemPromptFactory(factory: SystemPromptFactory | null): void {
    this.#factory = factory;
  }

  /**
   * Resolves to a view that fits: the stored messages themselves (frozen), compacted when they take `compact_threshold` of the
   * budget or more. While the history grows, each view begins with the one before, less its notice, until the next
   * compaction. The array is the caller's.
   *
   * @throws {PreampError} `context_overflow` when what must stay (system messages, first and last human message, the calls
   * after it) is larger than the budget. Nothing is changed then.
   */
  async getMessagesForRequest(options: RequestOptions = {}): Promise<Message[]> {
    if (this.#config.token_meter === "exact") this.#forms.meter = await exactMeter();
    const learning = this.#usage.learnLast(this.#view.calibration);
    if (learning) await learning;
    this.#view.transcript.setPrompt(this.#factory && await promptOf(this.#factory));
    this.#usage.learn(this.#forms.meter.tools(options.tools), this.#view.calibration);
    const told = requestBudget(
      options,
      this.#config,
      this.#forms.meter,
      this.#config.token_meter === "exact" || this.#view.calibration.isKnown,
    );
    const limits = limitsOf(
      typeof told === "number" ? told : await told,
      this.#config,
      this.#view.calibration,
    );
    if (limits.reserve_ignored) await this.#warnOfReserve(limits);
    let due = isDue(this.#view.transcript, limits);
    for (let round = 1; due && round <= MOST_ROUNDS; round++) {
      if (!await this.#compact(limits)) break;
      due = this.#view.transcript.tokens > limits.budget; // once is enough, but for what hooks added meanwhile
    }
    if (this.#options.summarise) await this.#summarise(this.#options.summarise, options.provider, limits);
    const { transcript, calibration } = this.#view;
    const { tokens } = transcript;
    if (tokens > limits.budget) throw overflow(calibration.tokensOf(tokens), limits.told_budget); // a hook adds more each time it is told
    this.#warned.delete("overflow");
    const notice = this.#view.noticeFor(limits.budget - tokens);
    const total = tokens + (notice ? this.#forms.count(notice) : 0);
    this.#status = {
      ...this.#status,
      tokens: calibration.tokensOf(total),
      budget: Math.max(0, limits.told_budget),
    };
    this.#usage.asked(total, extrasOf(options, this.#forms));
    const marked = this.#config.cache_breakpoints && takesBreakpoints(options.provider);
    const view = (marked ? transcript.marked : transcript.view).slice();
    if (notice) view.push(notice);
    return view;
  }

  async #warnOfReserve({ told_budget }: Limits): Promise<void> {
    const reserve = this.#config.compaction_notice_token_reserve;
    const fact = `is not above compaction_notice_token_reserve (${reserve}), which is ignored`;
    await this.#warn("reserve", `The budget of ${told_budget} tokens ${fact}`);
  }

  /** Compacts once and tells hooks; resolves to false when the view is to stay as it is. */
  async #compact(limits: Limits): Promise<boolean> {
    const proposal = await this.#announced(limits);
    if (!proposal) return false;
    if (this.#telling) return this.#commit(proposal, limits);
    this.#telling = true;
    const view = this.#view;
    const { messages, compactions } = view;
    try {
      await this.#emit("context:pre_compact", {
        before_tokens: view.calibration.tokensOf(view.transcript.tokens),
        before_messages: view.transcript.view.length,
        budget: limits.told_budget,
        target_tokens: view.calibration.tokensOf(proposal.goal.target),
      });
      // Hooks may have added messages meanwhile, or have asked for a view.
      const same = this.#view === view && view.messages === messages && view.compactions === compactions;
      const now = same ? proposal : this.#view.propose(limits);
      if (now) this.#commit(now, limits);
      for (let report = this.#untold.shift(); report; report = this.#untold.shift()) {
        await this.#emit("context:compaction", report);
        const { before_tokens, after_tokens, before_messages, after_messages } = report;
        const sizes = { before_tokens, after_tokens, before_messages, after_messages };
        await this.#emit("context:post_compact", sizes);
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

  /** Returns the proposal; warns, once, when the target or the budget is out of reach. */
  async #announced(limits: Limits): Promise<Proposal | null> {
    const { transcript, calibration } = this.#view;
    try {
      const proposal = this.#view.propose(limits);
      const least = irreducibleTokens(transcript);
      if (!proposal && least > limits.target) {
        const [stay, target] = [calibration.tokensOf(least), calibration.tokensOf(limits.target)];
        const message =
          `Messages that must stay take ${stay} tokens, more than compaction aims at (${target}): it waits until the budget of ${limits.told_budget} is used up`;
        await this.#warn("target", message);
      }
      return proposal;
    } catch (error) {
      await this.#warn("overflow", errorMessage(error), "error");
      throw error;
    }
  }

  #commit(proposal: Proposal, limits: Limits): true {
    this.#untold.push(this.#view.commit(proposal, limits));
    this.#save();
    return true;
  }

  /** Has what was left out summarised; a summary that does not fit is not shown. */
  async #summarise(
    summarise: Summarise,
    provider: Provider | undefined,
    limits: Limits,
  ): Promise<void> {
    const view = this.#view;
    if (this.#telling) return;
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
      this.#coordinator.session_state[this.#id] = this.#view.save();
    } catch (error) {
      this.#unsaved = error; // full: the view stands, only a later run decides anew
    }
  }

  async #warn(what: string, message: string, level: "warning" | "error" = "warning"): Promise<void> {
    if (this.#warned.has(what)) return;
    this.#warned.add(what);
    await this.#emit("user:notification", { message, level, source: this.#id });
  }

  async #emit(event: string, data: JsonObject): Promise<void> {
    await this.#coordinator.hooks.emit(event, data);
  }
}

/** Tokens that go with the view: tool schemas, injections. */
function extrasOf({ tools, injections }: RequestOptions, forms: MessageVariants): number {
  return (injections ?? []).reduce((sum, message) => sum + forms.count(message), forms.meter.tools(tools));
}
