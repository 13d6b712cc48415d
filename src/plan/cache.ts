/** A bounded cache of compiled plans, because clients post the same plan many times. Entries are frozen. */

/** Evicts the least recently used entries, by number of plans and by characters of their keys. */
export class PlanCache<Plan> {
  readonly #entries = new Map<string, Plan>();
  readonly #maxEntries: number;
  readonly #maxChars: number;
  #chars = 0;

  /** Creates an empty cache. Defaults: 256 plans, 4 Mi characters of text. */
  constructor(options: { max_entries?: number; max_chars?: number } = {}) {
    this.#maxEntries = options.max_entries ?? 256;
    this.#maxChars = options.max_chars ?? 4 * 1024 * 1024;
  }

  /** Number of cached plans. */
  get size(): number {
    return this.#entries.size;
  }

  /** Returns the plan cached under `key`, and makes it the most recently used. */
  get(key: string): Plan | undefined {
    const found = this.#entries.get(key);
    if (found) {
      this.#entries.delete(key);
      this.#entries.set(key, found);
    }
    return found;
  }

  /** Caches a plan. A plan whose key is longer than the whole cache is not cached. */
  set(key: string, plan: Plan): void {
    if (key.length > this.#maxChars) return;
    if (this.#entries.delete(key)) this.#chars -= key.length;
    this.#entries.set(key, plan);
    this.#chars += key.length;
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size <= this.#maxEntries && this.#chars <= this.#maxChars) break;
      this.#entries.delete(oldest);
      this.#chars -= oldest.length;
    }
  }
}
