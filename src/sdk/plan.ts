/**
 * Types of a checked mount plan: short forms are expanded, lists are always present. See src/docs/plan.md.
 */
import type { ModuleType, Permissions, RunLimits } from "./contracts.ts";
import type { JsonObject } from "./json.ts";

export { POINT } from "./snake_case_aliases.ts";

/** Kinds of Deno permissions, in the order of Deno's documentation. */
export const PERMISSION_KINDS = ["net", "read", "write", "env", "run", "sys", "ffi", "import"] as const;

/** Kind of a Deno permission. */
export type PermissionKind = typeof PERMISSION_KINDS[number];

/** Source of a module, normalised; see src/docs/plan.md#sources. */
export type Source =
  /** Built into the program. */
  | { kind: "builtin" }
  /**
   * A URL (https, http, file, data). `original` is the text in the plan; `via` is its form when it was
   * rewritten.
   */
  | {
    kind: "url";
    url: string;
    original: string;
    via?: "path" | "npm" | "jsr" | "git";
    git?: GitSource;
    /** The source is a folder: `url` is its `mod.ts`, unless a `deno.json` beside it names another file. */
    folder?: true;
  }
  /** A relative path in a plan that was not read from a file, and so has no base. */
  | { kind: "path"; path: string; original: string };

/** Parts of a `git+https:` source before it was rewritten to the URL of one file. */
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
  /** Kind of module, derived from its section in the plan. */
  type: ModuleType;
  /** Source of the module. */
  source: Source;
  /** Configuration as written; `${VAR}` is not expanded. */
  config: JsonObject;
  /** Name of this instance when a module is mounted more than once. */
  instance_id?: string;
  /** Required digest of the module's graph, as `sha256-…`. */
  integrity?: string;
  /** Permissions that the plan grants. */
  permissions?: Permissions;
  /** Tier that the plan requests. */
  isolation?: "inline" | "process";
  /**
   * Whether the session fails when the module cannot be mounted. Default: true for gating hooks, see
   * `ModuleInfo.gates`.
   */
  required?: boolean;
  /** Place in the plan, such as `tools[0]` or `session.orchestrator`. */
  path: string;
}

/** A mode of a plan: a gate before every tool call, and a text for the model. */
export interface Mode {
  /** One line about it. */
  readonly description?: string;
  /** Text that is added to the system message. */
  readonly instruction?: string;
  /** Rules of `hooks-approval`, the first that matches decides. */
  readonly rules: readonly (JsonObject & { tool: string; action: "allow" | "ask" | "deny" })[];
  /** Decision about calls that no rule matches. */
  readonly default: "allow" | "ask" | "deny";
}

/** A checked plan. */
export interface MountPlan {
  /** The two required modules and the settings of the session. */
  session: {
    /** The orchestrator. */
    orchestrator: ModuleSpec;
    /** The context manager. */
    context: ModuleSpec;
    /**
     * Maximum tokens of injections per turn; undefined = a warning above 10,000; null = unlimited without a
     * warning.
     */
    injection_budget_per_turn?: number | null;
    /**
     * Maximum code points of an injection; undefined = a warning above 10,240; null = unlimited without a
     * warning.
     */
    injection_size_limit?: number | null;
    /** Handling of an injection over the budget; default `warn`. */
    injection_budget_mode?: "warn" | "drop" | "error";
    /** Whether `session:start` contains the redacted plan. */
    raw?: boolean;
    /** Metadata of `session:start` and `session:fork`. */
    metadata?: JsonObject;
    /** Whether hooks are mounted before providers and tools. */
    hooks_first?: boolean;
  };
  /** Text of the first system message of a new session. */
  system?: string;
  /** Whether the instructions of the project in the workspace are read, and added to the system message. */
  instructions?: "project";
  /** The modes, by name. */
  modes?: Record<string, Mode>;
  /** Name of the mode that the plan is in; its gate is one of `hooks`. */
  mode?: string;
  /** Providers, in mount order. */
  providers: ModuleSpec[];
  /** Tools, in mount order. */
  tools: ModuleSpec[];
  /** Hooks, in mount order. */
  hooks: ModuleSpec[];
  /** Overlays for sub-agents, as written. */
  agents: JsonObject;
  /** Settings of sub-agents, as written. */
  spawn?: JsonObject;
  /** Limits that the plan sets; absent ones come from the policy. */
  limits: Partial<RunLimits>;
  /** Default permissions of tools without their own. */
  permissions?: Permissions;
}
