/** What runs are given from outside: where they are kept, how plans are made ready, where modules come from. Given by `app/`. */
import type { KernelLimits } from "../kernel/session/session_context.ts";
import type { OpenedModule } from "../kernel/host.ts";
import type { CompiledPlan } from "../plan/compile.ts";
import type { ConsoleLevel } from "../sdk/console.ts";
import type { Clock, JsonObject, ModuleSpec, RunLimits } from "../sdk/types.ts";
import type { Store } from "../store/store.ts";
import type { Caller, RunRequest, Warning } from "./types.ts";

/** A plan that may run: checked, and allowed by the policy. */
export interface RunnablePlan {
  readonly compiled: CompiledPlan;
  readonly limits: RunLimits;
  /** Whether plan or request set `max_cost_usd`: then an unpriced call ends the run. */
  readonly cost_is_asked_for: boolean;
  readonly lock_hash: string | null;
  readonly warnings: readonly Warning[];
  /** Where relative sources of the plan start; operator plans from disk only. */
  readonly base_url?: string;
  /** Registers every secret of the plan, before anything of the run is written. */
  registerSecrets(secrets: SecretSink): void;
  /** How its sub-agents are made; absent: none can be. */
  readonly agents?: AgentPlans;
  /** Fetches and verifies what is not compiled in; executes nothing. What fails here leaves no run. */
  load?(): Promise<void>;
  /** Finds a module and expands its config. `told` gets what has no event of its own while the module lives. */
  open(spec: ModuleSpec, secrets: SecretSink, told: ModuleReporter): Promise<OpenedModule> | OpenedModule;
  /**
   * Resolves to what a body resolves to; while it runs, what the plan's modules in this process write to their console goes to
   * `write`. Absent: there is no such module.
   */
  withConsole?<T>(write: ModuleReporter["console"], body: () => Promise<T>): Promise<T>;
}

/** What a run is told of its modules beside their events. */
export interface ModuleReporter {
  warn(code: string, message: string): void;
  /** A line of a module's console, for the log of the process. */
  console(level: ConsoleLevel, text: string, module: string): void;
}

/** What a plan's sub-agents are made by. */
export interface AgentPlans {
  /** Whose plan it is (trust.md). */
  readonly origin: "operator" | "caller";
  /** Levels of sub-agents below the run's own session (trust.md). */
  readonly max_depth: number;
  /** Sessions of a run, its own included (trust.md). */
  readonly max_sessions: number;
  /**
   * Makes the plan of a sub-agent ready: compiled, judged again, and within what this plan was granted.
   * @throws {PreampError} `plan_invalid`, `policy_refused`, and what else a plan may not run for.
   */
  child(written: JsonObject): Promise<RunnablePlan>;
}

/** Takes the values that must never be seen, and takes them out of what is seen. */
export interface SecretSink {
  /** Number of values that are known. */
  readonly size: number;
  register(secret: string): void;
  /** Returns about how many bytes of JSON an event's data are; NaN when they hold a secret, and are to be redacted. */
  weighEvent(event: string, data: JsonObject): number;
  /** Returns an event's data without secrets; the same object when they hold none. */
  redactEvent(event: string, data: JsonObject): JsonObject;
  /** Returns data without the values of known secrets; the same object when they hold none. */
  redactValues(data: JsonObject): JsonObject;
  /** Returns an error without the values of known secrets; the same one when it holds none. */
  redactError(error: unknown): unknown;
  /** Characters at the end of a text that are to wait for what follows: they may be the beginning of a secret. */
  held(text: string): number;
}

/**
 * Limits of one log, deltas not counted (trust.md). Of these there may be as many again: more entries are joined to larger ones,
 * more bytes end the run.
 */
export interface LogLimits {
  max_log_entries: number;
  max_log_bytes: number;
}

/** How many items a page of a list has. */
export interface PageLimits {
  /** Items when the request does not say. */
  page_limit: number;
  /** Items at most. */
  max_page_limit: number;
}

/** Limits that runs enforce (trust.md). */
export interface ServiceLimits extends KernelLimits, LogLimits, PageLimits {
  max_concurrent_runs: number;
  max_runs_per_key: number;
  /** Days that the log of a run is kept after its end. */
  log_days: number;
  /** Hours that an idempotency key is remembered. */
  idempotency_hours: number;
}

/** Everything runs need. */
export interface RunsDeps {
  readonly store: Store;
  /** Path that the HTTP API is mounted under, such as `/agents`. Default none. */
  readonly basePath?: string;
  readonly clock: Clock;
  /** Returns the limits that hold for a caller: the server's, or smaller ones of its key's own policy. */
  readonly limitsOf: (caller: Caller) => ServiceLimits;
  newId(prefix: string): string;
  /** Makes the plan of a request ready. `base_url`: where the relative sources of an operator's plan start. */
  ready(request: RunRequest, caller: Caller, base_url: string | undefined): Promise<RunnablePlan>;
  secrets(): SecretSink;
  /** Structured log of the process. */
  log(level: "info" | "warning" | "error", event: string, facts: JsonObject): void;
}
