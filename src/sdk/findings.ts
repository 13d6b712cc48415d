/** Collects what is wrong with data: findings with a path, a message and a hint; and the check for unknown keys. */
import { didYouMean } from "./did_you_mean.ts";
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
