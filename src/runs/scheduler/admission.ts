/** Limits the number of concurrent runs, in total and for each caller. Starting and queued runs count. */
import { PreampError } from "../../sdk/errors.ts";
import type { Caller, RunRequest } from "../types.ts";

/** Limits of concurrent runs. */
export interface AdmissionLimits {
  max_concurrent_runs: number;
  max_runs_per_key: number;
}

/** A slot of a run; released when the run has ended. */
export interface AdmissionSlot {
  readonly caller: Caller;
  readonly session_id: string;
}

/** Counts reserved slots. */
export class Admission {
  readonly #slots = new Set<AdmissionSlot>();
  readonly #limitsOf: (caller: Caller) => AdmissionLimits;

  constructor(limitsOf: (caller: Caller) => AdmissionLimits) {
    this.#limitsOf = limitsOf;
  }

  /**
   * Reserves a slot. A run that replaces the active run of its session does not count twice. `admitted`:
   * skips the limits (run recovered from a crashed process).
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

  /** Releases a slot. */
  release(slot: AdmissionSlot): void {
    this.#slots.delete(slot);
  }
}

function checkRoom(taken: number, limit: keyof AdmissionLimits, limits: AdmissionLimits): void {
  const most = limits[limit];
  if (taken >= most) throw new PreampError("too_many_runs", `Cannot start a run: ${limit} is ${most}`);
}
