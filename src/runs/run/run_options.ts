/** Options of a run, what its parts know of it, and what it needs from the scheduler. */
import type { RunLimitGuard } from "../../kernel/run_limits.ts";
import type { Session } from "../../kernel/session.ts";
import type { RunnablePlan, RunsDeps, SecretSink, ServiceLimits } from "../ports.ts";
import type { StoredHeaders } from "../storage/run_headers.ts";
import type { OrphanedRun } from "../storage/run_input.ts";
import type { RunProjection } from "./run_projection.ts";
import type { Awaitable, Change } from "../../store/store.ts";
import type { Lease } from "./lease.ts";
import type { Caller, CreateOptions, LastRun, Run, RunEntry, RunRequest, SavedSession } from "../types.ts";

/** The state of a turn that the run continues: from an entry of another run, or from before a crash. */
export interface ResumeOptions {
  /** Completed iterations of the turn. */
  iteration: number;
}

/** Counts a run against the limits of concurrent runs; released when the run has ended. */
export interface AdmissionSlot {
  readonly caller: Caller;
  readonly session_id: string;
}

/** Options of a run that depend on the request. */
export interface NewRun {
  /** The run of a crashed process that this one continues. */
  orphan?: OrphanedRun;
  /** The turn that the run continues. Absent: the prompt starts a new turn. */
  resume?: ResumeOptions | undefined;
  /** The entry of another run that this one continues from. Absent: the prompt is its own. */
  forked_from?: RunEntry | undefined;
  caller: Caller;
  request: RunRequest;
  createOptions: CreateOptions;
  ready: RunnablePlan;
  /** Headers of the request that the plan names. */
  headers?: StoredHeaders | undefined;
  run_id: string;
  session_id: string;
  /** The session before this run; null for a new one. */
  saved: SavedSession | null;
  slot: AdmissionSlot;
}

/** Options of `ActiveRun`. */
export interface RunOptions extends NewRun {
  deps: RunsDeps;
  scheduler: RunOwner;
  /** Changes that are committed with the run's first entry, such as its idempotency key. */
  with_run: readonly Change[];
}

/** The writes of a run, with its fence. */
export interface RunWrites {
  /** Applies all changes or none; waits while the store is away or full. @throws {ConflictError} */
  commit(changes: readonly Change[]): Awaitable<void>;
  /** Tries to apply all changes or none. `is_repeated`: whether they may have been applied already. */
  tryCommit(changes: readonly Change[], is_repeated?: boolean): Awaitable<void>;
  /** Waits for the store in an operation of it. `again`: the operation after a failure. */
  wait<T>(operation: () => Awaitable<T>, again?: () => Awaitable<T>): Awaitable<T>;
}

/** What all parts of a run know of it. */
export interface RunFacts {
  readonly id: string;
  /** Id of the run's own session. */
  readonly session_id: string;
  readonly created_at: string;
  readonly options: RunOptions;
  readonly limits: ServiceLimits;
  readonly secrets: SecretSink;
  readonly projection: RunProjection;
  readonly store: RunWrites;
  readonly limitGuard: RunLimitGuard;
  /** The lease of the run's session, or of its place in a queue; null until it is acquired. */
  readonly lease: Lease | null;
  /** The run's own session. */
  readonly session: Session;
  /** Outcome of the run for its session; null while the run is active. */
  readonly last_run: LastRun | null;
  /** Returns the run object as of the last entry. */
  current(): Run;
}

/** The scheduler of a run. Other processes may use the stored sessions too. */
export interface RunOwner {
  /**
   * Acquires the session of an earlier sub-agent, which only the session that spawned it may continue.
   * @throws {PreampError} `not_found`, `session_busy`.
   */
  acquireChild(run: RunFacts, session_id: string, parent_id: string): Promise<SavedSession>;
  releaseChild(session_id: string): Promise<void>;
  /** Called once when a run has ended or was lost, before anyone who waits for it continues. */
  ended(run: RunFacts): void;
  /** Aborted when this process stops: what could not be stored until then is left to others. */
  readonly stopping: AbortSignal;
  /** Resolves when a run that another process has taken over has settled. */
  settledElsewhere(run: RunFacts, until: "end" | "attention"): Promise<Run>;
}
