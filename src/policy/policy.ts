/**
 * The server's policy: every key of `preamp.yaml` with its default (trust.md). Data only; reading it from text is
 * parse.ts's, what it means for a plan is authorise.ts's.
 */
import type { Permissions } from "../sdk/contracts.ts";
import { PreampError } from "../sdk/errors.ts";
import type { RunLimits } from "../sdk/plan.ts";
import { smallerDecimal } from "../plan/fields.ts";
import type { DocumentLimits } from "../plan/limits.ts";

/** A permissions block with every name said. */
export type FullPermissions = Required<Permissions>;

/** A key that may call the API. */
export interface ApiKeyEntry {
  /** Shown as `key:NAME`; also the namespace of what it makes. */
  name: string;
  /** Lower-case hex SHA-256 of the key. */
  sha256: string;
  /** Name of an entry of `policies`. */
  policy?: string;
}

/** Every limit of trust.md's table. Names end in their unit; `approval_timeout` keeps upstream's name and is in seconds. */
export interface PolicyLimits extends RunLimits {
  max_concurrent_runs: number;
  max_runs_per_key: number;
  max_body_bytes: number;
  max_plan_bytes: number;
  max_plan_nodes: number;
  max_plan_depth: number;
  max_plan_aliases: number;
  max_module_bytes: number;
  max_graph_bytes: number;
  max_graph_files: number;
  max_redirects: number;
  fetch_timeout_s: number;
  tool_timeout_s: number;
  hook_timeout_s: number;
  approval_timeout: number;
  cleanup_timeout_s: number;
  /** Output of a tool that is read before the guest is killed. */
  max_tool_output_bytes: number;
  /** Output of a tool that is kept for the model. */
  max_tool_result_bytes: number;
  max_log_entries: number;
  max_log_bytes: number;
  max_session_state_bytes: number;
  /** Levels of sub-agents. */
  max_depth: number;
  /** Sessions of a run, sub-agents included. */
  max_sessions: number;
  page_limit: number;
  max_page_limit: number;
}

/** What one key's own policy may say; laid over the server's by {@link policyFor}. */
export interface PolicyOverlay {
  limits?: Partial<PolicyLimits>;
  permissions?: { max: Permissions };
  modules?: Partial<Policy["modules"]>;
  env?: Partial<Policy["env"]>;
  isolation?: Partial<Policy["isolation"]>;
  rates?: Partial<Policy["rates"]>;
}

/** The policy, whole. */
export interface Policy {
  listen: { host: string; port: number };
  /** Folder of named plans, the operator's own. */
  plans: string;
  /** `memory`, `sqlite:<path>`, `kv`, `kv:<url>`, `postgres://…`. */
  store: string;
  retention: { log_days: number; idempotency_hours: number };
  /** Per key; 0 = none. */
  rates: { requests_per_minute: number; runs_per_minute: number };
  auth: { keys: ApiKeyEntry[] };
  modules: {
    /** URL prefixes, or bare schemes such as `data:`, that callers' plans may load from. */
    allow: string[];
    /** URL prefixes trusted to run in-process. */
    inline: string[];
    /** Whether every module must be in the lock. */
    frozen: boolean;
    /** `host` or `host:port` of private and loopback hosts that may be reached. */
    private_hosts: string[];
  };
  policies: Record<string, PolicyOverlay>;
  /** Variables that callers' plans may expand. */
  env: { allow: string[] };
  /** The most that callers' plans may be granted. */
  permissions: { max: FullPermissions };
  isolation: {
    urls_from_callers: "process";
    urls_from_operator: "worker" | "process";
    memory_mb: number;
    cpu_s: number;
    load_timeout_s: number;
    max_guests: number;
    max_guests_per_session: number;
  };
  limits: PolicyLimits;
}

/** Returns the policy of a server without `preamp.yaml`, a fresh copy: safe by default. */
export function defaultPolicy(): Policy {
  return {
    listen: { host: "127.0.0.1", port: 8484 },
    plans: "plans/",
    store: "sqlite:~/.preamp/preamp.db",
    retention: { log_days: 30, idempotency_hours: 24 },
    rates: { requests_per_minute: 600, runs_per_minute: 120 },
    auth: { keys: [] },
    modules: { allow: [], inline: [], frozen: false, private_hosts: [] },
    policies: {},
    env: { allow: [] },
    permissions: { max: noPermissions() },
    isolation: {
      urls_from_callers: "process",
      urls_from_operator: "process",
      memory_mb: 256,
      cpu_s: 30,
      load_timeout_s: 10,
      max_guests: 64,
      max_guests_per_session: 16,
    },
    limits: {
      max_iterations: 50,
      max_tool_calls: 200,
      max_total_tokens: 1_000_000,
      max_cost_usd: "5",
      max_duration_s: 600,
      max_concurrent_runs: 64,
      max_runs_per_key: 16,
      max_body_bytes: 1024 * 1024,
      max_plan_bytes: 256 * 1024,
      max_plan_nodes: 10_000,
      max_plan_depth: 32,
      max_plan_aliases: 50,
      max_module_bytes: 5 * 1024 * 1024,
      max_graph_bytes: 20 * 1024 * 1024,
      max_graph_files: 500,
      max_redirects: 5,
      fetch_timeout_s: 10,
      tool_timeout_s: 60,
      hook_timeout_s: 30,
      approval_timeout: 300,
      cleanup_timeout_s: 10,
      max_tool_output_bytes: 256 * 1024,
      max_tool_result_bytes: 128 * 1024,
      max_log_entries: 100_000,
      max_log_bytes: 64 * 1024 * 1024,
      max_session_state_bytes: 64 * 1024,
      max_depth: 3,
      max_sessions: 16,
      page_limit: 100,
      max_page_limit: 1000,
    },
  };
}

/** Returns the bounds of a plan's text and data, for `compilePlan`. */
export function documentLimits({ limits }: Policy): DocumentLimits {
  return {
    max_bytes: limits.max_plan_bytes,
    max_nodes: limits.max_plan_nodes,
    max_depth: limits.max_plan_depth,
    max_aliases: limits.max_plan_aliases,
  };
}

/** Returns a permissions block that grants nothing, every name said. */
export function noPermissions(): FullPermissions {
  return { net: [], read: [], write: [], env: [], run: [], sys: [], ffi: false, import: [] };
}

/**
 * Returns the policy that holds for a key: the server's with `policies.NAME` laid over it. Limits only become smaller;
 * the rest is as the operator wrote it.
 *
 * @throws {PreampError} `forbidden` when there is no such entry: a key whose policy is gone gets nothing.
 */
export function policyFor(policy: Policy, name?: string): Policy {
  if (name === undefined) return policy;
  const overlay = Object.hasOwn(policy.policies, name) ? policy.policies[name] : undefined;
  if (!overlay) {
    throw new PreampError(
      "forbidden",
      `Cannot use this key: its policy ${JSON.stringify(name)} does not exist`,
    );
  }
  return {
    ...policy,
    rates: { ...policy.rates, ...overlay.rates },
    modules: { ...policy.modules, ...overlay.modules },
    env: { ...policy.env, ...overlay.env },
    isolation: { ...policy.isolation, ...overlay.isolation },
    permissions: { max: { ...policy.permissions.max, ...overlay.permissions?.max } },
    limits: smallerLimits(policy.limits, overlay.limits ?? {}),
  };
}

function smallerLimits(limits: PolicyLimits, overlay: Partial<PolicyLimits>): PolicyLimits {
  const result = { ...limits };
  const { max_cost_usd, ...numbers } = overlay;
  for (const [name, value] of Object.entries(numbers)) {
    const key = name as Exclude<keyof PolicyLimits, "max_cost_usd">; // Object.entries loses the key type
    result[key] = Math.min(result[key], value);
  }
  if (max_cost_usd !== undefined) result.max_cost_usd = smallerDecimal(result.max_cost_usd, max_cost_usd);
  return result;
}
