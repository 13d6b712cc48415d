/** The runtime as server, CLI and library see it. */
import type { Caller, Runs } from "../runs/types.ts";
import type { ErrorDetail, JsonObject, ModuleInfo } from "../sdk/types.ts";

/** The answer of `check`: a bad plan is a good answer. */
export interface PlanCheck {
  ok: boolean;
  errors: ErrorDetail[];
  warnings: (ErrorDetail & { code: string })[];
  plan_hash?: string;
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
  type: string;
  version: string;
  description: string;
  permissions: ModuleInfo["permissions"] | null;
  config_schema: ModuleInfo["config_schema"];
}

/** A plan to check: as data, as text, or by name. */
export type PlanInput = { plan: JsonObject | string } | { plan_ref: string };

/** What `createRuntime` gives. */
export interface Runtime {
  readonly runs: Runs;
  readonly plans: {
    check(input: PlanInput, caller: Caller, options?: { base_url?: string }): Promise<PlanCheck>;
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
  ready(): Promise<{ ok: boolean; reasons: string[] }>;
  /** Stops accepting runs, ends the streams, waits at most `grace_ms` for runs to reach a resting place. */
  drain(grace_ms: number): Promise<void>;
  close(): Promise<void>;
}
