/**
 * Plans a compaction in eight levels, as Amplifier does, and then removes protection until the view fits.
 * Pure: the same transcript, goal and settings give the same plan.
 */
import type { Message } from "../base.ts";
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

/** A candidate for a compaction: what it would leave out or shorten, and the resulting size. Changes nothing. */
export class CompactionCandidate implements CompactionDecisions {
  readonly #forms: MessageVariants;
  /** Highest level that was applied, 1 to 8. */
  level = 0;
  readonly removed = new Set<MessageGroup>();
  readonly changed = new Map<Entry, Form>();
  /** Tokens of the resulting view. */
  tokens: number;
  /** Messages that would additionally be left out. */
  messages_removed = 0;
  /** Units that stay in the view. */
  units: MessageGroup[];
  readonly first_human: MessageGroup | undefined;
  readonly last_human: MessageGroup | undefined;
  /** The last calls and their results if no human message follows: the model has not read them yet. */
  readonly tail: MessageGroup | undefined;

  constructor(transcript: Transcript) {
    this.#forms = transcript.forms;
    this.tokens = transcript.tokens;
    this.units = [...transcript.units];
    this.first_human = this.units.find((unit) => unit.kind === "human");
    this.last_human = this.units.findLast((unit) => unit.kind === "human");
    const last = this.units.findLast((unit) => unit.kind !== "other");
    this.tail = last?.kind === "group" ? last : undefined;
  }

  /** The remaining tool results, oldest first, without those of the tail. */
  get results(): Entry[] {
    return this.units.filter((unit) => unit !== this.tail).flatMap((unit) => entriesOf(unit).slice(1));
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
    return this.units.flatMap(entriesOf).filter((entry) =>
      this.changed.has(entry) && entry.kept_chars === null
    );
  }

  /** Returns whether a unit may be left out. */
  isRemovable(unit: MessageGroup): boolean {
    return unit.kind !== "human" && unit !== this.tail &&
      !entriesOf(unit).some((entry) => isPinned(entry.message));
  }

  /** Returns the resulting form of an entry. */
  formOf(entry: Entry): Form {
    return this.changed.get(entry) ?? entry;
  }

  /** Returns the resulting tokens of a unit. */
  tokensOf(unit: MessageGroup): number {
    return entriesOf(unit).reduce((sum, entry) => sum + this.formOf(entry).tokens, 0);
  }

  remove(units: ReadonlySet<MessageGroup>): void {
    for (const unit of units) {
      this.tokens -= this.tokensOf(unit);
      this.messages_removed += entriesOf(unit).length;
      this.removed.add(unit);
    }
    if (units.size > 0) this.units = this.units.filter((unit) => !units.has(unit));
  }

  /** Truncates a tool result to this number of characters, if that saves tokens. */
  truncate(entry: Entry, chars: number): void {
    this.#shorten(entry, this.#forms.truncated(entry, chars), chars);
  }

  /** Replaces a user message by a stub, if that saves tokens. */
  stub(entry: Entry): void {
    this.#shorten(entry, this.#forms.stubbed(entry), 0);
  }

  #shorten(entry: Entry, visible: Message | null, kept_chars: number): void {
    if (!visible) return;
    const before = this.formOf(entry);
    const tokens = this.#forms.count(visible);
    if (tokens >= before.tokens) return;
    this.tokens += tokens - before.tokens;
    this.changed.set(entry, { visible, tokens, kept_chars });
  }
}

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
  const candidate = new CompactionCandidate(transcript);
  for (const step of LEVELS) {
    candidate.level = step.level;
    if ("truncate" in step) truncateRange(candidate, goal.target, config, step.truncate);
    else removeOld(candidate, goal.target, config, config.protected_recent * step.protect);
    if (candidate.tokens <= goal.target) return candidate;
  }
  candidate.level = 8;
  reduceHumans(candidate, goal.target, config.protected_recent * LAST_PROTECTION);
  if (candidate.tokens > goal.limit) forceFit(candidate, goal, config);
  return candidate;
}

function truncateRange(
  candidate: CompactionCandidate,
  target: number,
  config: CompactionConfig,
  [from, to]: readonly [number, number],
): void {
  const results = candidate.results;
  const count = results.length + tailResults(candidate);
  const end = Math.min(
    Math.floor(count * to),
    results.length - protectedResults(candidate, config.protected_tool_results),
  );
  for (const entry of results.slice(Math.floor(count * from), Math.max(0, end))) {
    if (candidate.tokens <= target) return;
    if ((candidate.formOf(entry).kept_chars ?? Infinity) <= config.truncate_chars) continue;
    candidate.truncate(entry, config.truncate_chars);
  }
}

/** Returns how many results outside the tail are among the last `wanted` results. */
function protectedResults(candidate: CompactionCandidate, wanted: number): number {
  return Math.max(0, wanted - tailResults(candidate));
}

function tailResults(candidate: CompactionCandidate): number {
  return candidate.tail ? entriesOf(candidate.tail).length - 1 : 0;
}

function removeOld(
  candidate: CompactionCandidate,
  target: number,
  config: CompactionConfig,
  share: number,
): void {
  const recent = recentUnits(candidate, share);
  const kept = protectedResults(candidate, config.protected_tool_results);
  const results = new Set(kept > 0 ? candidate.results.slice(-kept) : []);
  const old = candidate.units.filter((unit) =>
    candidate.isRemovable(unit) && !recent.has(unit) &&
    !entriesOf(unit).some((entry) => results.has(entry)) // a protected result protects its whole group
  );
  removeUntil(candidate, target, old);
  stubHumans(candidate, target, recent);
}

/** Returns the units with the last `share` of the messages, including a unit that is partly in that share. */
function recentUnits(candidate: CompactionCandidate, share: number): ReadonlySet<MessageGroup> {
  const count = candidate.units.reduce((sum, unit) => sum + entriesOf(unit).length, 0);
  const boundary = Math.floor(count * (1 - share));
  const recent = new Set<MessageGroup>();
  let end = 0;
  for (const unit of candidate.units) {
    end += entriesOf(unit).length;
    if (end > boundary) recent.add(unit);
  }
  return recent;
}

function middleHumans(candidate: CompactionCandidate): MessageGroup[] {
  return candidate.units.filter((unit) =>
    unit.kind === "human" && unit !== candidate.first_human && unit !== candidate.last_human
  );
}

function stubHumans(candidate: CompactionCandidate, target: number, recent: ReadonlySet<MessageGroup>): void {
  for (const unit of middleHumans(candidate)) {
    if (candidate.tokens <= target) return;
    if (!recent.has(unit)) candidate.stub(unit.head);
  }
}

/**
 * Applies level 8: the first human message becomes a stub unless it is also the last, and old stubs are left
 * out.
 */
function reduceHumans(candidate: CompactionCandidate, target: number, share: number): void {
  const { first_human, last_human } = candidate;
  if (first_human && first_human !== last_human) candidate.stub(first_human.head);
  const recent = recentUnits(candidate, share);
  const stubs = middleHumans(candidate).filter((unit) =>
    !recent.has(unit) && candidate.formOf(unit.head).kept_chars !== null
  );
  removeUntil(candidate, target, stubs);
}

function removeUntil(
  candidate: CompactionCandidate,
  target: number,
  candidates: readonly MessageGroup[],
): void {
  const out = new Set<MessageGroup>();
  let tokens = candidate.tokens;
  for (const unit of candidates) {
    if (tokens <= target) break;
    out.add(unit);
    tokens -= candidate.tokensOf(unit);
  }
  candidate.remove(out);
}

/**
 * Shortens protected messages when level 8 does not suffice, the least valuable first: protected results,
 * protected messages, human messages between the first and the last. Stops half-way between target and limit,
 * so that the next request needs no compaction. Finally truncates the results of the tail, as little as
 * possible.
 */
function forceFit(candidate: CompactionCandidate, goal: SizeTarget, config: CompactionConfig): void {
  const enough = Math.floor((goal.target + goal.limit) / 2);
  for (const entry of candidate.results) {
    if (candidate.tokens <= enough) return;
    candidate.truncate(entry, config.truncate_chars);
  }
  removeUntil(candidate, enough, candidate.units.filter((unit) => candidate.isRemovable(unit)));
  stubHumans(candidate, enough, new Set());
  removeUntil(candidate, enough, middleHumans(candidate));
  if (candidate.tokens > goal.limit) squeezeTail(candidate, goal.limit, config.truncate_chars);
}

/** Truncates the results of the tail, the longest ones most, until the view fits. */
function squeezeTail(candidate: CompactionCandidate, limit: number, truncate_chars: number): void {
  const results = candidate.tail ? entriesOf(candidate.tail).slice(1) : [];
  const fewest = Math.min(FEWEST_CHARS, truncate_chars);
  for (let chars = longest(results.map((entry) => entry.message.content)); candidate.tokens > limit;) {
    if (chars <= fewest) return;
    // the excess relative to the current tokens gives the new length; each round takes at least a tenth, so
    // that it ends soon
    const now = results.reduce((sum, entry) => sum + candidate.formOf(entry).tokens, 0);
    const share = Math.max(0, 1 - (candidate.tokens - limit) / Math.max(1, now));
    chars = Math.max(fewest, Math.min(Math.floor(chars * share * 0.95), Math.floor(chars * 0.9)));
    for (const entry of results) candidate.truncate(entry, chars);
  }
}

function longest(contents: readonly unknown[]): number {
  return Math.max(
    0,
    ...contents.map((content) =>
      typeof content === "string" ? content.length : JSON.stringify(content).length
    ),
  );
}
