/**
 * The first difference between two entries. Fields that the clock sets and the id of the run are left out; fields that were computed
 * from a text before it was redacted are left out of a log in which something was redacted.
 */
import { isObject, type JsonObject } from "../../sdk/json.ts";
import type { Difference } from "../types.ts";

/** A difference without its entry. */
export type DifferencePlace = Omit<Difference, "seq">;

/** Which fields are not compared: `clock` those that depend on time and run; `redacted` also those of texts that were redacted. */
export type IgnoredFields = "clock" | "redacted";

/** Returns the first difference of two values, or null; absent and undefined are the same. */
export function firstDifference(
  recorded: unknown,
  replayed: unknown,
  ignored: IgnoredFields,
  path = "",
): DifferencePlace | null {
  if (Object.is(recorded, replayed)) return null;
  if (Array.isArray(recorded) && Array.isArray(replayed)) {
    for (let index = 0; index < Math.max(recorded.length, replayed.length); index++) {
      const found = firstDifference(recorded[index], replayed[index], ignored, `${path}[${index}]`);
      if (found) return found;
    }
    return null;
  }
  if (isObject(recorded) && isObject(replayed)) return differenceOfFields(recorded, replayed, ignored, path);
  return { path, recorded: recorded ?? null, replayed: replayed ?? null };
}

function differenceOfFields(
  recorded: JsonObject,
  replayed: JsonObject,
  ignored: IgnoredFields,
  path: string,
): DifferencePlace | null {
  for (const key of new Set([...Object.keys(recorded), ...Object.keys(replayed)])) {
    if (dependsOnClock(key) || ignored === "redacted" && DERIVED_FROM_TEXT.has(key)) continue;
    const found = firstDifference(
      recorded[key],
      replayed[key],
      ignored,
      path === "" ? key : `${path}.${key}`,
    );
    if (found) return found;
  }
  return null;
}

/** Hashes and lengths, and the beginning of a text, which may end in the middle of `[REDACTED]`. */
const DERIVED_FROM_TEXT: ReadonlySet<string> = new Set([
  "args_hash",
  "length",
  "response_preview",
  "context",
  "before_tokens",
  "after_tokens",
]);

/** `ts`, `*_ms` and `run_id` (architecture.md); `expires_at` and the `timestamp` of a stored injection are the clock's too. */
function dependsOnClock(key: string): boolean {
  return key === "ts" || key === "run_id" || key === "timestamp" || key.endsWith("_ms") ||
    key.endsWith("_at");
}
