/** How many runs there may be at once, of all callers and of one; those that start or wait in a queue count too. */
import { PreampError } from "../../sdk/errors.ts";
import type { Caller, RunRequest } from "../types.ts";

/** Limits of admission (trust.md). */
export interface AdmissionLimits {
  max_concurrent_runs: number;
  max_runs_per_key: number;
}

/** A run's slot among those that are admitted; give it back when the run has ended. */
export interface AdmissionSlot {
  readonly caller: Caller;
  readonly session_id: string;
}

/** The places that are taken. */
export class Admission {
  readonly #slots = new Set<AdmissionSlot>();
  readonly #limitsOf: (caller: Caller) => AdmissionLimits;

  constructor(limitsOf: (caller: Caller) => AdmissionLimits) {
    this.#limitsOf = limitsOf;
  }

  /**
   * Takes a slot. A run that takes over from the one in its session needs none beside it; one that was `admitted` before, by
   * a process that is gone, needs no leave.
   * @throws {PreampError} `too_many_runs`.
   */
  reserve(
    caller: Caller,
    session_id: string,
    if_busy: RunRequest["if_busy"],
    admitted = false,
  ): AdmissionSlot {
    const counted = [...this.#slots].filter((slot) => if_busy === "queue" || slot.session_id !== session_id);
    const own = counted.filter((slot) =>
      slot.caller.name === caller.name && slot.caller.namespace === caller.namespace
    );
    if (!admitted) {
      const limits = this.#limitsOf(caller);
      checkRoom(counted.length, "max_concurrent_runs", limits);
      checkRoom(own.length, "max_runs_per_key", limits);
    }
    const slot = { caller, session_id };
    this.#slots.add(slot);
    return slot;
  }

  /** Gives a slot back. */
  release(slot: AdmissionSlot): void {
    this.#slots.delete(slot);
  }
}

function checkRoom(taken: number, limit: keyof AdmissionLimits, limits: AdmissionLimits): void {
  const most = limits[limit];
  if (taken >= most) throw new PreampError("too_many_runs", `Cannot start a run: ${limit} is ${most}`);
}
