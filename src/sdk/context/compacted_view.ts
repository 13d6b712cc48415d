/**
 * The history as requests see it: the transcript, the decisions of compactions and their saved form, and
 * the calibration. With the same history, saved decisions give the same view, byte for byte; with another
 * history they are ignored. Independent of hooks and of the storage of the history.
 */
import { isObject, type JsonObject, type Message, messageTokens } from "../base.ts";
import { Calibration, type SavedCalibration } from "./calibration.ts";
import type { Config } from "./config.ts";
import { type Limits, type Proposal, proposeCompaction } from "./budget.ts";
import { type Capped, handlesOf, type MessageVariants } from "./shorten.ts";
import { frozenMessage, toRequestMessage } from "./request_message.ts";
import {
  type CompactionDecisions,
  entriesOf,
  type Entry,
  type Form,
  type MessageGroup,
  type TokenTotals,
  Transcript,
} from "./transcript.ts";

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
    const handles = this.#config.recall && this.#removed.length > 0 ? handlesOf(this.#removed) : null;
    this.#notice = frozenMessage({
      role: "user",
      content: noticeText(this.transcript.totals, this.level, this.#config, handles),
      metadata: { source: "context-compaction", ephemeral: true },
    });
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
    return !this.transcript.running && messageTokens(notice) <= room ? notice : null;
  }
}

/**
 * Returns the notice that lists for the model what its view leaves out; it is never stored. It is the last
 * message and a user message: a system message, or a notice at the front, would change the cached prefix.
 *
 * @param handles Names of what was left out; null without the recall tool.
 */
function noticeText(
  totals: Readonly<TokenTotals>,
  level: number,
  { compaction_notice_verbosity: verbosity }: Config,
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

/** Saved decisions. Messages are identified by their index in the history. */
interface Saved {
  readonly version: 1;
  /** Number of messages when the decisions were made; {@link fingerprint} is computed of these. */
  readonly messages: number;
  readonly fingerprint: number;
  /** Ranges of left-out messages, as first and last index. */
  readonly removed: readonly (readonly [number, number])[];
  /** Shortened messages: index and number of kept characters. */
  readonly shortened: readonly (readonly [number, number])[];
  /** Level of the last compaction. */
  readonly level: number;
  readonly compactions: number;
  /** Calibration at that time; null before the first report, and when calibration is off. */
  readonly calibration: SavedCalibration | null;
  /** The message that replaces what was left out; absent without one. */
  readonly lead?: Message;
  /** Maximum input tokens of models that refused a request; absent without one. See `LearnedLimits`. */
  readonly limits?: readonly (readonly [string, number])[];
}

/** Returns the fingerprint of a history. Not a digest: it detects mistakes, not attacks. */
function fingerprint(history: readonly Message[]): number {
  let hash = 0;
  for (const { role, content, tool_calls, tool_call_id } of history) {
    hash = withText(hash, String(role)); // fields may be missing or of another type
    hash = withNumber(hash, lengthOf(content));
    hash = withNumber(hash, lengthOf(tool_calls));
    if (typeof tool_call_id === "string") hash = withText(hash, tool_call_id);
    hash = withText(hash, typeof content === "string" ? content : "") >>> 0;
  }
  return hash;
}

/** Characters of a text that enter a fingerprint. */
const FINGERPRINT_CHARS = 64;

function lengthOf(value: unknown): number {
  return typeof value === "string" || Array.isArray(value) ? value.length : 0;
}

function withText(before: number, text: string): number {
  const length = Math.min(text.length, FINGERPRINT_CHARS);
  let hash = before;
  for (let index = 0; index < length; index++) hash = withNumber(hash, text.charCodeAt(index));
  return hash;
}

/** Adds a number to an FNV-1a hash. */
function withNumber(before: number, value: number): number {
  return Math.imul(before ^ value, 0x01000193);
}

/** Returns ranges with further indexes added, in order, adjacent ranges joined. O(n log n). */
function withPlaces(
  stretches: readonly (readonly [number, number])[],
  places: readonly number[],
): [number, number][] {
  const all = [...stretches, ...places.map((place) => [place, place] as const)].sort((a, b) => a[0] - b[0]);
  const joined: [number, number][] = [];
  for (const [first, last] of all) {
    const before = joined.at(-1);
    if (before && before[1] >= first - 1) before[1] = Math.max(before[1], last);
    else joined.push([first, last]);
  }
  return joined;
}

/** Returns the shortened messages in the form of {@link Saved}. */
function shortenedOf(transcript: Transcript): [number, number][] {
  return transcript.units.flatMap(entriesOf)
    .filter((entry) => entry.kept_chars !== null && entry.index >= 0)
    .map((entry) => [entry.index, entry.kept_chars ?? 0]);
}

/** Returns the saved decisions under a key of `session_state`, or null when they are missing or invalid. */
export function readSaved(state: JsonObject, key: string): Saved | null {
  const value = state[key];
  if (!isObject(value) || value.version !== 1) return null;
  const numbers = [value.messages, value.fingerprint, value.level, value.compactions];
  if (!numbers.every((number) => Number.isSafeInteger(number))) return null;
  const { calibration } = value;
  if (calibration !== null && !(isNumbers(calibration) && calibration.length === 4)) return null;
  if (value.lead !== undefined && !isObject(value.lead)) return null;
  return isPairs(value.removed) && isPairs(value.shortened) ? value as unknown as Saved : null; // every field was checked above
}

function isNumbers(value: unknown): value is number[] {
  return Array.isArray(value) && value.every((number) => Number.isFinite(number));
}

function isPairs(value: unknown): boolean {
  return Array.isArray(value) &&
    value.every((pair) =>
      Array.isArray(pair) && pair.length === 2 && pair.every((number) => Number.isSafeInteger(number))
    );
}

/** Returns the saved decisions for a transcript of the same history. */
function decisionsOf(saved: Saved, transcript: Transcript): CompactionDecisions {
  const removed = new Set<MessageGroup>();
  const changed = new Map<Entry, Form>();
  const kept = new Map(saved.shortened);
  let stretch = 0;
  for (const unit of transcript.units) {
    while ((saved.removed[stretch]?.[1] ?? Infinity) < unit.head.index) stretch++;
    if ((saved.removed[stretch]?.[0] ?? Infinity) <= unit.head.index) removed.add(unit);
    else {
      for (const entry of entriesOf(unit)) {
        const form = formOf(entry, kept.get(entry.index), transcript.forms);
        if (form) changed.set(entry, form);
      }
    }
  }
  return { removed, changed };
}

function formOf(entry: Entry, kept_chars: number | undefined, forms: MessageVariants): Form | null {
  if (kept_chars === undefined) return null;
  const visible = entry.message.role === "user" ? forms.stubbed(entry) : forms.truncated(entry, kept_chars);
  return visible && { visible, tokens: messageTokens(visible), kept_chars };
}
