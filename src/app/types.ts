/** The interface of the runtime to server, CLI and library. */
import type { PlanDiff } from "../plan/diff_module.ts";
import type { Explanation } from "../plan/explain.ts";
import type { ExplainedMode } from "../plan/modes.ts";
import type { ImportedPlan } from "../bundle/import.ts";
import type { RefusedImport } from "../loader/types.ts";
import type { Lock } from "../plan/lock.ts";
import type { Caller, Runs } from "../runs/types.ts";
import type { Found } from "../sdk/contracts.ts";
import type { PermissionKind } from "../sdk/plan.ts";
import type { ErrorCode, ErrorDetail, JsonObject, ModelInfo, ModuleInfo } from "../sdk/types.ts";

/** Result of `check`. An invalid plan is a normal result. */
export interface PlanCheck {
  ok: boolean;
  /** Code of the error that a run of the plan would be refused with; absent if the plan is valid. */
  code?: ErrorCode;
  errors: ErrorDetail[];
  warnings: (ErrorDetail & { code: string })[];
  plan_hash?: string;
  /** Sources that resolve to another URL: git, npm and jsr. */
  sources?: RewrittenSource[];
  /** The plan's modes; absent without any. */
  modes?: ExplainedMode[];
}

/** A source and the URL that it resolves to. */
export interface RewrittenSource {
  path: string;
  module: string;
  /** The source as written. */
  source: string;
  url: string;
}

/** A model of a provider's account. */
export interface ListedModel extends ModelInfo {
  /** As `PROVIDER/MODEL`. */
  readonly model: string;
  readonly provider: string;
}

/** The models that runs of this process can choose. */
export interface UsableModels {
  readonly data: readonly ListedModel[];
  /** Why a provider whose key is set has none to offer, or a local server. */
  readonly errors: readonly { readonly provider: string; readonly message: string }[];
}

/** A plan of the server's `plans/` folder. `name` is the file name without extension. */
export interface NamedPlan {
  name: string;
  plan_hash: string;
  description?: string;
}

/** A plan of the operator as callers may read it: secrets redacted, `${VAR}` as written. */
export interface PlanDocument extends NamedPlan {
  plan: JsonObject;
  /** The plan as YAML, without the comments of its file. */
  text: string;
}

/** Description of a module in `GET /v1/modules`. */
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

/** A plan with its lock, and the model and the workspace to run it with. */
export type LockedInput = PlanInput & {
  lock?: JsonObject;
  model?: string;
  mode?: string;
  workspace?: string;
};

/** A plan to compare, and the URL of its file. */
export type ComparedInput = PlanInput & { base_url?: string };

/** The files between which a plan is vendored. */
export interface VendorFiles {
  /** URL of the plan's file. */
  base_url: string;
  /** URL of the file that the vendored plan is for. */
  target_url: string;
  /** Whether the plan says that these bytes of its modules run inside the program. Default false. */
  inline?: boolean;
}

/** A plan whose modules are files beside it. Paths are relative to its folder. */
export interface Vendored {
  /** The plan with its sources rewritten. */
  plan: JsonObject;
  modules: VendoredModule[];
  /** Texts of `system: {file}`, with the URLs to copy them from. */
  files: { path: string; url: string }[];
}

/** A module as a file of a vendored plan. */
export interface VendoredModule {
  module: string;
  /** Such as `modules/tool-clock.js`. */
  path: string;
  /** URL of its entry file, from which it was bundled. */
  url: string;
  integrity: string;
  code: string;
  /** Imports that throw when the module executes them. */
  imports_refused: readonly RefusedImport[];
}

/** A bundle to make a plan of. */
export interface BundleInput {
  /** `file:` URL of a file or folder, URL of a file, or `git+https://…`. */
  source: string;
  /** Name of a bundle → its source in one of these forms, for includes that are a plain name. */
  names: ReadonlyMap<string, string>;
  /** URL of the file that the plan is for: its paths are relative to it. Absent: they are absolute. */
  base_url?: string;
  /** Lock beside that file: fetched files must agree with it. */
  lock?: Lock;
  /** Whether fetched files may be others than those of the lock. */
  update: boolean;
}

/** The plan of a bundle, and what a person should know of it. */
export interface ImportedBundle extends ImportedPlan {
  /** Number of files of other hosts. */
  fetched: number;
  /** Lock of these files; null without such files. */
  lock: Lock | null;
}

/** Body of `GET /readyz`. */
export interface Readiness {
  ok: boolean;
  /** Reasons why it is not ready; empty if it is. */
  reasons: string[];
  /**
   * Tiers for modules from URLs on this host: true, or why not. `limits`: what is missing in the limits of
   * child processes; absent if nothing is.
   */
  isolation: { process: true | string; limits?: string };
  /**
   * Whether modules from URLs are bundled in a child process: true, or why not, and what can be loaded
   * then.
   */
  bundler: true | string;
  /** What is missing because `$PREAMP_HOME` cannot be read; absent if nothing is. */
  home?: string;
}

/** Description of this process and its host. */
export interface SystemReport {
  /** Whether there is no warning. */
  ok: boolean;
  /** What limits this process, each with what to do about it; empty if nothing does. */
  warnings: string[];
  /** Versions of Preamp, Deno and V8, the platform, and whether the program is compiled. */
  version: { preamp: string; deno: string; v8: string; target: string; compiled: boolean };
  /** The store, and whether it answers now. */
  store: { kind: string; ok: boolean; reason?: string };
  isolation: Readiness["isolation"];
  bundler: Readiness["bundler"];
  /** Deno's permissions of this process; `partial`: granted for some values only. */
  permissions: Record<PermissionKind, "granted" | "partial" | "denied">;
  /** Credential variables of the providers, and whether they are set. */
  variables: { name: string; set: boolean }[];
  /** Time of this process, UTC. */
  clock: string;
  /** Bytes: of this process, and of the host (null where this process may not read them). */
  memory: { rss_bytes: number; total_bytes: number | null; available_bytes: number | null };
}

/** The result of `createRuntime`. */
export interface Runtime extends AsyncDisposable {
  readonly runs: Runs;
  readonly plans: {
    check(input: LockedInput, caller: Caller, options?: { base_url?: string }): Promise<PlanCheck>;
    /**
     * Returns what the plan may touch. Fetches its modules, executes nothing. Throws like a run before it
     * starts.
     */
    explain(input: LockedInput, caller: Caller, options?: { base_url?: string }): Promise<Explanation>;
    /**
     * Returns what the plan's built-in modules find by themselves in the folders that they may read, and the
     * servers that they are to start or to call. Throws like a run before it starts.
     */
    finds(input: LockedInput, caller: Caller, options?: { base_url?: string }): Promise<Found[]>;
    /** Returns the lock of the plan's modules as they are now, merged over `input.lock`. Executes nothing. */
    lock(input: LockedInput, caller: Caller, options?: { base_url?: string }): Promise<Lock>;
    /**
     * Returns the plan with its modules as bundles for a file in another folder. Fetches its modules,
     * executes nothing. Throws like a run before it starts.
     */
    vendor(input: LockedInput, caller: Caller, files: VendorFiles): Promise<Vendored>;
    /**
     * Returns the plan of a bundle and of all that it includes. Executes nothing.
     * @throws {PreampError} `plan_invalid`, `plan_limit_exceeded`, `not_found`, those of fetching a module.
     */
    importBundle(input: BundleInput): Promise<ImportedBundle>;
    /** Returns what `to` widens and narrows. Fetches nothing. */
    diff(from: ComparedInput, to: ComparedInput, caller: Caller): Promise<PlanDiff>;
    list(): Promise<NamedPlan[]>;
    /**
     * Returns a plan by name; `default` is the plan of requests without one, if need be the demo plan.
     * @throws {PreampError} `not_found`, `plan_invalid`.
     */
    get(name: string): Promise<PlanDocument>;
    /**
     * Saves a plan of the caller in `plans/` of the home folder, and returns it. It has the operator's rights
     * from then on.
     * @throws {PreampError} `forbidden` for other callers than the person who has started the server.
     */
    save(name: string, plan: JsonObject | string, caller: Caller): Promise<PlanDocument>;
  };
  readonly modules: {
    list(): Promise<ModuleListing[]>;
    /** Returns one module's listing. @throws {PreampError} `not_found`. */
    get(id: string): Promise<ModuleListing>;
  };
  /**
   * Returns the models that runs can choose here: of providers whose key is set, and of local servers.
   * @throws {PreampError} `forbidden` for callers that may not choose the model of the server's plans.
   */
  models(caller: Caller): Promise<UsableModels>;
  /** The effective limits that the server needs. */
  readonly limits: { max_body_bytes: number };
  /** Returns whether the store responds and the runtime is not draining. */
  ready(): Promise<Readiness>;
  /** Returns what this process and its host support. */
  system(): Promise<SystemReport>;
  /**
   * Continues the runs of processes that ended, now and later, if the store outlives them. The first request
   * for a run does so too.
   */
  start(): Promise<void>;
  /**
   * Continues the runs of processes that ended, if the store outlives them, and resolves when no run is
   * active here, after `max_ms` milliseconds at the latest.
   */
  resume(max_ms: number): Promise<void>;
  /** Returns the number of runs that execute here: without those that wait for their session or a person. */
  executing(): number;
  /** Stops accepting runs, ends the streams, and waits up to `grace_ms` for runs to reach a durable state. */
  drain(grace_ms: number): Promise<void>;
  close(): Promise<void>;
}
