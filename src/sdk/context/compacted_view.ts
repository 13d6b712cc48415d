/**
 * The history as requests see it: the transcript, the decisions of compactions, and the calibration.
 * Independent of hooks and of the storage of the history.
 */
import type { JsonObject, Message } from "../base.ts";
import { Calibration } from "./token_counter.ts";
import type { Config, NoticeVerbosity } from "./config.ts";
import { type Limits, type Proposal, proposeCompaction } from "./compaction_trigger.ts";
import { handlesOf } from "./recall_tool.ts";
import { frozenMessage, toRequestMessage } from "./request_message.ts";
import { decisionsOf, fingerprint, type Saved, shortenedOf, withPlaces } from "./saved_compaction.ts";
import type { Capped, MessageVariants } from "./shorten.ts";
import { type CompactionDecisions, entriesOf, type TokenTotals, Transcript } from "./transcript.ts";

/** The view of a history and its compactions. */
export class CompactedView {
  readonly transcript: Transcript;
  readonly calibration = new Calibration();
  /** Level of the last compaction, 1 to 8; 0 before the first. */
  level = 0;
  compactions = 0;
  messages = 0;
  readonly #config: Config;
  readonly #forms: MessageVariants;
  /** Ranges of the indexes of left-out messages. */
  #removed: [number, number][] = [];
  #notice: Message | null = null;
  #lead: Message | null = null;
  /** Indexes left out since the last {@link takeFresh}. */
  #fresh: number[] = [];

  /** Creates the view of an empty history. */
  constructor(config: Config, forms: MessageVariants, fixed: readonly Message[] = []) {
    this.#config = config;
    this.#forms = forms;
    this.transcript = new Transcript(forms, fixed);
  }

  /** Adds the next frozen message of the history; returns what a tool result lost to the size cap. */
  add(stored: Message): Capped | null {
    const index = this.messages++;
    const message = toRequestMessage(stored);
    if (!message) return null;
    const cap = this.#config.max_tool_result_bytes;
    const short = cap === null ? null : this.#forms.capped({ message, index }, cap);
    this.transcript.add(short?.message ?? message, index);
    return short?.capped ?? null;
  }

  /**
   * Returns the planned compaction, or null.
   *
   * @throws {PreampError} `context_overflow` when no compaction makes the view fit.
   */
  propose(limits: Limits): Proposal | null {
    return proposeCompaction(this.transcript, limits, this.#config);
  }

  /** Applies a compaction; returns the data of `context:compaction`. */
  commit({ plan, goal }: Proposal, limits: Limits): JsonObject {
    const { transcript, calibration } = this;
    const before_tokens = calibration.tokensOf(transcript.tokens);
    const before_messages = transcript.view.length;
    // counts of this compaction only: read before it is applied
    const { messages_removed, messages_truncated, user_messages_stubbed } = plan;
    this.level = plan.level;
    this.compactions++;
    this.#apply(plan);
    return {
      before_tokens,
      after_tokens: calibration.tokensOf(transcript.tokens),
      before_messages,
      after_messages: transcript.view.length,
      messages_removed,
      messages_truncated,
      user_messages_stubbed,
      system_messages_preserved: transcript.system_count,
      strategy_level: plan.level,
      budget: limits.provider_budget,
      target_tokens: calibration.tokensOf(goal.target),
      protected_recent: this.#config.protected_recent,
      protected_tool_results: this.#config.protected_tool_results,
    };
  }

  #apply(decisions: CompactionDecisions): void {
    const places = [...decisions.removed].flatMap(entriesOf).map((entry) => entry.index);
    const stored = places.filter((place) => place >= 0);
    this.#removed = withPlaces(this.#removed, stored);
    this.#fresh.push(...stored);
    this.transcript.apply(decisions);
    const { compaction_notice_verbosity, recall } = this.#config;
    const handles = recall && this.#removed.length > 0 ? handlesOf(this.#removed) : null;
    this.#notice = compactionNotice(
      this.transcript.totals,
      this.level,
      compaction_notice_verbosity,
      handles,
    );
  }

  /** Returns the indexes left out since the last call, in order. */
  takeFresh(): number[] {
    return this.#fresh.splice(0).sort((a, b) => a - b);
  }

  /** The message that replaces what was left out, such as a summary. */
  get lead(): Message | null {
    return this.#lead;
  }

  /** Sets the message that replaces what was left out. */
  set lead(message: Message | null) {
    this.#lead = message;
    this.transcript.setLead(message);
  }

  /** Returns the state for `session_state`; `history` are the messages that were added. */
  save(history: readonly Message[]): Saved {
    return {
      version: 1,
      messages: history.length,
      fingerprint: fingerprint(history),
      removed: this.#removed,
      shortened: shortenedOf(this.transcript),
      level: this.level,
      compactions: this.compactions,
      calibration: this.calibration.save(),
      ...(this.#lead ? { lead: this.#lead } : {}),
    };
  }

  /**
   * Restores saved decisions if the messages that were added are the ones they were made for; returns whether
   * it did.
   */
  restore(saved: Saved, history: readonly Message[]): boolean {
    if (history.length !== saved.messages || fingerprint(history) !== saved.fingerprint) return false;
    this.level = saved.level;
    this.compactions = saved.compactions;
    if (saved.calibration) this.calibration.restore(saved.calibration);
    this.#apply(decisionsOf(saved, this.transcript));
    this.#fresh = [];
    if (saved.lead) this.lead = frozenMessage(saved.lead);
    return true;
  }

  /**
   * Returns the notice if the view leaves something out, does not end with running calls, and has room for it
   * (estimated tokens).
   */
  noticeFor(room: number): Message | null {
    const { compaction_notice_enabled, compaction_notice_min_level } = this.#config;
    const notice = this.#notice;
    if (!notice || !compaction_notice_enabled || this.level < compaction_notice_min_level) return null;
    return !this.transcript.running && this.#forms.count(notice) <= room ? notice : null;
  }
}

/**
 * Returns the notice that lists for the model what its view leaves out; it is never stored. It is the last
 * message and a user message: a system message, or a notice at the front, would change the cached prefix.
 *
 * @param handles Names of what was left out; null without the recall tool.
 */
function compactionNotice(
  totals: Readonly<TokenTotals>,
  level: number,
  verbosity: NoticeVerbosity,
  handles: string | null,
): Message {
  return frozenMessage({
    role: "user",
    content: noticeText(totals, level, verbosity, handles),
    metadata: { source: "context-compaction", ephemeral: true },
  });
}

function noticeText(
  totals: Readonly<TokenTotals>,
  level: number,
  verbosity: NoticeVerbosity,
  handles: string | null,
): string {
  const recall = handles === null ? "" : ` context_recall reads back what was left out: ${handles}.`;
  if (verbosity === "minimal") {
    return `[Context note: older parts of this conversation were shortened.${recall}]`;
  }
  const facts = [
    counted(totals.removed, "message", "left out"),
    counted(totals.truncated, "tool result", "truncated"),
    counted(totals.stubbed, "user message", "abbreviated"),
  ].filter((fact) => fact !== null).join(", ");
  const text = `[Context note: older parts of this conversation were shortened to fit (${facts}). ${
    recall === "" ? "Call a tool again if you need its full result." : recall.trim()
  } This note is not from the user and needs no answer.`;
  return verbosity === "normal"
    ? `${text}]`
    : `${text} Compaction level ${level} of 8; system messages, the first request (at least its beginning) and the latest one are here.]`;
}

function counted(count: number, thing: string, change: string): string | null {
  return count === 0 ? null : `${count} ${thing}${count === 1 ? "" : "s"} ${change}`;
}
