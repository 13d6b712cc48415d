/**
 * Plans a compaction in eight levels, as Amplifier does, and then removes protection until the view fits.
 * Pure: the same transcript, goal and settings give the same plan.
 */
import { type Message, messageTokens, textOf } from "../base.ts";
import type { Config } from "./config.ts";
import { isPinned } from "./request_message.ts";
import type { MessageVariants } from "./shorten.ts";
import {
  type CompactionDecisions,
  entriesOf,
  type Entry,
  type Form,
  type MessageGroup,
  type Transcript,
} from "./transcript.ts";

/** Settings of the levels. */
type CompactionConfig = Pick<Config, "protected_recent" | "protected_tool_results" | "truncate_chars">;

/** Wanted size of a view, in tokens. */
export interface SizeTarget {
  /** Size at which the compaction stops. */
  readonly target: number;
  /** Maximum size; protected messages are shortened too when the levels do not reach it. */
  readonly limit: number;
}

/** Minimum characters of a truncated result; fewer are useless to a model. */
const FEWEST_CHARS = 80;

/** Action of one level: truncates a range of the tool results, or leaves out old messages. */
type CompactionLevel =
  | { readonly level: number; readonly truncate: readonly [from: number, to: number] }
  /** `protect` is the share of `protected_recent` that stays protected. */
  | { readonly level: number; readonly protect: number };

const LEVELS: readonly CompactionLevel[] = [
  { level: 1, truncate: [0, 0.25] },
  { level: 2, truncate: [0.25, 0.5] },
  { level: 3, protect: 1 },
  { level: 4, truncate: [0.5, 0.75] },
  { level: 5, protect: 0.6 },
  { level: 6, truncate: [0, 1] },
  { level: 7, protect: 0.3 },
];

/** Share of `protected_recent` that stays protected at level 8. */
const LAST_PROTECTION = 0.3;

/** Returns the plan to reach the goal. It may fall short of the goal: see `tokens`. */
export function planCompaction(
  transcript: Transcript,
  goal: SizeTarget,
  config: CompactionConfig,
): CompactionCandidate {
  const candidate = new CompactionCandidate(transcript, config);
  candidate.reduce(goal);
  return candidate;
}

/**
 * What a compaction would leave out or shorten, and the resulting size. Changes nothing in the transcript.
 */
export class CompactionCandidate implements CompactionDecisions {
  readonly #forms: MessageVariants;
  readonly #config: CompactionConfig;
  /** Highest level that was applied, 1 to 8. */
  level = 0;
  readonly removed = new Set<MessageGroup>();
  readonly changed = new Map<Entry, Form>();
  /** Tokens of the resulting view. */
  tokens: number;
  /** Messages that would additionally be left out. */
  messages_removed = 0;
  /** Units that stay in the view. */
  #units: MessageGroup[];
  readonly #first_human: MessageGroup | undefined;
  readonly #last_human: MessageGroup | undefined;
  /** The last calls and their results if no human message follows: the model has not read them yet. */
  readonly #tail: MessageGroup | undefined;

  /** Creates a candidate that keeps everything. */
  constructor(transcript: Transcript, config: CompactionConfig) {
    this.#forms = transcript.forms;
    this.#config = config;
    this.tokens = transcript.tokens;
    this.#units = [...transcript.units];
    this.#first_human = this.#units.find((unit) => unit.kind === "human");
    this.#last_human = this.#units.findLast((unit) => unit.kind === "human");
    const last = this.#units.findLast((unit) => unit.kind !== "other");
    this.#tail = last?.kind === "group" ? last : undefined;
  }

  /** Tool results that would additionally be truncated. */
  get messages_truncated(): number {
    return this.#newlyShort().filter((entry) => entry.message.role !== "user").length;
  }

  /** User messages that would additionally become stubs. */
  get user_messages_stubbed(): number {
    return this.#newlyShort().filter((entry) => entry.message.role === "user").length;
  }

  #newlyShort(): Entry[] {
    return this.#units.flatMap(entriesOf).filter((entry) =>
      this.changed.has(entry) && entry.kept_chars === null
    );
  }

  /** Applies one level after the other until the target is reached. */
  reduce(goal: SizeTarget): void {
    const { protected_recent } = this.#config;
    for (const step of LEVELS) {
      this.level = step.level;
      if ("truncate" in step) this.#truncateRange(goal.target, step.truncate);
      else this.#removeOld(goal.target, protected_recent * step.protect);
      if (this.tokens <= goal.target) return;
    }
    this.level = 8;
    this.#reduceHumans(goal.target, protected_recent * LAST_PROTECTION);
    if (this.tokens > goal.limit) this.#forceFit(goal);
  }

  #truncateRange(target: number, [from, to]: readonly [number, number]): void {
    const results = this.#results;
    const count = results.length + this.#tailResults().length;
    const end = Math.min(Math.floor(count * to), results.length - this.#protectedResults());
    const { truncate_chars } = this.#config;
    for (const entry of results.slice(Math.floor(count * from), Math.max(0, end))) {
      if (this.tokens <= target) return;
      if ((this.#formOf(entry).kept_chars ?? Infinity) > truncate_chars) {
        this.#truncate(entry, truncate_chars);
      }
    }
  }

  /** The remaining tool results, oldest first, without those of the tail. */
  get #results(): Entry[] {
    return this.#units.filter((unit) => unit !== this.#tail).flatMap((unit) => entriesOf(unit).slice(1));
  }

  #tailResults(): Entry[] {
    return this.#tail ? entriesOf(this.#tail).slice(1) : [];
  }

  /** Returns how many results outside the tail are protected: those of the tail come after them. */
  #protectedResults(): number {
    return Math.max(0, this.#config.protected_tool_results - this.#tailResults().length);
  }

  #removeOld(target: number, share: number): void {
    const recent = this.#recentUnits(share);
    const kept = this.#protectedResults();
    const results = new Set(kept > 0 ? this.#results.slice(-kept) : []);
    const old = this.#units.filter((unit) =>
      this.#isRemovable(unit) && !recent.has(unit) &&
      !entriesOf(unit).some((entry) => results.has(entry)) // a protected result protects its whole group
    );
    this.#removeUntil(target, old);
    this.#stubHumans(target, recent);
  }

  /**
   * Returns the units with the last `share` of the messages, including a unit that is partly in that share.
   */
  #recentUnits(share: number): ReadonlySet<MessageGroup> {
    const count = this.#units.reduce((sum, unit) => sum + entriesOf(unit).length, 0);
    const boundary = Math.floor(count * (1 - share));
    const recent = new Set<MessageGroup>();
    let end = 0;
    for (const unit of this.#units) {
      end += entriesOf(unit).length;
      if (end > boundary) recent.add(unit);
    }
    return recent;
  }

  /** Returns whether a unit may be left out. */
  #isRemovable(unit: MessageGroup): boolean {
    return unit.kind !== "human" && unit !== this.#tail &&
      !entriesOf(unit).some((entry) => isPinned(entry.message));
  }

  #middleHumans(): MessageGroup[] {
    return this.#units.filter((unit) =>
      unit.kind === "human" && unit !== this.#first_human && unit !== this.#last_human
    );
  }

  #stubHumans(target: number, recent: ReadonlySet<MessageGroup>): void {
    for (const unit of this.#middleHumans()) {
      if (this.tokens <= target) return;
      if (!recent.has(unit)) this.#stub(unit.head);
    }
  }

  /**
   * Applies level 8: the first human message becomes a stub unless it is also the last, and old stubs are
   * left out.
   */
  #reduceHumans(target: number, share: number): void {
    if (this.#first_human && this.#first_human !== this.#last_human) this.#stub(this.#first_human.head);
    const recent = this.#recentUnits(share);
    const stubs = this.#middleHumans().filter((unit) =>
      !recent.has(unit) && this.#formOf(unit.head).kept_chars !== null
    );
    this.#removeUntil(target, stubs);
  }

  /**
   * Shortens protected messages when level 8 does not suffice, the least valuable first: protected results,
   * protected messages, human messages between the first and the last. Stops half-way between target and
   * limit, so that the next request needs no compaction. Finally truncates the results of the tail, as little
   * as possible.
   */
  #forceFit(goal: SizeTarget): void {
    const enough = Math.floor((goal.target + goal.limit) / 2);
    for (const entry of this.#results) {
      if (this.tokens <= enough) return;
      this.#truncate(entry, this.#config.truncate_chars);
    }
    this.#removeUntil(enough, this.#units.filter((unit) => this.#isRemovable(unit)));
    this.#stubHumans(enough, new Set());
    this.#removeUntil(enough, this.#middleHumans());
    if (this.tokens > goal.limit) this.#squeezeTail(goal.limit);
  }

  /**
   * Truncates the results of the tail, the longest ones most, until the view fits: those with images last,
   * because the model has not seen them.
   */
  #squeezeTail(limit: number): void {
    const results = this.#tailResults();
    this.#squeeze(results.filter(({ message }) => typeof message.content === "string"), limit);
    this.#squeeze(results, limit);
  }

  #squeeze(results: readonly Entry[], limit: number): void {
    const fewest = Math.min(FEWEST_CHARS, this.#config.truncate_chars);
    const texts = results.map((entry) => textOf(entry.message.content).length);
    for (let chars = Math.max(fewest + 1, ...texts); this.tokens > limit;) {
      if (chars <= fewest) return;
      // the excess relative to the current tokens gives the new length; each round takes at least a tenth, so
      // that it ends soon
      const now = results.reduce((sum, entry) => sum + this.#formOf(entry).tokens, 0);
      const share = Math.max(0, 1 - (this.tokens - limit) / Math.max(1, now));
      chars = Math.max(fewest, Math.min(Math.floor(chars * share * 0.95), Math.floor(chars * 0.9)));
      for (const entry of results) this.#truncate(entry, chars);
    }
  }

  #removeUntil(target: number, candidates: readonly MessageGroup[]): void {
    const out = new Set<MessageGroup>();
    for (const unit of candidates) {
      if (this.tokens <= target) break;
      out.add(unit);
      this.removed.add(unit);
      this.messages_removed += entriesOf(unit).length;
      for (const entry of entriesOf(unit)) this.tokens -= this.#formOf(entry).tokens;
    }
    if (out.size > 0) this.#units = this.#units.filter((unit) => !out.has(unit));
  }

  /** Returns the resulting form of an entry. */
  #formOf(entry: Entry): Form {
    return this.changed.get(entry) ?? entry;
  }

  /** Truncates a tool result to this number of characters, if that saves tokens. */
  #truncate(entry: Entry, chars: number): void {
    this.#shorten(entry, this.#forms.truncated(entry, chars), chars);
  }

  /** Replaces a user message by a stub, if that saves tokens. */
  #stub(entry: Entry): void {
    this.#shorten(entry, this.#forms.stubbed(entry), 0);
  }

  #shorten(entry: Entry, visible: Message | null, kept_chars: number): void {
    if (!visible) return;
    const before = this.#formOf(entry);
    const tokens = messageTokens(visible);
    if (tokens >= before.tokens) return;
    this.tokens += tokens - before.tokens;
    this.changed.set(entry, { visible, tokens, kept_chars });
  }
}
