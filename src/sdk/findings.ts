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
