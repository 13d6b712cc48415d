/**
 * Slots of callers over all servers of a store. A caller that may have n runs at once has n slots; each is a lease, so
 * that exactly one server has it, and the slots of a crashed server become free.
 */
import type { Caller } from "../types.ts";
import type { HeldLeases } from "./held_leases.ts";

/** The slots of this process. */
export class CallerSlots {
  readonly #held: HeldLeases;
  /** Names of the slots that this process has or tries to acquire. */
  readonly #own = new Set<string>();
  /** Slots that this process gives up at the moment. */
  readonly #releasing = new Map<string, Promise<void> | void>();
  /** Fraction of a caller's slots before the first one that this process tries: servers begin at different ones. */
  readonly #offset = Math.random();

  constructor(held: HeldLeases) {
    this.#held = held;
  }

  /** Acquires one of the `limit` slots of a caller; resolves to its name, or to null when all are in use. */
  async take({ namespace, name }: Caller, limit: number): Promise<string | null> {
    const first = Math.floor(this.#offset * limit);
    for (let tries = 0; tries < limit; tries++) {
      const slot = `slot/${JSON.stringify([namespace, name, (first + tries) % limit])}`;
      await this.#releasing.get(slot); // its run has ended: the caller may start another one
      if (this.#own.has(slot)) continue;
      this.#own.add(slot);
      let taken = false;
      try {
        taken = await this.#held.acquire(slot, false);
      } finally {
        if (!taken) this.#own.delete(slot);
      }
      if (taken) return slot;
    }
    return null;
  }

  /** Frees a slot. */
  async release(slot: string): Promise<void> {
    const released = this.#held.release(slot); // never rejects
    this.#releasing.set(slot, released);
    await released;
    this.#releasing.delete(slot);
    this.#own.delete(slot);
  }
}
