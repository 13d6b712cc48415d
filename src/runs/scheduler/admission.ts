/** How many runs there may be at once, of all callers and of one; those that start or wait in a queue count too. */
import { PreampError } from "../../sdk/errors.ts";
import type { Caller, RunRequest } from "../types.ts";

/** Limits of admission (trust.md). */
export interface AdmissionLimits {
  max_concurrent_runs: number;
  max_runs_per_key: number;
}

/** A run's place among those that are admitted; give it back when the run has ended. */
export interface AdmissionSlot {
  readonly caller: Caller;
  readonly session_id: string;
}

/** The places that are taken. */
export class Admission {
  readonly #places = new Set<AdmissionSlot>();
  readonly #limitsOf: (caller: Caller) => AdmissionLimits;

  constructor(limitsOf: (caller: Caller) => AdmissionLimits) {
    this.#limitsOf = limitsOf;
  }

  /**
   * Takes a place. A run that takes over from the one in its session needs none beside it; one that was `admitted` before, by
   * a process that is gone, needs no leave.
   * @throws {PreampError} `too_many_runs`.
   */
  enter(caller: Caller, session_id: string, if_busy: RunRequest["if_busy"], admitted = false): AdmissionSlot {
    const others = [...this.#places].filter((place) =>
      if_busy === "queue" || place.session_id !== session_id
    );
    const own = others.filter((place) =>
      place.caller.name === caller.name && place.caller.namespace === caller.namespace
    );
    if (!admitted) {
      const limits = this.#limitsOf(caller);
      checkRoom(others.length, "max_concurrent_runs", limits);
      checkRoom(own.length, "max_runs_per_key", limits);
    }
    const place = { caller, session_id };
    this.#places.add(place);
    return place;
  }

  /** Gives a place back. */
  leave(place: AdmissionSlot): void {
    this.#places.delete(place);
  }
}

function checkRoom(taken: number, limit: keyof AdmissionLimits, limits: AdmissionLimits): void {
  const most = limits[limit];
  if (taken >= most) throw new PreampError("too_many_runs", `Cannot start a run: ${limit} is ${most}`);
}
