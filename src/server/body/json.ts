/**
 * Parses untrusted JSON with `JSON.parse`, which keeps the last of two equal keys, accepts `__proto__` and
 * 200,000 levels, and does not always report the position of an error. Text with any of these is left to the
 * readers of `document.ts`.
 */
import { DOCUMENT_LIMITS, type DocumentLimits, FORBIDDEN_KEYS } from "../../plan/parse/document_limits.ts";
import { isObject, type JsonValue } from "../../sdk/json.ts";

/**
 * Returns the limits of a request body: those of the plan in it, plus a plan's default limits for the other
 * fields.
 */
export function requestLimits(plan: DocumentLimits): DocumentLimits {
  return {
    max_bytes: Infinity,
    max_nodes: Math.max(plan.max_nodes, DOCUMENT_LIMITS.max_nodes) + DOCUMENT_LIMITS.max_nodes,
    max_depth: Math.max(plan.max_depth, DOCUMENT_LIMITS.max_depth) + DOCUMENT_LIMITS.max_depth,
    max_aliases: plan.max_aliases,
  };
}

/**
 * Parses JSON text with `JSON.parse`, in a quarter of the time of `readJsonTree`. Returns undefined for text
 * that is invalid, above the limits, or has a duplicate key, a forbidden key, half of a surrogate pair or a
 * number that is not finite: `readJsonTree` and `treeData` then report it (`document.ts`).
 */
export function parsePlainJson(text: string, plan: DocumentLimits): JsonValue | undefined {
  let data: JsonValue;
  try {
    data = JSON.parse(text);
  } catch {
    return undefined;
  }
  const counter = new PlainData(requestLimits(plan));
  // JSON.parse keeps the last of two equal keys, so the text then has more keys than the data.
  return counter.add(data, 0) && counter.keys === countKeys(text) ? data : undefined;
}

/** Checks parsed data in one walk and counts its keys. */
class PlainData {
  keys = 0;
  #nodes = 0;
  readonly #limits: DocumentLimits;

  constructor(limits: DocumentLimits) {
    this.#limits = limits;
  }

  /** Returns false for data that is above the limits or that only the tree may report. */
  add(value: JsonValue, depth: number): boolean {
    if (++this.#nodes > this.#limits.max_nodes) return false;
    if (typeof value === "string") return value.isWellFormed();
    if (typeof value === "number") return Number.isFinite(value);
    if (typeof value !== "object" || value === null) return true;
    if (depth >= this.#limits.max_depth) return false;
    if (!isObject(value)) {
      for (const item of value) if (!this.add(item, depth + 1)) return false;
      return true;
    }
    for (const key of Object.keys(value)) {
      this.keys++;
      if (FORBIDDEN_KEYS.has(key) || !key.isWellFormed() || !this.add(value[key]!, depth + 1)) return false;
    }
    return true;
  }
}

/**
 * Returns the number of keys in valid JSON text: of its colons outside of strings. NaN if a key has an
 * escape: `JSON.parse` of V8 15.0 takes the key `"\""` for the key `"\\"` when it has parsed an object with
 * that one before.
 */
function countKeys(text: string): number {
  const has_escape = text.includes("\\");
  let keys = 0;
  let start = 0; // of the latest string
  let end = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === 0x22) {
      start = at;
      at = end = endOfString(text, at);
    } else if (code === 0x3a) {
      if (has_escape && text.slice(start, end).includes("\\")) return NaN;
      keys++;
    }
  }
  return keys;
}

/** Returns the offset of the quote that ends the string that starts at `start`. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1);; end = text.indexOf('"', end + 1)) {
    let before = end;
    while (text.charCodeAt(before - 1) === 0x5c) before--;
    if ((end - before) % 2 === 0) return end; // an even number of backslashes escapes itself, not the quote
  }
}
