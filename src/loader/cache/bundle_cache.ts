/**
 * Bundles that were made, in memory: bounded by their length, the least recently used go first. Keys hold whose they are, so
 * that nobody meets another's.
 */
import type { ModuleBundle } from "../types.ts";

/** A bounded memory of bundles. */
export class BundleCache {
  readonly #max_bytes: number;
  readonly #bundles = new Map<string, ModuleBundle>(); // in order of use
  #bytes = 0;

  /** `max_bytes`: UTF-16 code units of code, near enough. */
  constructor(max_bytes: number) {
    this.#max_bytes = max_bytes;
  }

  /** Returns the bundle of a key. */
  get(key: string): ModuleBundle | undefined {
    const bundle = this.#bundles.get(key);
    if (bundle) {
      this.#bundles.delete(key);
      this.#bundles.set(key, bundle);
    }
    return bundle;
  }

  /** Keeps a bundle, if it is not larger than all there is room for. */
  set(key: string, bundle: ModuleBundle): void {
    const known = this.#bundles.get(key);
    if (known) this.#bytes -= known.code.length;
    this.#bundles.delete(key);
    if (bundle.code.length > this.#max_bytes) return;
    this.#bundles.set(key, bundle);
    this.#bytes += bundle.code.length;
    for (const [oldest, { code }] of this.#bundles) {
      if (this.#bytes <= this.#max_bytes) break;
      this.#bundles.delete(oldest);
      this.#bytes -= code.length;
    }
  }
}
