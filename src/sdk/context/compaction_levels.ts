/**
 * Plans a compaction in eight levels, as Amplifier does, and then removes protection until the view fits.
 * Pure: the same transcript, goal and settings give the same plan.
 */
import { CompactionCandidate } from "./compaction_plan.ts";
import type { Config } from "./config.ts";
import { entriesOf, type MessageGroup, type Transcript } from "./transcript.ts";

/** Settings of the levels. */
export type CompactionConfig = Pick<Config, "protected_recent" | "protected_tool_results" | "truncate_chars">;

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

/** Returns the plan to reach the goal, and its highest level. It may fall short of the goal: see `tokens`. */
export function planCompaction(
  transcript: Transcript,
  goal: SizeTarget,
  config: CompactionConfig,
): CompactionCandidate & { readonly level: number } {
  const candidate = new CompactionCandidate(transcript);
  return Object.assign(candidate, { level: applyLevels(candidate, goal, config) });
}

function applyLevels(candidate: CompactionCandidate, goal: SizeTarget, config: CompactionConfig): number {
  for (const step of LEVELS) {
    if ("truncate" in step) truncateRange(candidate, goal.target, config, step.truncate);
    else removeOld(candidate, goal.target, config, config.protected_recent * step.protect);
    if (candidate.tokens <= goal.target) return step.level;
  }
  reduceHumans(candidate, goal.target, config.protected_recent * LAST_PROTECTION);
  if (candidate.tokens > goal.limit) forceFit(candidate, goal, config);
  return 8;
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
  const old = new Set<MessageGroup>();
  let tokens = candidate.tokens;
  for (const unit of candidate.units) {
    if (tokens <= target) break;
    if (!candidate.isRemovable(unit) || recent.has(unit)) continue;
    if (entriesOf(unit).some((entry) => results.has(entry))) continue; // a protected result protects its whole group
    old.add(unit);
    tokens -= candidate.tokensOf(unit);
  }
  candidate.remove(old);
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
  if (first_human && first_human !== last_human) {
    candidate.stub(first_human.head);
  }
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
