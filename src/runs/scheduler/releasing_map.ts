/**
 * A string-keyed Map that clears an entry's slot when it is deleted. A rehashed V8 Map keeps its old backing
 * store (and all values in it) until the next full GC, which would retain ended runs.
 */
export class ReleasingMap<T extends object> {
  /** An old backing store retains only the slot, which is empty after `delete`. */
  readonly #slots = new Map<string, { item: T | undefined }>();

  /** Returns the value of a key. */
  get(name: string): T | undefined {
    return this.#slots.get(name)?.item;
  }

  /** Returns whether the key has a value. */
  has(name: string): boolean {
    return this.#slots.has(name);
  }

  /** Sets the value of a key. */
  set(name: string, item: T): void {
    const slot = this.#slots.get(name);
    if (slot) slot.item = item;
    else this.#slots.set(name, { item });
  }

  /** Deletes a key. */
  delete(name: string): void {
    const slot = this.#slots.get(name);
    if (!slot) return;
    slot.item = undefined;
    this.#slots.delete(name);
  }

  /** Number of keys. */
  get size(): number {
    return this.#slots.size;
  }

  /** The values, oldest first. */
  get items(): T[] {
    return [...this.#slots.values()].map(({ item }) => item!); // a slot in the map has its item
  }
}
