/** How large a plan may be (trust.md, Limits; threats T7, T8). */

/** Bounds of one document. */
export interface DocumentLimits {
  /** UTF-8 bytes of the text. */
  max_bytes: number;
  /** Values, aliases counted as what they stand for. */
  max_nodes: number;
  /** Lists and objects inside one another. */
  max_depth: number;
  /** Uses of a YAML anchor. */
  max_aliases: number;
}

/** The bounds of plans and of `preamp.yaml`: 256 KiB, 10,000 values, depth 32, 50 aliases. */
export const DOCUMENT_LIMITS: Readonly<DocumentLimits> = {
  max_bytes: 256 * 1024,
  max_nodes: 10_000,
  max_depth: 32,
  max_aliases: 50,
};

/** Returns true when `text` has more than `max` bytes in UTF-8, without encoding what is plainly short or long. */
export function exceedsBytes(text: string, max: number): boolean {
  if (text.length > max) return true;
  if (text.length * 3 <= max) return false;
  return new TextEncoder().encode(text).byteLength > max;
}
