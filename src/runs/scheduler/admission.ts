/**
 * Limits the number of concurrent runs of this process: in total and for each caller. Starting and queued
 * runs count. Those of a caller over all processes are counted by the commits that create them.
 */
import { PreampError } from "../../sdk/errors.ts";
import type { ServiceLimits } from "../ports.ts";
import type { AdmissionSlot } from "../run/run_options.ts";
import type { Caller, RunRequest } from "../types.ts";

type AdmissionLimits = Pick<ServiceLimits, "max_concurrent_runs" | "max_runs_per_key">;

/** Counts reserved slots. */
export class Admission {
  readonly #slots = new Set<AdmissionSlot>();
  readonly #limitsOf: (caller: Caller) => AdmissionLimits;

  constructor(limitsOf: (caller: Caller) => AdmissionLimits) {
    this.#limitsOf = limitsOf;
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
    return this.add(caller, session_id);
  }

  /** Reserves a slot for a run of a crashed process, whatever the limits. */
  add(caller: Caller, session_id: string): AdmissionSlot {
    const slot = { caller, session_id };
    this.#slots.add(slot);
    return slot;
  }

  release(slot: AdmissionSlot): void {
    this.#slots.delete(slot);
  }
}

function isOf(slot: AdmissionSlot, { name, namespace }: Caller): boolean {
  return slot.caller.name === name && slot.caller.namespace === namespace;
}

function checkRoom(taken: number, limit: keyof AdmissionLimits, limits: AdmissionLimits): void {
  if (taken >= limits[limit]) throw tooManyRuns(limit, limits);
}

/** Returns the error of a run beyond a limit of concurrent runs. */
export function tooManyRuns(limit: keyof AdmissionLimits, limits: AdmissionLimits): PreampError {
  return new PreampError("too_many_runs", `Cannot start a run: ${limit} is ${limits[limit]}`);
}
