/** The mount plan after it was checked: every short form expanded, every list present (plan.md). */
import type { ModuleType, Permissions } from "./contracts.ts";
import type { JsonObject } from "./json.ts";

/** Where a module comes from, normalised (plan.md, Sources). */
export type Source =
  /** Compiled in. */
  | { kind: "builtin" }
  /** One URL: https, http on loopback, file, data; `original` is what the plan says. */
  | { kind: "url"; url: string; original: string };

/** One module of a plan. */
export interface ModuleSpec {
  /** Module id, such as `tool-calculator`. */
  module: string;
  type: ModuleType;
  source: Source;
  /** As written: `${VAR}`s not expanded. */
  config: JsonObject;
  instance_id?: string;
  integrity?: string;
  permissions?: Permissions;
  isolation?: "inline" | "worker" | "process";
  /** Place in the plan, such as `tools[0]` or `session.orchestrator`. */
  path: string;
}

/** Ceilings of a run; names and defaults: trust.md, Limits. */
export interface RunLimits {
  /** Answered provider calls. */
  max_iterations: number;
  max_tool_calls: number;
  max_total_tokens: number;
  /** US dollars, a decimal string. */
  max_cost_usd: string;
  /** Seconds; waiting for an approval does not count. */
  max_duration_s: number;
}

/** A checked plan. */
export interface MountPlan {
  session: {
    orchestrator: ModuleSpec;
    context: ModuleSpec;
    /** Tokens; undefined = no hard limit, a warning above 10,000; null = unlimited and silent (C16). */
    injection_budget_per_turn?: number | null;
    /** Code points; undefined = no hard limit, a warning above 10,240; null = unlimited and silent (C16). */
    injection_size_limit?: number | null;
    injection_budget_mode?: "warn" | "drop" | "error";
    /** Attach the redacted plan to session:start. */
    raw?: boolean;
    metadata?: JsonObject;
    /** Mount hooks before providers and tools. */
    hooks_first?: boolean;
  };
  /** Text of the first system message of a new session. */
  system?: string;
  providers: ModuleSpec[];
  tools: ModuleSpec[];
  hooks: ModuleSpec[];
  /** Overlays for child sessions, as written. */
  agents: JsonObject;
  spawn?: JsonObject;
  /** Ceilings the plan sets; absent ones are the policy's. */
  limits: Partial<RunLimits>;
  /** Default grant for tools that state none. */
  permissions?: Permissions;
}
