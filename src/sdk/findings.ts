/**
 * Collects what is wrong with data: findings with a path, a message and a hint, such as a known name near
 * a misspelt one; and the check for unknown keys.
 */
import type { JsonObject } from "./json.ts";
import { describe, formatPath, type Path } from "./value_path.ts";

/** One problem, or possible problem, of a document. */
export interface Finding {
  /** Kind of the finding, such as `module_required`. */
  code: string;
  path: Path;
  message: string;
  hint?: string;
}

/** Collects findings in order. */
export class Findings {
  /** Findings that make the document invalid. */
  readonly errors: Finding[] = [];
  /** Findings that leave the document valid. */
  readonly warnings: Finding[] = [];

  /** Adds an error. */
  error(path: Path, code: string, message: string, hint?: string): void {
    this.errors.push({ code, path, message, ...(hint === undefined ? {} : { hint }) });
  }

  /** Adds a warning. */
  warn(path: Path, code: string, message: string, hint?: string): void {
    this.warnings.push({ code, path, message, ...(hint === undefined ? {} : { hint }) });
  }
}

/** Severity of an unknown key. A key that is nearly a known one is always an error. */
export type Unknown = "error" | "warning";

/**
 * Reports the keys of `fields` that are not in `known`. A key within two letters of a known one is always
 * an error.
 *
 * @param aliases Further accepted keys, which are not suggested.
 */
export function checkKeys(
  fields: JsonObject,
  known: ReadonlySet<string>,
  path: Path,
  findings: Findings,
  unknown: Unknown,
  aliases?: ReadonlySet<string>,
): void {
  for (const key of Object.keys(fields)) {
    if (known.has(key) || aliases?.has(key)) continue;
    const meant = didYouMean(key, known);
    const place = [...path, key];
    const where = path.length === 0 ? "the document" : formatPath(path);
    const message = `Cannot use key ${describe(key)}: ${where} has no such key`;
    if (meant !== undefined) findings.error(place, "unknown_key", message, `did you mean "${meant}"?`);
    else if (unknown === "error") {
      findings.error(place, "unknown_key", message, `use ${[...known].join(", ")}`);
    } else {
      findings.warn(
        place,
        "unknown_key",
        `${message}; it is ignored`,
        known.size === 0 ? "it has no keys" : `known keys: ${[...known].join(", ")}`,
      );
    }
  }
}

/** Maximum edits between a misspelt name and the one that is suggested. */
const MAX_DISTANCE = 2;

/**
 * Returns the known name nearest to a misspelt `name`, with an edit distance of at most {@link MAX_DISTANCE},
 * or undefined. An edit inserts, deletes or replaces a letter, or swaps two neighbours.
 */
export function didYouMean(name: string, known: Iterable<string>): string | undefined {
  let best: string | undefined;
  let bestDistance = MAX_DISTANCE + 1;
  for (const candidate of known) {
    if (Math.abs(candidate.length - name.length) >= bestDistance) continue;
    const distance = editDistance(name, candidate);
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

/** Maximum names of {@link nearestNames}. */
const MAX_NAMES = 3;

/** Least share of common words of two names that are near each other. */
const MIN_COMMON = 0.5;

/**
 * Returns the known names near another one, the nearest first: those within {@link MAX_DISTANCE} edits, and
 * those that share at least half of their words, such as `read` and `read_file`.
 */
export function nearestNames(name: string, known: Iterable<string>): string[] {
  const words = wordsOf(name);
  const scored = [...known].map((candidate) => {
    const other = wordsOf(candidate);
    const common = words.filter((word) => other.includes(word)).length;
    const is_near = name.length > MAX_DISTANCE + 1 &&
      didYouMean(name.toLowerCase(), [candidate.toLowerCase()]) !== undefined;
    const share = common === 0 ? 0 : 2 * common / (words.length + other.length);
    return { candidate, score: Math.max(share, is_near ? 0.9 : 0) };
  });
  return scored.filter(({ score }) => score >= MIN_COMMON).sort((a, b) => b.score - a.score)
    .slice(0, MAX_NAMES).map(({ candidate }) => candidate);
}

/** Returns the words of a name, in lower case. */
function wordsOf(name: string): string[] {
  return name.replace(/([a-z\d])([A-Z])/g, "$1 $2").toLowerCase().split(/[^a-z\d]+/).filter(Boolean);
}

/**
 * Returns the optimal string alignment distance: Levenshtein's, but swapping two neighbours counts as one
 * edit.
 */
function editDistance(a: string, b: string): number {
  let before: number[] = [];
  let above = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1];
      let cost = Math.min(above[j]! + 1, row[j - 1]! + 1, above[j - 1]! + (same ? 0 : 1));
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        cost = Math.min(cost, before[j - 2]! + 1);
      }
      row.push(cost);
    }
    before = above;
    above = row;
  }
  return above[b.length]!;
}
