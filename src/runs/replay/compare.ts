/** The first difference between two entries. What the clock says is left out, and the id of the run (architecture.md, Replay). */
import { isObject, type JsonObject } from "../../sdk/json.ts";

/** Where two logs part. */
export interface Difference {
  /** Number of the recorded entry. */
  seq: number;
  /** Place in the entry, such as `data.tool_input.n`; empty: the entry itself. */
  path: string;
  recorded: unknown;
  replayed: unknown;
}

/** A difference without its entry. */
export type Place = Omit<Difference, "seq">;

/** Returns the first difference of two values, or null; absent and undefined are the same. */
export function firstDifference(recorded: unknown, replayed: unknown, path = ""): Place | null {
  if (Object.is(recorded, replayed)) return null;
  if (Array.isArray(recorded) && Array.isArray(replayed)) {
    for (let index = 0; index < Math.max(recorded.length, replayed.length); index++) {
      const found = firstDifference(recorded[index], replayed[index], `${path}[${index}]`);
      if (found) return found;
    }
    return null;
  }
  if (isObject(recorded) && isObject(replayed)) return differenceOfFields(recorded, replayed, path);
  return { path, recorded: recorded ?? null, replayed: replayed ?? null };
}

function differenceOfFields(recorded: JsonObject, replayed: JsonObject, path: string): Place | null {
  for (const key of new Set([...Object.keys(recorded), ...Object.keys(replayed)])) {
    if (isOfTheClock(key)) continue;
    const found = firstDifference(recorded[key], replayed[key], path === "" ? key : `${path}.${key}`);
    if (found) return found;
  }
  return null;
}

/** `ts`, `*_ms` and `run_id` (architecture.md); `expires_at` and the `timestamp` of a stored injection are the clock's too. */
function isOfTheClock(key: string): boolean {
  return key === "ts" || key === "run_id" || key === "timestamp" || key.endsWith("_ms") ||
    key.endsWith("_at");
}
