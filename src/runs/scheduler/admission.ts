/**
 * Limits the number of concurrent runs: in total for this process, and for each caller over all processes
 * that share the store. Starting and queued runs count.
 */
import { PreampError } from "../../sdk/errors.ts";
import type { Clock } from "../../sdk/types.ts";
import type { ServiceLimits } from "../ports.ts";
import type { AdmissionSlot } from "../run/run_options.ts";
import type { Caller, RunRequest } from "../types.ts";
import type { HeldLeases } from "./leases.ts";

type AdmissionLimits = Pick<ServiceLimits, "max_concurrent_runs" | "max_runs_per_key">;

/** Milliseconds between two attempts to count a run that was admitted although its caller had no slot. */
const TAKE_EVERY_MS = 1_000;

/** Which slots of a caller to take. */
interface TakeOptions {
  /** Whether to take those of processes that have died, too: their runs still count. Default: false. */
  readonly of_dead: boolean;
}

/** Counts reserved slots. */
export class Admission {
  readonly #slots = new Set<AdmissionSlot>();
  readonly #limitsOf: (caller: Caller) => AdmissionLimits;
  readonly #shared: CallerSlots | null;
  readonly #clock: Clock;
  readonly #stopped = new AbortController();

  /** @param shared The slots of callers in the store. Null: no other process shares it. */
  constructor(limitsOf: (caller: Caller) => AdmissionLimits, shared: CallerSlots | null, clock: Clock) {
    this.#limitsOf = limitsOf;
    this.#shared = shared;
    this.#clock = clock;
  }

  /**
   * Reserves a slot in this process. A run that replaces the active run of its session does not count twice.
   * @throws {PreampError} `too_many_runs`.
   */
  reserve(caller: Caller, session_id: string, if_busy: RunRequest["if_busy"]): AdmissionSlot {
    let taken = 0;
    let taken_by_caller = 0;
    for (const slot of this.#slots) {
      if (if_busy !== "queue" && slot.session_id === session_id) continue;
      taken++;
      if (isOf(slot, caller)) taken_by_caller++;
    }
    const limits = this.#limitsOf(caller);
    checkRoom(taken, "max_concurrent_runs", limits);
    checkRoom(taken_by_caller, "max_runs_per_key", limits);
    return this.#add(caller, session_id);
  }

  /** Reserves a slot for a run of a crashed process, whatever the limits; it may take one of that process. */
  reserveAdmitted(caller: Caller, session_id: string): AdmissionSlot {
    const slot = this.#add(caller, session_id);
    void this.#takeLater(slot, { of_dead: true });
    return slot;
  }

  #add(caller: Caller, session_id: string): AdmissionSlot {
    const slot = { caller, session_id, taken: null };
    if (!this.#stopped.signal.aborted) this.#slots.add(slot); // else nothing would release it
    return slot;
  }

  /**
   * Counts the run of a slot against the limit of its caller in all processes. `replaces` resolves to whether
   * the run replaces the active run of its session; then it is counted when that one has ended.
   * @throws {PreampError} `too_many_runs`.
   */
  async count(slot: AdmissionSlot, replaces: () => Promise<boolean>): Promise<void> {
    if (await this.#take(slot)) return;
    if (!await replaces()) throw tooMany("max_runs_per_key", this.#limitsOf(slot.caller));
    void this.#takeLater(slot);
  }

  async #take(slot: AdmissionSlot, options?: TakeOptions): Promise<boolean> {
    if (this.#shared === null) return true;
    const { max_runs_per_key } = this.#limitsOf(slot.caller);
    const taken = await this.#shared.take(slot.caller, max_runs_per_key, options);
    if (!this.#slots.has(slot) || slot.taken !== null) { // it was released meanwhile, or has inherited a slot
      if (taken !== null) await this.#shared.release(taken);
      return true;
    }
    slot.taken = taken;
    return taken !== null;
  }

  async #takeLater(slot: AdmissionSlot, options?: TakeOptions): Promise<void> {
    try {
      while (this.#slots.has(slot) && slot.taken === null) {
        if (await this.#take(slot, options).catch(() => false)) return; // a store that fails now may answer later
        await this.#clock.after(TAKE_EVERY_MS, this.#stopped.signal);
      }
    } catch {
      // stopped
    }
  }

  /** Releases a slot; a run of the same caller that is not counted yet inherits its place. */
  async release(slot: AdmissionSlot): Promise<void> {
    this.#slots.delete(slot);
    const { taken } = slot;
    if (taken === null) return;
    slot.taken = null;
    const heir = [...this.#slots].find((other) => other.taken === null && isOf(other, slot.caller));
    if (heir) heir.taken = taken;
    else await this.#shared?.release(taken);
  }

  /** Stops counting runs and frees the slots of those that other processes continue. */
  async close(): Promise<void> {
    this.#stopped.abort();
    const taken = [...this.#slots].flatMap((slot) => slot.taken ?? []);
    this.#slots.clear();
    await Promise.all(taken.map((slot) => this.#shared?.release(slot)));
  }
}

function isOf(slot: AdmissionSlot, { name, namespace }: Caller): boolean {
  return slot.caller.name === name && slot.caller.namespace === namespace;
}

function checkRoom(taken: number, limit: keyof AdmissionLimits, limits: AdmissionLimits): void {
  if (taken >= limits[limit]) throw tooMany(limit, limits);
}

function tooMany(limit: keyof AdmissionLimits, limits: AdmissionLimits): PreampError {
  return new PreampError("too_many_runs", `Cannot start a run: ${limit} is ${limits[limit]}`);
}

/**
 * The slots of callers over all servers of a store. A caller that may have n runs at once has n slots; each
 * is a lease, so that exactly one server has it, and the slots of a crashed server become free.
 */
export class CallerSlots {
  readonly #held: HeldLeases;
  /** Names of the slots that this process has or tries to acquire. */
  readonly #own = new Set<string>();
  /** Slots that this process gives up at the moment. */
  readonly #releasing = new Map<string, Promise<void>>();
  /** Fraction of a caller's slots before the first that is tried: servers begin at different ones. */
  readonly #offset = Math.random();

  constructor(held: HeldLeases) {
    this.#held = held;
  }

  /** Acquires one of the `limit` slots of a caller; resolves to its name, or to null when all are in use. */
  async take(
    { namespace, name }: Caller,
    limit: number,
    { of_dead }: TakeOptions = { of_dead: false },
  ): Promise<string | null> {
    const first = Math.floor(this.#offset * limit);
    for (let tries = 0; tries < limit; tries++) {
      const slot = `slot/${JSON.stringify([namespace, name, (first + tries) % limit])}`;
      await this.#releasing.get(slot); // its run has ended: the caller may start another one
      if (this.#own.has(slot)) continue;
      this.#own.add(slot);
      let taken = false;
      try {
        taken = await this.#held.acquire(slot, of_dead) !== null;
      } finally {
        if (!taken) this.#own.delete(slot);
      }
      if (taken) return slot;
    }
    return null;
  }

  async release(slot: string): Promise<void> {
    const released = this.#held.release(slot); // never rejects
    this.#releasing.set(slot, released);
    await released;
    this.#releasing.delete(slot);
    this.#own.delete(slot);
  }
}
