/** What every document keeps to: its size, and the keys that it may not have. */

export interface DocumentLimits {
  /** Size of the text in UTF-8 bytes. */
  max_bytes: number;
  /** Number of values. An alias counts as the values that it refers to. */
  max_nodes: number;
  /** Nesting of lists and objects. */
  max_depth: number;
  /** Number of uses of YAML anchors. */
  max_aliases: number;
}

/** Limits of plans and of `preamp.yaml`: 256 KiB, 10,000 values, depth 32, 50 aliases. */
export const DOCUMENT_LIMITS: Readonly<DocumentLimits> = {
  max_bytes: 256 * 1024,
  max_nodes: 10_000,
  max_depth: 32,
  max_aliases: 50,
};

/** Keys that reach an object's prototype and are refused. */
export const FORBIDDEN_KEYS: ReadonlySet<string> = new Set(["__proto__", "constructor", "prototype"]);

/**
 * Returns true if `text` has more than `max` bytes in UTF-8. Encodes it only when the length in characters
 * does not decide.
 */
export function exceedsBytes(text: string, max: number): boolean {
  if (text.length > max) return true;
  if (text.length * 3 <= max) return false;
  return new TextEncoder().encode(text).byteLength > max;
}
