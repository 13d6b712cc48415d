/** Limits the number of values of a label whose values come from plans. */

/** Value of a label beyond the limit. */
const OTHER = "other";
/** Longest value. */
const MAX_CHARS = 64;

/** The values of one label: known ones, the first `max` others, and `other` for the rest. */
export class BoundedLabel {
  readonly #values: Set<string>;
  #free: number;

  constructor(known: Iterable<string>, max: number) {
    this.#values = new Set(known);
    this.#free = max;
  }

  /** Returns the value, or `other` when there are too many or it is not a short text. */
  value(text: unknown): string {
    if (typeof text !== "string" || text === "" || text.length > MAX_CHARS) return OTHER;
    if (this.#values.has(text)) return text;
    if (this.#free === 0) return OTHER;
    this.#free--;
    this.#values.add(text);
    return text;
  }
}

/** Returns a value of a log entry if it is a text, else an empty one. Modules may emit any JSON. */
export function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
