/**
 * Compares entries of a replay: which ones correspond, and the first difference between two. Ignores the
 * run's id and fields that depend on the clock. If the log has redacted text, also ignores fields that were
 * computed from the text before redaction.
 */
import type { DraftEntry, Entry } from "../../kernel/host.ts";
import { isObject, type JsonObject } from "../../sdk/json.ts";
import type { Difference } from "../types.ts";
import { callOf } from "./recorded_events.ts";

/** Returns the first difference of two values, or null. Absent and undefined are equal. */
export function firstDifference(
  recorded: unknown,
  replayed: unknown,
  is_redacted: boolean,
  path = "",
): Omit<Difference, "seq"> | null {
  if (Object.is(recorded, replayed)) return null;
  const is_list = Array.isArray(recorded) && Array.isArray(replayed);
  if (!is_list && !(isObject(recorded) && isObject(replayed))) {
    return { path, recorded: recorded ?? null, replayed: replayed ?? null };
  }
  const [a, b] = [recorded, replayed] as [JsonObject, JsonObject]; // a list has its indexes as keys
  for (const key of new Set([...Object.keys(a), ...Object.keys(b)])) {
    if (dependsOnClock(key) || is_redacted && DERIVED_FROM_TEXT.has(key)) continue;
    const place = is_list ? `${path}[${key}]` : path === "" ? key : `${path}.${key}`;
    const found = firstDifference(a[key], b[key], is_redacted, place);
    if (found) return found;
  }
  return null;
}

/** Hashes, lengths and previews of texts; a preview can end in the middle of `[REDACTED]`. */
const DERIVED_FROM_TEXT: ReadonlySet<string> = new Set([
  "args_hash",
  "length",
  "response_preview",
  "context",
  "before_tokens",
  "after_tokens",
]);

/** Returns whether a field depends on the clock or the run. */
function dependsOnClock(key: string): boolean {
  return key === "ts" || key === "run_id" || key === "timestamp" || key.endsWith("_ms") ||
    key.endsWith("_at");
}

/** Returns whether an emitted entry corresponds to a recorded one, regardless of its data. */
export function isSame(emitted: DraftEntry, next: Entry): boolean {
  return emitted.event === next.event && emitted.session_id === next.session_id &&
    callOf(emitted.data) === callOf(next.data);
}

/** Returns an entry without what the log adds; for a cancellation, also without its iteration. */
export function comparableEntry({ seq: _, ts: __, run_id: ___, iteration, ...rest }: Entry): JsonObject {
  return rest.event === "cancel:requested" || iteration === undefined ? { ...rest } : { ...rest, iteration };
}
