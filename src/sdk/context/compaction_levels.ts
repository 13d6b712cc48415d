/**
 * How a view is made smaller: upstream's eight levels (behaviour.md §8.4), and below them what it takes to fit at any rate.
 * Pure: the same transcript, goal and knobs give the same plan.
 */
import { CompactionCandidate } from "./compaction_plan.ts";
import type { Config } from "./config.ts";
import { entriesOf, type MessageGroup, type Transcript } from "./transcript.ts";

/** The knobs that the ladder reads. */
export type CompactionConfig = Pick<Config, "protected_recent" | "protected_tool_results" | "truncate_chars">;

/** How small a view is wanted. Tokens. */
export interface SizeTarget {
  /** Where to stop. */
  readonly target: number;
  /** What it must not be above; protection yields when the levels do not get there. */
  readonly limit: number;
}

/** Fewer characters than this of a result tell a model nothing; our choice. */
const FEWEST_CHARS = 80;

/** What one level does: truncates the tool results in a stretch of the list, or leaves out old messages. */
type CompactionLevel =
  | { readonly level: number; readonly truncate: readonly [from: number, to: number] }
  /** `protect` is the part of `protected_recent` that still holds. */
  | { readonly level: number; readonly protect: number };

const RUNGS: readonly CompactionLevel[] = [
  { level: 1, truncate: [0, 0.25] },
  { level: 2, truncate: [0.25, 0.5] },
  { level: 3, protect: 1 },
  { level: 4, truncate: [0.5, 0.75] },
  { level: 5, protect: 0.6 },
  { level: 6, truncate: [0, 1] },
  { level: 7, protect: 0.3 },
];

/** Part of `protected_recent` that holds at level 8. */
const LAST_PROTECTION = 0.3;

/** Returns what to do to get the view to the goal, and the highest level that took. It may fall short: see `tokens`. */
export function planCompaction(
  transcript: Transcript,
  goal: SizeTarget,
  config: CompactionConfig,
): CompactionCandidate & { readonly level: number } {
  const attempt = new CompactionCandidate(transcript);
  return Object.assign(attempt, { level: climb(attempt, goal, config) });
}

function climb(attempt: CompactionCandidate, goal: SizeTarget, config: CompactionConfig): number {
  for (const rung of RUNGS) {
    if ("truncate" in rung) truncateStretch(attempt, goal.target, config, rung.truncate);
    else removeOld(attempt, goal.target, config, config.protected_recent * rung.protect);
    if (attempt.tokens <= goal.target) return rung.level;
  }
  reduceHumans(attempt, goal.target, config.protected_recent * LAST_PROTECTION);
  if (attempt.tokens > goal.limit) forceFit(attempt, goal, config);
  return 8;
}

function truncateStretch(
  attempt: CompactionCandidate,
  target: number,
  config: CompactionConfig,
  [from, to]: readonly [number, number],
): void {
  const results = attempt.results;
  const count = results.length + tailResults(attempt);
  const end = Math.min(
    Math.floor(count * to),
    results.length - protectedResults(attempt, config.protected_tool_results),
  );
  for (const entry of results.slice(Math.floor(count * from), Math.max(0, end))) {
    if (attempt.tokens <= target) return;
    if ((attempt.formOf(entry).kept_chars ?? Infinity) <= config.truncate_chars) continue;
    attempt.truncate(entry, config.truncate_chars);
  }
}

/** How many of the results outside the tail are among the last `wanted` of all. */
function protectedResults(attempt: CompactionCandidate, wanted: number): number {
  return Math.max(0, wanted - tailResults(attempt));
}

function tailResults(attempt: CompactionCandidate): number {
  return attempt.tail ? entriesOf(attempt.tail).length - 1 : 0;
}

function removeOld(
  attempt: CompactionCandidate,
  target: number,
  config: CompactionConfig,
  share: number,
): void {
  const recent = recentUnits(attempt, share);
  const kept = protectedResults(attempt, config.protected_tool_results);
  const results = new Set(kept > 0 ? attempt.results.slice(-kept) : []);
  const old = new Set<MessageGroup>();
  let tokens = attempt.tokens;
  for (const unit of attempt.units) {
    if (tokens <= target) break;
    if (!attempt.isRemovable(unit) || recent.has(unit)) continue;
    if (entriesOf(unit).some((entry) => results.has(entry))) continue; // one protected result keeps its group (CTX-06)
    old.add(unit);
    tokens -= attempt.tokensOf(unit);
  }
  attempt.remove(old);
  stubHumans(attempt, target, recent);
}

/** The units that hold the last `share` of the messages; one that reaches into it is in. */
function recentUnits(attempt: CompactionCandidate, share: number): ReadonlySet<MessageGroup> {
  const count = attempt.units.reduce((sum, unit) => sum + entriesOf(unit).length, 0);
  const boundary = Math.floor(count * (1 - share));
  const recent = new Set<MessageGroup>();
  let end = 0;
  for (const unit of attempt.units) {
    end += entriesOf(unit).length;
    if (end > boundary) recent.add(unit);
  }
  return recent;
}

function middleHumans(attempt: CompactionCandidate): MessageGroup[] {
  return attempt.units.filter((unit) =>
    unit.kind === "human" && unit !== attempt.first_human && unit !== attempt.last_human
  );
}

function stubHumans(attempt: CompactionCandidate, target: number, recent: ReadonlySet<MessageGroup>): void {
  for (const unit of middleHumans(attempt)) {
    if (attempt.tokens <= target) return;
    if (!recent.has(unit)) attempt.stub(unit.head);
  }
}

/** Level 8: the first human message becomes a stub unless it is the last too; old stubs go. */
function reduceHumans(attempt: CompactionCandidate, target: number, share: number): void {
  const { first_human, last_human } = attempt;
  if (first_human && first_human !== last_human) {
    attempt.stub(first_human.head);
  }
  const recent = recentUnits(attempt, share);
  const stubs = middleHumans(attempt).filter((unit) =>
    !recent.has(unit) && attempt.formOf(unit.head).kept_chars !== null
  );
  removeUntil(attempt, target, stubs);
}

function removeUntil(
  attempt: CompactionCandidate,
  target: number,
  candidates: readonly MessageGroup[],
): void {
  const out = new Set<MessageGroup>();
  let tokens = attempt.tokens;
  for (const unit of candidates) {
    if (tokens <= target) break;
    out.add(unit);
    tokens -= attempt.tokensOf(unit);
  }
  attempt.remove(out);
}

/**
 * Below level 8 protection yields, the least valuable first, down to half-way between target and limit so that the next
 * request does not start over: protected results, protected messages, human messages between the first and the last; at
 * last the results of the tail, just as far as they must.
 */
function forceFit(attempt: CompactionCandidate, goal: SizeTarget, config: CompactionConfig): void {
  const enough = Math.floor((goal.target + goal.limit) / 2);
  for (const entry of attempt.results) {
    if (attempt.tokens <= enough) return;
    attempt.truncate(entry, config.truncate_chars);
  }
  removeUntil(attempt, enough, attempt.units.filter((unit) => attempt.isRemovable(unit)));
  stubHumans(attempt, enough, new Set());
  removeUntil(attempt, enough, middleHumans(attempt));
  if (attempt.tokens > goal.limit) squeezeTail(attempt, goal.limit, config.truncate_chars);
}

/** Truncates the results of the tail, the longest most, so that together they fit. */
function squeezeTail(attempt: CompactionCandidate, limit: number, truncate_chars: number): void {
  const results = attempt.tail ? entriesOf(attempt.tail).slice(1) : [];
  const fewest = Math.min(FEWEST_CHARS, truncate_chars);
  for (let chars = longest(results.map((entry) => entry.message.content)); attempt.tokens > limit;) {
    if (chars <= fewest) return;
    // What is over, spread over what there is, says how much shorter; a little more each time, so that it ends soon.
    const now = results.reduce((sum, entry) => sum + attempt.formOf(entry).tokens, 0);
    const share = Math.max(0, 1 - (attempt.tokens - limit) / Math.max(1, now));
    chars = Math.max(fewest, Math.min(Math.floor(chars * share * 0.95), Math.floor(chars * 0.9)));
    for (const entry of results) attempt.truncate(entry, chars);
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
