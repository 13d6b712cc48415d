/** Interfaces that `runs` needs from outside: the store, prepared plans, modules. `src/app` provides them. */
import type { KernelLimits } from "../kernel/session_context.ts";
import type { Entry, HostClock, OpenedModule } from "../kernel/host.ts";
import type { CompiledPlan } from "../plan/compile.ts";
import type { Redactor } from "../policy/redact.ts";
import type { ConsoleLevel } from "../sdk/console.ts";
import type { JsonObject, LimitName, ModuleSpec, RunLimits } from "../sdk/types.ts";
import type { Store } from "../store/store.ts";
import type { Caller, FileChange, RunRequest, Warning } from "./types.ts";

/** A plan that is checked and allowed by the policy. */
export interface RunnablePlan {
  readonly compiled: CompiledPlan;
  readonly limits: RunLimits;
  /** Whether the plan or request sets `max_cost_usd`; then a call without a known price ends the run. */
  readonly cost_is_asked_for: boolean;
  readonly lock_hash: string | null;
  readonly warnings: readonly Warning[];
  /** Files of the project that are part of the system message; absent without `instructions: project`. */
  readonly instructions?: readonly { path: string; sha256: string; bytes: number }[];
  /** Base of the plan's relative sources; only for operator plans from disk. */
  readonly base_url?: string;
  /** Registers every secret of the plan. Called before anything of the run is stored. */
  registerSecrets(secrets: SecretSink): void;
  /** Prepares the plans of sub-agents. Absent: the plan allows none. */
  readonly agents?: AgentPlans;
  /** Fetches and verifies modules that are not built in, without executing them. A failure leaves no run. */
  load?(): Promise<void>;
  /** Opens a module and expands its config. `reporter` receives the module's warnings and console lines. */
  open(spec: ModuleSpec, secrets: SecretSink, reporter: ModuleReporter): Promise<OpenedModule>;
  /**
   * Executes `body` and resolves to its result. Meanwhile the console output of the plan's modules in this
   * process goes to `write`. Absent: no module runs in this process.
   */
  withConsole?<T>(write: ModuleReporter["console"], body: () => Promise<T>): Promise<T>;
}

/** Receives what modules report besides events. */
export interface ModuleReporter {
  warn(code: string, message: string): void;
  /** Logs a line of a module's console to the process log. */
  console(level: ConsoleLevel, text: string, module: string): void;
}

/** Prepares the plans of sub-agents. */
export interface AgentPlans {
  /** Owner of the plan; see src/docs/security.md. */
  readonly origin: "operator" | "caller";
  /** Maximum depth of sub-agents below the run's own session. */
  readonly max_depth: number;
  /** Maximum number of sessions of a run, its own included. */
  readonly max_sessions: number;
  /**
   * Prepares the plan of a sub-agent: compiles it, authorises it again, and limits it to what this plan was
   * granted.
   * @throws {PreampError} `plan_invalid`, `policy_refused`, and other codes of refused plans.
   */
  child(written: JsonObject): Promise<RunnablePlan>;
}

/** Registers secret values and redacts them from data. */
export type SecretSink = Pick<
  Redactor,
  | "size"
  | "register"
  | "estimateEventBytes"
  | "redact"
  | "redactEvent"
  | "redactValues"
  | "redactError"
  | "partialSecretLength"
>;

/**
 * Limits of one event log, deltas not counted. Deltas have the same limits again: beyond `max_log_entries`
 * they are joined into larger ones, beyond `max_log_bytes` the run ends.
 */
export interface LogLimits {
  max_log_entries: number;
  max_log_bytes: number;
}

/** Page sizes of lists. */
export interface PageLimits {
  /** Default number of items. */
  page_limit: number;
  /** Maximum number of items. */
  max_page_limit: number;
}

/** Limits that runs enforce; see src/docs/settings.md. */
export interface ServiceLimits extends KernelLimits, LogLimits, PageLimits, Pick<RunLimits, LimitName> {
  max_concurrent_runs: number;
  max_runs_per_key: number;
  /** Seconds that a run waits for a store that is away or full. */
  store_wait_s: number;
  /** Days that a run is kept after its end, and a session after its last run. */
  retention_days: number;
  /** Size of the files that a run keeps for undo. */
  max_undo_bytes: number;
  /** Hours that an idempotency key is kept. */
  idempotency_hours: number;
}

/** Observes one run, for metrics and traces. What it throws is logged and does not change the run. */
export interface RunObserver {
  /** Context of the run in a distributed trace, for `run:start` (W3C Trace Context). */
  readonly traceparent?: string;
  /** Receives entries in the order of the log, after they are stored. */
  stored(entries: readonly Entry[]): void;
  /** Called once, after the last entry; also when the end of the run could not be stored. */
  ended(): void;
  /** Executes modules of the run within its trace context. Absent: the run has none. */
  within?<T>(body: () => Promise<T>): Promise<T>;
}

/** Puts files back that a run has changed. */
export interface ChangedFiles {
  /** Resolves to what a change of a file will replace beside its bytes. */
  stateOf(path: string): Promise<Pick<FileChange, "mode" | "link" | "made_folders">>;
  /** Puts a file back as it was before. Resolves to null, or to why it was not put back. */
  putBack(change: FileChange): Promise<string | null>;
}

/** Collaborators of {@link RunService}. */
export interface RunsDeps {
  readonly store: Store;
  /** Path under which the HTTP API is mounted, such as `/agents`. Default: none. */
  readonly basePath?: string;
  readonly clock: HostClock;
  /** Returns the limits of a caller: the server's, or the smaller ones of the policy of its key. */
  readonly limitsOf: (caller: Caller) => ServiceLimits;
  newId(prefix: string): string;
  /**
   * Prepares the plan of a request. `base_url`: base of relative sources of an operator's plan. `headers`
   * returns a header of the request.
   */
  ready(
    request: RunRequest,
    caller: Caller,
    base_url: string | undefined,
    headers?: (name: string) => string | undefined,
  ): Promise<RunnablePlan>;
  secrets(): SecretSink;
  /** Encrypts what is stored of the headers that plans name. Absent: their values are not stored. */
  readonly secret_key?: string | undefined;
  /**
   * Whether this process continues the runs of crashed ones. If not, it ends such a run when the session is
   * continued. Default: true.
   */
  recovers?: boolean;
  /** The files of this host. Absent: nothing is kept for undo. */
  files?: ChangedFiles;
  /**
   * Creates the observer of a run. `earlier`: entries from before a crash. Absent: runs are not observed.
   */
  observe?(run: { id: string; session_id: string; earlier: readonly Entry[] }): RunObserver;
  /** Writes a structured line to the process log. */
  log(level: "info" | "warning" | "error", event: string, facts: JsonObject): void;
}
