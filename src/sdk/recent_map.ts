/** A bounded cache by name: beyond a limit, the least recently used entries are dropped. */

/** Limits of a {@link RecentMap}. */
export interface RecentMapOptions<Value> {
  /** Default: no limit. */
  max_entries?: number;
  /** Maximum sum of the sizes of all entries; one that alone is larger is not kept. Default: no limit. */
  max_size?: number;
  /** Returns the size of an entry. Default: 0. */
  sizeOf?: (value: Value, key: string) => number;
}

/** A map of limited size. */
export class RecentMap<Value> {
  readonly #entries = new Map<string, Value>(); // least recently used first
  readonly #options: Required<RecentMapOptions<Value>>;
  #total = 0;

  constructor({ max_entries = Infinity, max_size = Infinity, sizeOf = () => 0 }: RecentMapOptions<Value>) {
    this.#options = { max_entries, max_size, sizeOf };
  }

  /** Number of entries. */
  get size(): number {
    return this.#entries.size;
  }

  /** Returns the value of a key, and makes it the most recently used. */
  get(key: string): Value | undefined {
    const value = this.#entries.get(key);
    if (value !== undefined) {
      this.#entries.delete(key);
      this.#entries.set(key, value);
    }
    return value;
  }

  /** Sets a value. */
  set(key: string, value: Value): void {
    const { max_entries, max_size, sizeOf } = this.#options;
    this.delete(key);
    if (sizeOf(value, key) > max_size) return;
    this.#entries.set(key, value);
    this.#total += sizeOf(value, key);
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size <= max_entries && this.#total <= max_size) return;
      this.delete(oldest);
    }
  }

  delete(key: string): void {
    const value = this.#entries.get(key);
    if (value === undefined) return;
    this.#entries.delete(key);
    this.#total -= this.#options.sizeOf(value, key);
  }
}
