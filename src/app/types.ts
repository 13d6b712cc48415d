/** The runtime as server, CLI and library see it. */
import type { PlanDiff } from "../plan/diff_report.ts";
import type { Explanation } from "../plan/explain.ts";
import type { Lock } from "../plan/lock.ts";
import type { Caller, Runs } from "../runs/types.ts";
import type { ErrorCode, ErrorDetail, JsonObject, ModuleInfo } from "../sdk/types.ts";

/** The answer of `check`: a bad plan is a good answer. */
export interface PlanCheck {
  ok: boolean;
  /** Code of the error that a run of the plan is refused with; absent when the plan is fine. */
  code?: ErrorCode;
  errors: ErrorDetail[];
  warnings: (ErrorDetail & { code: string })[];
  plan_hash?: string;
  /** Sources that were rewritten to the URL of one file: git, npm and jsr. */
  sources?: RewrittenSource[];
}

/** What a source became (plan.md, Sources). */
export interface RewrittenSource {
  path: string;
  module: string;
  /** As the plan says it. */
  source: string;
  url: string;
}

/** A plan of the server's `plans/` folder; `name` is the file name without extension. */
export interface NamedPlan {
  name: string;
  plan_hash: string;
  description?: string;
}

/** A built-in module as it is listed. */
export interface ModuleListing {
  id: string;
  name: string;
  type: string;
  mount_point: string;
  version: string;
  description: string;
  permissions: ModuleInfo["permissions"] | null;
  config_schema: ModuleInfo["config_schema"];
}

/** A plan to check: as data, as text, or by name. */
export type PlanInput = { plan: JsonObject | string } | { plan_ref: string };

/** A plan, and the lock that comes with it. */
export type LockedInput = PlanInput & { lock?: JsonObject };

/** A plan to compare, and the file it was read from. */
export type ComparedInput = PlanInput & { base_url?: string };

/** How `GET /readyz` answers. */
export interface Readiness {
  ok: boolean;
  /** Why not; empty when it is. */
  reasons: string[];
  /** Tiers that modules of URLs can have here: true, or why not (modules.md, Isolation tiers). */
  isolation: { worker: true | string; process: true | string };
  /** Whether modules of URLs are bundled in a process of its own: true, or why not, and what can be loaded then. */
  bundler: true | string;
}

/** What `createRuntime` gives. */
export interface Runtime {
  readonly runs: Runs;
  readonly plans: {
    check(input: LockedInput, caller: Caller, options?: { base_url?: string }): Promise<PlanCheck>;
    /** What the plan may touch: fetches its modules, executes nothing. Throws as a run would before it starts. */
    explain(input: LockedInput, caller: Caller, options?: { base_url?: string }): Promise<Explanation>;
    /** The lock of the plan's modules as they are now, over what `input.lock` has of others. Executes nothing. */
    lock(input: LockedInput, caller: Caller, options?: { base_url?: string }): Promise<Lock>;
    /** What `to` widens and narrows. Fetches nothing. */
    diff(from: ComparedInput, to: ComparedInput, caller: Caller): Promise<PlanDiff>;
    list(): Promise<NamedPlan[]>;
  };
  readonly modules: {
    list(): Promise<ModuleListing[]>;
    /** @throws {PreampError} `not_found`. */
    get(id: string): Promise<ModuleListing>;
  };
  /** The limits in force, of trust.md's table. */
  readonly limits: { max_body_bytes: number };
  /** Whether the store answers and no drain is under way. */
  ready(): Promise<Readiness>;
  /** Stops accepting runs, ends the streams, waits at most `grace_ms` for runs to reach a resting place. */
  drain(grace_ms: number): Promise<void>;
  close(): Promise<void>;
}
