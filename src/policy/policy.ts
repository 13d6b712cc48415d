/**
 * The server's policy: every key of `preamp.yaml`, as data. policy_schema.ts describes each setting,
 * parse_policy.ts reads it from text, and authorise.ts applies it to a plan.
 */
import { compareLimit, LIMIT_NAMES } from "../plan/check/field_checks.ts";
import type { DocumentLimits } from "../plan/parse/document_limits.ts";
import type { FullPermissions } from "../plan/permissions/permission_block.ts";
import type { Permissions, RunLimits } from "../sdk/contracts.ts";
import { type ErrorDetail, PreampError } from "../sdk/errors.ts";

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
  const limits: PolicyLimits = { ...policy.limits };
  lowerLimits(limits, overlay.limits ?? {});
  return {
    ...policy,
    rates: { ...policy.rates, ...overlay.rates },
    modules: { ...policy.modules, ...overlay.modules },
    env: { ...policy.env, ...overlay.env },
    isolation: { ...policy.isolation, ...overlay.isolation },
    permissions: { max: { ...policy.permissions.max, ...overlay.permissions?.max } },
    limits,
  };
}

/** Limits that plan and request ask for. */
export interface AskedLimits {
  plan?: Partial<RunLimits>;
  request?: Partial<RunLimits>;
}

/** The effective limits, and reasons for those above the policy's. */
export interface CombinedLimits {
  limits: RunLimits;
  /**
   * Source of the dollar limit. An unpriced call ends the run under `asked`, and is a warning under
   * `policy`.
   */
  cost_limit: "asked" | "policy";
  reasons: ErrorDetail[];
}

/** Returns the smallest of each limit. Values above the policy's are reasons to refuse. */
export function combineLimits(policy: RunLimits, { plan = {}, request = {} }: AskedLimits): CombinedLimits {
  const { max_iterations, max_tool_calls, max_total_tokens, max_cost_usd, max_duration_s } = policy;
  const limits = { max_iterations, max_tool_calls, max_total_tokens, max_cost_usd, max_duration_s };
  const reasons: ErrorDetail[] = [];
  for (const [path, asked] of [["limits", plan], ["request.limits", request]] as const) {
    for (const name of LIMIT_NAMES) {
      const value = asked[name];
      if (value === undefined || compareLimit(value, policy[name]) <= 0) continue;
      const most = JSON.stringify(policy[name]);
      reasons.push({
        path: `${path}.${name}`,
        message: `Cannot raise ${name}: the policy's limit is ${most}: received ${JSON.stringify(value)}`,
        hint: `write at most ${most}, or leave it out`,
      });
    }
    lowerLimits(limits, asked);
  }
  const asks_cost = plan.max_cost_usd !== undefined || request.max_cost_usd !== undefined;
  return { limits, cost_limit: asks_cost ? "asked" : "policy", reasons };
}

/** Sets each limit to that of `over` if it is lower. */
function lowerLimits(limits: RunLimits, over: Partial<RunLimits>): void {
  for (const [name, value] of Object.entries(over)) {
    const limit = limits[name as keyof RunLimits]; // Object.entries loses the key type
    if (value !== undefined && compareLimit(value, limit) < 0) Object.assign(limits, { [name]: value });
  }
}

/** Author of a plan: the operator (a file), or a caller (in a request). */
export type Origin = "operator" | "caller";

/** Rights of the plans of one origin (src/docs/security.md#who-is-trusted). */
export interface Trust {
  /** Returns true if a plan may expand the variable. */
  mayReadEnv(name: string): boolean;
  /** The most that its modules may be granted; undefined: the permissions of the process. */
  permissions: Policy["permissions"]["max"] | undefined;
}

/**
 * Returns what an origin is trusted with. A caller gets the policy's lists, but never `run` or `ffi`, with
 * which a module escapes every sandbox. An operator is bounded by the process only.
 */
export function trustOf(origin: Origin, policy: Policy): Trust {
  if (origin === "operator") return { mayReadEnv: () => true, permissions: undefined };
  const allowed = new Set(policy.env.allow);
  return {
    mayReadEnv: (name) => allowed.has(name),
    permissions: { ...policy.permissions.max, run: false, ffi: false },
  };
}
