/**
 * Every setting of `preamp.yaml` as one table: its meaning, unit, default and range. Documents, flags, variables, the defaults,
 * `preamp help serve`, `preamp config example` and the reference in the README are all made from it. A setting that is missing
 * here does not exist; the names and types are those of `Policy`.
 */
import { DOCUMENT_LIMITS } from "../plan/parse/document_limits.ts";
import { apiKeys } from "./auth_keys.ts";
import type { Policy } from "./policy.ts";
import {
  bytes,
  callerPermissions,
  choice,
  dollars,
  esmHost,
  flag,
  hosts,
  names,
  origins,
  type Rule,
  seconds,
  storeName,
  urlPrefixes,
  whole,
  words,
} from "./rules.ts";

/** Keys at the top whose value is the setting itself. */
export type SingleName = "plans" | "store";

/** Keys at the top that hold several settings. */
export type SectionName = Exclude<keyof Policy, SingleName | "policies">;

/** Keys at the top that are settings themselves. */
export const SINGLES: { readonly [Name in SingleName]: Rule<Policy[Name]> } = {
  plans: words("plans/", "Folder of the operator's named plans", "a folder, relative to preamp.yaml"),
  store: storeName("Where runs and sessions are kept; this version has no other store"),
};

/** Sections of settings. */
export const SECTIONS: {
  readonly [Name in SectionName]: { readonly [Key in keyof Policy[Name]]: Rule<Policy[Name][Key]> };
} = {
  listen: {
    host: words(
      "127.0.0.1",
      "Address to listen on; a server without keys takes one of loopback only",
      "an address of this machine",
    ),
    port: whole(8484, "Port to listen on; 0 takes a free one", { min: 0, max: 65_535 }),
  },
  cors: {
    origins: origins("Origins whose web pages may send requests to this server and read its answers"),
  },
  store_limits: {
    max_entries: whole(
      1_000_000,
      "Entries of all logs in memory; above it the oldest logs of ended runs are dropped",
    ),
    max_records: whole(
      50_000,
      "Runs in memory, and sessions; above it those that were least used are dropped",
    ),
    max_bytes: bytes(
      512 * 1024 * 1024,
      "Size of all that is kept in memory; above it logs are dropped, then records",
    ),
  },
  retention: {
    log_days: whole(30, "Days that the log of a run is kept after the run has ended"),
    idempotency_hours: whole(24, "Hours that an Idempotency-Key is remembered"),
  },
  rates: {
    requests_per_minute: whole(600, "Requests that one key may send in a minute; 0 = any number", { min: 0 }),
    runs_per_minute: whole(120, "Runs that one key may start in a minute; 0 = any number", { min: 0 }),
  },
  auth: {
    keys: apiKeys("Keys that may call the API, each as the SHA-256 of it; PREAMP_API_KEYS adds more"),
  },
  modules: {
    allow: urlPrefixes("Where the plans of callers may load modules from"),
    inline: urlPrefixes("Where modules come from that run in this process, without a sandbox"),
    frozen: flag(false, "Refuses every module that neither the plan nor its lock pins"),
    private_hosts: hosts("Private and loopback hosts that modules may be fetched from"),
    esm_host: esmHost("Where npm: and jsr: packages are fetched from as ES modules"),
  },
  env: {
    allow: names("Variables that the plans of callers may name as ${VAR}"),
  },
  permissions: {
    max: callerPermissions("The most that a module in the plan of a caller may be granted"),
  },
  isolation: {
    urls_from_callers: choice("process", ["process"], "Where modules of callers' plans run"),
    urls_from_operator: choice("process", ["worker", "process"], "Where modules of the operator's plans run"),
    memory_mb: whole(256, "Megabytes of memory that one sandbox may take", { min: 16 }),
    cpu_s: whole(30, "Seconds of processor time that one call of a sandbox may take"),
    load_timeout_s: seconds(10, "Time that the import and the mount of a module may take"),
    max_guests: whole(64, "Sandboxes that may be there at once", {
      for_keys: "set isolation.max_guests of the server; max_guests_per_session holds for each session",
    }),
    max_guests_per_session: whole(16, "Sandboxes that one session may have"),
  },
  limits: {
    max_iterations: whole(50, "Answered model calls of one run"),
    max_tool_calls: whole(200, "Tool calls of one run; 0 = no tool runs", { min: 0 }),
    max_total_tokens: whole(1_000_000, "Input and output tokens of one run"),
    max_cost_usd: dollars("5", "What the model calls of one run may cost"),
    max_duration_s: seconds(600, "Time that one run may take; waiting for a person does not count"),
    max_concurrent_runs: whole(64, "Runs that may be under way at once", {
      for_keys: "set limits.max_concurrent_runs of the server; max_runs_per_key bounds one key",
    }),
    max_runs_per_key: whole(16, "Runs of one key that may be under way at once"),
    max_body_bytes: bytes(1024 * 1024, "Size of a request's body"),
    max_plan_bytes: bytes(DOCUMENT_LIMITS.max_bytes, "Size of a plan's text"),
    max_plan_nodes: whole(DOCUMENT_LIMITS.max_nodes, "Values in a plan, an alias counted as what it names"),
    max_plan_depth: whole(DOCUMENT_LIMITS.max_depth, "Lists and objects of a plan inside one another", {
      max: 100, // plans are walked by recursion
    }),
    max_plan_aliases: whole(DOCUMENT_LIMITS.max_aliases, "Uses of YAML anchors in a plan", { min: 0 }),
    max_module_bytes: bytes(5 * 1024 * 1024, "Size of one file of a module"),
    max_graph_bytes: bytes(20 * 1024 * 1024, "Size of a module with all that it imports"),
    max_graph_files: whole(500, "Files of a module with all that it imports"),
    max_redirects: whole(5, "Redirects that are followed for one file of a module", { min: 0 }),
    fetch_timeout_s: seconds(10, "Time that the fetch of one file of a module may take"),
    tool_timeout_s: seconds(60, "Time that one tool call may take"),
    hook_timeout_s: seconds(30, "Time that one call of a hook's handler may take"),
    approval_timeout: seconds(300, "Time that a person has to answer, at most; after it the default holds"),
    cleanup_timeout_s: seconds(10, "Time that the cleanup of one module may take"),
    max_tool_output_bytes: bytes(256 * 1024, "Output of a sandboxed tool that is read before it is ended"),
    max_tool_result_bytes: bytes(128 * 1024, "Output of a tool that the model sees; the rest is cut off"),
    max_answer_tool_calls: whole(128, "Tool calls in one answer of a model; an answer with more is an error"),
    max_answer_blocks: whole(
      2_000,
      "Content blocks in one answer of a model; an answer with more is an error",
    ),
    max_hooks: whole(256, "Handlers of hooks in one session"),
    max_log_entries: whole(100_000, "Entries in the log of one run, deltas not counted"),
    max_log_bytes: bytes(64 * 1024 * 1024, "Size of the log of one run, deltas not counted"),
    max_session_state_bytes: bytes(64 * 1024, "Size of the session_state that modules keep in one session"),
    max_depth: whole(3, "Levels of sub-agents", { min: 0 }),
    max_sessions: whole(16, "Sessions of one run, those of its sub-agents counted"),
    page_limit: whole(100, "Items on one page of a list when the request does not say", { max: 1000 }),
    max_page_limit: whole(1000, "Items that a request may ask for on one page of a list", { max: 1000 }),
  },
};

/** Sections that the policy of one key may have. */
export const OVERLAY_SECTIONS = ["limits", "permissions", "modules", "env", "isolation", "rates"] as const;
