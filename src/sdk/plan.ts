/** The mount plan after it was checked: every short form expanded, every list present (plan.md). */
import type { ModuleType, Permissions } from "./contracts.ts";
import type { JsonObject } from "./json.ts";

/** Where a module comes from, normalised (plan.md, Sources). */
export type Source =
  /** Compiled in. */
  | { kind: "builtin" }
  /** One URL: https, http, file, data; `original` is what the plan says, `via` the form when it was rewritten. */
  | {
    kind: "url";
    url: string;
    original: string;
    via?: "path" | "npm" | "jsr" | "git";
    git?: GitSource;
    /** It names a folder: `url` is its `mod.ts`, and a `deno.json` beside that may name another file. */
    folder?: true;
  }
  /** A relative path of a plan that was not read from a file: there is nothing it is relative to. */
  | { kind: "path"; path: string; original: string };

/** What a `git+https:` source said, before it was rewritten to the URL of one file. */
export interface GitSource {
  /** URL of the repository without `.git`. */
  repository: string;
  /** Branch, tag or commit; null is the default branch. */
  ref: string | null;
  /** Folder or file in the repository; null is its root. */
  subdirectory: string | null;
}

/** One module of a plan. */
export interface ModuleSpec {
  /** Module id, such as `tool-calculator`. */
  module: string;
  /** Kind of module; told by the section it stands in. */
  type: ModuleType;
  /** Where it comes from. */
  source: Source;
  /** As written: `${VAR}`s not expanded. */
  config: JsonObject;
  /** Name of this instance when a module is there more than once. */
  instance_id?: string;
  /** Digest its graph must have, as `sha256-…`. */
  integrity?: string;
  /** What the plan grants it. */
  permissions?: Permissions;
  /** Tier the plan asks for. */
  isolation?: "inline" | "worker" | "process";
  /** Whether the session fails when the module cannot be mounted. Default: true for hooks that gate, see `ModuleInfo.gates`. */
  required?: boolean;
  /** Place in the plan, such as `tools[0]` or `session.orchestrator`. */
  path: string;
}

/** Ceilings of a run; names and defaults: trust.md, Limits. */
export interface RunLimits {
  /** Answered provider calls. */
  max_iterations: number;
  /** Tool calls that ran. */
  max_tool_calls: number;
  /** Tokens of all requests and answers. */
  max_total_tokens: number;
  /** US dollars, a decimal string. */
  max_cost_usd: string;
  /** Seconds; waiting for an approval does not count. */
  max_duration_s: number;
}

/** A checked plan. */
export interface MountPlan {
  /** The two required modules, and how the session behaves. */
  session: {
    /** The loop. */
    orchestrator: ModuleSpec;
    /** The conversation memory. */
    context: ModuleSpec;
    /** Tokens; undefined = no hard limit, a warning above 10,000; null = unlimited and silent (C16). */
    injection_budget_per_turn?: number | null;
    /** Code points; undefined = no hard limit, a warning above 10,240; null = unlimited and silent (C16). */
    injection_size_limit?: number | null;
    /** What happens to an injection over the budget; default `warn`. */
    injection_budget_mode?: "warn" | "drop" | "error";
    /** Attach the redacted plan to session:start. */
    raw?: boolean;
    /** Told with session:start and session:fork. */
    metadata?: JsonObject;
    /** Mount hooks before providers and tools. */
    hooks_first?: boolean;
  };
  /** Text of the first system message of a new session. */
  system?: string;
  /** LLM backends, in mount order. */
  providers: ModuleSpec[];
  /** Tools, in mount order. */
  tools: ModuleSpec[];
  /** Hooks, in mount order. */
  hooks: ModuleSpec[];
  /** Overlays for child sessions, as written. */
  agents: JsonObject;
  /** How child sessions are made, as written. */
  spawn?: JsonObject;
  /** Ceilings the plan sets; absent ones are the policy's. */
  limits: Partial<RunLimits>;
  /** Default grant for tools that state none. */
  permissions?: Permissions;
}
