/**
 * A string-keyed Map that clears an entry's slot when it is deleted. A rehashed V8 Map keeps its old backing
 * store (and all values in it) until the next full GC, which would retain ended runs.
 */
export class ReleasingMap<T extends object> {
  /** An old backing store retains only the slot, which is empty after `delete`. */
  readonly #slots = new Map<string, { item: T | undefined }>();

  get(name: string): T | undefined {
    return this.#slots.get(name)?.item;
  }

  has(name: string): boolean {
    return this.#slots.has(name);
  }

  set(name: string, item: T): void {
    const slot = this.#slots.get(name);
    if (slot) slot.item = item;
    else this.#slots.set(name, { item });
  }

  delete(name: string): void {
    const slot = this.#slots.get(name);
    if (!slot) return;
    slot.item = undefined;
    this.#slots.delete(name);
  }

  get size(): number {
    return this.#slots.size;
  }

  /** The values, oldest first. */
  get items(): T[] {
    return [...this.#slots.values()].map(({ item }) => item!); // a slot in the map has its item
  }
}
