/** A bounded memory of plans that were compiled: requests post the same plan again and again. Entries are frozen. */
import type { CompiledPlan } from "./compile.ts";

/** Least recently used entries go first, by number and by characters of their keys. */
export class PlanCache {
  readonly #entries = new Map<string, CompiledPlan>();
  readonly #maxEntries: number;
  readonly #maxChars: number;
  #chars = 0;

  /** Creates an empty cache. Defaults: 256 plans, 4 Mi characters of text. */
  constructor(options: { max_entries?: number; max_chars?: number } = {}) {
    this.#maxEntries = options.max_entries ?? 256;
    this.#maxChars = options.max_chars ?? 4 * 1024 * 1024;
  }

  /** Number of plans that are kept. */
  get size(): number {
    return this.#entries.size;
  }

  /** Returns what was compiled under `key`, and makes it the most recently used. */
  get(key: string): CompiledPlan | undefined {
    const found = this.#entries.get(key);
    if (found) {
      this.#entries.delete(key);
      this.#entries.set(key, found);
    }
    return found;
  }

  /** Keeps a plan; what is larger than the whole cache is not kept. */
  set(key: string, plan: CompiledPlan): void {
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
