/**
 * What is under way, by name. A map that lets go of what it held: V8 keeps the tables that a map has outgrown, and all that was
 * in them, until the next full collection. A map of runs that come and go is outgrown every few runs, so every run would
 * outlive its end by far, and be copied with all it is made of: a third of the time of a short run.
 */
export class ReleasingMap<T extends object> {
  /** What an outgrown table keeps is the slot; it is emptied when its item leaves. */
  readonly #slots = new Map<string, { item: T | undefined }>();

  /** Returns what stands under a name. */
  get(name: string): T | undefined {
    return this.#slots.get(name)?.item;
  }

  /** Returns whether something stands under a name. */
  has(name: string): boolean {
    return this.#slots.has(name);
  }

  /** Puts an item under a name, in the place of what was there. */
  set(name: string, item: T): void {
    const slot = this.#slots.get(name);
    if (slot) slot.item = item;
    else this.#slots.set(name, { item });
  }

  /** Lets go of what stands under a name. */
  delete(name: string): void {
    const slot = this.#slots.get(name);
    if (!slot) return;
    slot.item = undefined;
    this.#slots.delete(name);
  }

  /** How many items there are. */
  get size(): number {
    return this.#slots.size;
  }

  /** The items, oldest first. */
  get items(): T[] {
    return [...this.#slots.values()].map(({ item }) => item!); // a slot in the map has its item
  }
}
