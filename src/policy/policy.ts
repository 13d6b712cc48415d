/**
 * The server's policy: every key of `preamp.yaml`, as data. policy_schema.ts describes each setting,
 * parse_policy.ts reads it from text, and authorise.ts applies it to a plan.
 */
import { smallerDecimal } from "../sdk/money.ts";
import type { DocumentLimits } from "../plan/parse/document_limits.ts";
import type { FullPermissions } from "../plan/permissions/grants.ts";
import type { Permissions, RunLimits } from "../sdk/contracts.ts";
import { PreampError } from "../sdk/errors.ts";

/** A key that may call the API. */
export interface ApiKeyEntry {
  /** Displayed as `key:NAME`; also the namespace of what its holder creates. */
  name: string;
  /** Lower-case hex SHA-256 of the key. */
  sha256: string;
  /** Name of an entry of `policies`. */
  policy?: string;
}

/**
 * All limits. Names end in their unit, except `approval_timeout`, which keeps upstream's name and is in
 * seconds.
 */
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
  max_tool_output_bytes: number;
  max_tool_result_bytes: number;
  max_answer_tool_calls: number;
  max_answer_blocks: number;
  max_hooks: number;
  max_log_entries: number;
  max_log_bytes: number;
  max_session_state_bytes: number;
  max_depth: number;
  max_sessions: number;
  page_limit: number;
  max_page_limit: number;
}

/** The policy of one key, applied over the server's by {@link policyFor}. */
export interface PolicyOverlay {
  limits?: Partial<PolicyLimits>;
  permissions?: { max: Permissions };
  modules?: Partial<Policy["modules"]>;
  env?: Partial<Policy["env"]>;
  isolation?: Partial<Policy["isolation"]>;
  rates?: Partial<Policy["rates"]>;
}

/** The whole policy. policy_schema.ts describes each setting. */
export interface Policy {
  listen: { host: string; port: number; behind_proxy: boolean; trusted_proxies: string[] };
  cors: { origins: string[] };
  plans: string;
  /** Model of the demo agent, as `PROVIDER/MODEL`; empty: the scripted one. */
  model: string;
  store: string;
  store_limits: { max_entries: number; max_records: number; max_bytes: number };
  retention: { log_days: number; idempotency_hours: number };
  metrics: { open: boolean };
  tracing: { content: boolean };
  rates: { requests_per_minute: number; runs_per_minute: number };
  auth: { keys: ApiKeyEntry[] };
  modules: {
    allow: string[];
    inline: string[];
    frozen: boolean;
    private_hosts: string[];
    esm_host: string;
  };
  /** Policies of keys, by name. */
  policies: Record<string, PolicyOverlay>;
  env: { allow: string[] };
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

/** Returns the limits of a plan's text and data, for `compilePlan`. */
export function documentLimits({ limits }: Policy): DocumentLimits {
  return {
    max_bytes: limits.max_plan_bytes,
    max_nodes: limits.max_plan_nodes,
    max_depth: limits.max_plan_depth,
    max_aliases: limits.max_plan_aliases,
  };
}

/**
 * Returns the policy of a key: the server's with `policies.NAME` applied over it. Limits only become
 * smaller; other settings are replaced.
 *
 * @throws {PreampError} `forbidden` if the entry does not exist: a key whose policy was removed gets
 * nothing.
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
