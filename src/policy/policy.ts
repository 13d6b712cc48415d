/**
 * The server's policy: every key of `preamp.yaml`, as data. settings.ts and limits.ts describe each setting,
 * parse_policy.ts reads it from text, and authorise.ts applies it to a plan.
 */
import type { FullPermissions } from "../plan/permissions/permission_block.ts";
import type { Permissions } from "../sdk/contracts.ts";
import { PreampError } from "../sdk/errors.ts";
import type { JsonObject } from "../sdk/json.ts";
import type { ApiKeyEntry } from "./api_keys.ts";
import { lowerLimits, type PolicyLimits } from "./limits.ts";

/** The policy of one key, applied over the server's by {@link policyFor}. */
export interface PolicyOverlay {
  limits?: Partial<PolicyLimits>;
  permissions?: { max: Permissions };
  modules?: Partial<Policy["modules"]>;
  env?: Partial<Policy["env"]>;
  isolation?: Partial<Policy["isolation"]>;
  rates?: Partial<Policy["rates"]>;
}

/** The whole policy. settings.ts and limits.ts describe each setting. */
export interface Policy {
  listen: {
    host: string;
    port: number;
    trusted_proxies: string[];
    base_path: string;
    heartbeat_s: number;
  };
  cors: { origins: string[] };
  plans: string;
  /** Folder that `${WORKSPACE}` in plans means; empty: the folder of each plan's file. */
  workspace: string;
  /** Model of the demo agent, as `PROVIDER/MODEL`; empty: the scripted one. */
  model: string;
  store: string;
  /** Whether browsers get the page at `/`. */
  page: boolean;
  store_limits: { max_entries: number; max_records: number; max_bytes: number };
  postgres: { connections: number; named_statements: boolean };
  retention: { days: number; idempotency_hours: number };
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
  /** MCP servers that plans may use by name. */
  mcp: { servers: Record<string, JsonObject> };
  permissions: { max: FullPermissions };
  isolation: {
    memory_mb: number;
    cpu_s: number;
    load_timeout_s: number;
    max_guests: number;
    max_guests_per_session: number;
  };
  limits: PolicyLimits;
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
