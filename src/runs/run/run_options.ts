/** Options of a run that depend on its request. */
import type { RunnablePlan } from "../ports.ts";
import type { OrphanedRun } from "../scheduler/crash_state.ts";
import type { SavedSession } from "../storage/session_store.ts";
import type { Caller, CreateOptions, RunRequest } from "../types.ts";

/** The state of a turn that the run continues: from an entry of another run, or from before a crash. */
export interface ResumeOptions {
  /** Completed iterations of the turn. */
  iteration: number;
}

/** Options of a run that depend on the request. */
export interface NewRun {
  /** The run of a crashed process that this one continues. */
  orphan?: OrphanedRun;
  /** The turn that the run continues. Absent: the prompt starts a new turn. */
  resume?: ResumeOptions;
  caller: Caller;
  request: RunRequest;
  createOptions: CreateOptions;
  ready: RunnablePlan;
  run_id: string;
  session_id: string;
  /** The session before this run; null for a new one. */
  saved: SavedSession | null;
}
