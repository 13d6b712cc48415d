/** Copies an event's data within bounds. */

const MAX_DEPTH = 32;

/** Bounds of a copy. */
export interface Bounds {
  /** Maximum characters of one text. */
  text: number;
  /** Approximate maximum characters of the copy. */
  total: number;
}

/** Returns the copy and whether anything was cut. Takes time in proportion to the copy, not to the data. */
export function shorten(data: unknown, bounds: Bounds): { value: unknown; cut: boolean } {
  const copier = new Copier(bounds);
  return { value: copier.copy(data, 0), cut: copier.cut };
}

class Copier {
  cut = false;
  readonly #bounds: Bounds;
  #left: number;

  constructor(bounds: Bounds) {
    this.#bounds = bounds;
    this.#left = bounds.total;
  }

  copy(value: unknown, depth: number): unknown {
    if (typeof value === "string") return this.#text(value, this.#bounds.text);
    if (typeof value !== "object" || value === null) {
      this.#left -= 8;
      return value;
    }
    if (depth === MAX_DEPTH) return this.#dropped();
    return Array.isArray(value) ? this.#list(value, depth) : this.#fields(value, depth);
  }

  #list(items: readonly unknown[], depth: number): unknown[] {
    const copies: unknown[] = [];
    for (const [index, item] of items.entries()) {
      if (this.#left <= 0) {
        this.cut = true;
        copies.push(`[${items.length - index} more]`);
        break;
      }
      this.#left -= 1;
      copies.push(this.copy(item, depth + 1));
    }
    return copies;
  }

  #fields(fields: object, depth: number): Record<string, unknown> {
    const copies: Record<string, unknown> = {};
    for (const [key, item] of Object.entries(fields)) {
      if (this.#left <= 0) {
        this.cut = true;
        break;
      }
      const name = this.#text(key, Math.min(this.#bounds.text, 180));
      if (name === "__proto__") continue;
      copies[name] = this.copy(item, depth + 1);
    }
    return copies;
  }

  #text(text: string, limit: number): string {
    const allowed = Math.max(0, Math.min(limit, this.#left));
    this.#left -= Math.min(text.length, allowed) + 4;
    if (text.length <= allowed) return text;
    this.cut = true;
    return `${text.slice(0, allowed).toWellFormed()}[${text.length - allowed} more]`;
  }

  #dropped(): string {
    this.cut = true;
    return "[Deep]";
  }
}
