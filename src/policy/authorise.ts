/**
 * Authorises a checked plan under a policy, before anything is fetched or mounted. Returns the plan's
 * grants or every reason for refusal; never drops anything silently (src/docs/security.md).
 */
import type { CompiledPlan } from "../plan/compile.ts";
import { askedOf, type FullPermissions } from "../plan/permissions/grants.ts";
import { describe } from "../sdk/value_path.ts";
import { type AskedLimits, combineLimits } from "./combine_limits.ts";
import { type ExcessPaths, excessPermissions, fullPermissions } from "./effective_permissions.ts";
import { type Origin, trustOf } from "./plan_trust.ts";
import type { Policy } from "./policy.ts";
import { endpointReasons } from "./provider_endpoints.ts";
import { isTrustedInline, sourceProblem, sourceRules } from "./source_rules.ts";
import { type ErrorCode, type ErrorDetail, PreampError } from "../sdk/errors.ts";
import type { ModuleSpec, MountPlan, Source } from "../sdk/plan.ts";
import type { RunLimits } from "../sdk/contracts.ts";
import { didYouMean } from "../sdk/did_you_mean.ts";

/** Options of `authorise`. */
export interface AuthoriseOptions {
  origin: Origin;
  /** Policy of the caller ({@link policyFor}). */
  policy: Policy;
  /** Ids of the built-in modules. */
  builtins: ReadonlySet<string>;
  /** Limits of the request. They may only be lower. */
  limits?: Partial<RunLimits>;
  /** Returns the tiers of this host; called for modules from URLs. Absent: only built-in modules are loaded. */
  hostTiers?: () => TierReport;
  /**
   * Resolves the paths of the plan (`asked`) and of the policy (`max`). Absent: paths are compared as
   * written.
   */
  paths?: ExcessPaths;
}

/** Tier in which a module runs. */
export type Tier = "inline" | "worker" | "process";

/** Whether a host has a tier, or why not, as the second half of a sentence. */
export type TierAnswer = { readonly available: true } | {
  readonly available: false;
  readonly reason: string;
};

/** Availability of each tier outside of this isolate. */
export type TierReport = Readonly<Record<Exclude<Tier, "inline">, TierAnswer>>;

const STRENGTH: Readonly<Record<Tier, number>> = { inline: 0, worker: 1, process: 2 };

/** Result of `authorise`. */
export interface Grants {
  limits: RunLimits;
  /** Source of the dollar limit; see combine_limits.ts. */
  cost_limit: "asked" | "policy";
  /** Returns true if a config may expand the variable. */
  mayReadEnv(name: string): boolean;
  /** Tier of each module, by its path in the plan. */
  tiers: Readonly<Record<string, Tier>>;
  /** Grant of each module with all permission names, by its path in the plan. */
  permissions: Readonly<Record<string, FullPermissions>>;
  /** Upper bound of each module's grant. Absent for an operator's plan, which only the process bounds. */
  max_permissions?: FullPermissions;
}

type Reason = ErrorDetail & { code: ErrorCode };

/**
 * Returns the grants of a plan under a policy.
 *
 * @throws {PreampError} with every reason in `details`. Code: `plan_invalid` for unknown modules,
 * `module_source_denied`, `isolation_unavailable` or `policy_refused` if all reasons are of one kind;
 * `policy_refused` if they are mixed.
 */
export function authorise(compiled: CompiledPlan, options: AuthoriseOptions): Grants {
  const { origin, policy } = options;
  const { plan } = compiled;
  const trust = trustOf(origin, policy);
  const reasons: Reason[] = [];
  const tiers: Record<string, Tier> = {};
  const permissions: Record<string, FullPermissions> = {};
  for (const spec of specsOf(plan)) {
    const from = sourceReasons(spec, options);
    const tier = from.length === 0 && spec.source.kind === "url"
      ? urlTier(spec, placeOf(spec.source), options)
      : builtinTier(spec);
    reasons.push(...from, ...("reason" in tier ? [tier.reason] : []));
    const asked = askedOf(spec, plan);
    if (trust.permissions) {
      reasons.push(...permissionReasons(spec, asked, trust.permissions, options.paths));
      reasons.push(...endpointReasons(spec, trust.permissions).map(refused));
    }
    tiers[spec.path] = "tier" in tier ? tier.tier : "inline";
    permissions[spec.path] = fullPermissions(asked);
  }
  if (origin === "caller") reasons.push(...envReasons(compiled, trust.mayReadEnv));
  const asked: AskedLimits = { plan: plan.limits, ...(options.limits ? { request: options.limits } : {}) };
  const { limits, cost_limit, reasons: tooHigh } = combineLimits(policy.limits, asked);
  reasons.push(...tooHigh.map(refused));
  if (reasons.length > 0) throw refusal(reasons);
  const max = trust.permissions ? { max_permissions: trust.permissions } : {};
  return {
    limits: Object.freeze(limits),
    cost_limit,
    mayReadEnv: trust.mayReadEnv,
    tiers,
    permissions,
    ...max,
  };
}

/** Returns every module of a plan in mount order. */
export function specsOf(plan: MountPlan): ModuleSpec[] {
  const { orchestrator, context } = plan.session;
  return [orchestrator, context, ...plan.providers, ...plan.tools, ...plan.hooks];
}

/** Returns reasons to refuse a module that is neither built in nor from a URL that the policy allows. */
function sourceReasons(
  spec: ModuleSpec,
  { origin, policy, builtins, hostTiers }: AuthoriseOptions,
): Reason[] {
  const known = builtins.has(spec.module);
  const { source } = spec;
  if (source.kind === "builtin" && known) return [];
  const list = `built-in modules are ${[...builtins].sort().join(", ")}`;
  if (source.kind === "builtin") {
    const meant = didYouMean(spec.module, builtins);
    const message = `Cannot load module "${spec.module}": it has no source and is not built in`;
    const hint = meant ? `did you mean "${meant}"? ${list}` : list;
    return [{ code: "plan_invalid", path: spec.path, message, hint }];
  }
  const from = source.kind === "url" ? source.url : source.original;
  const leaveOut = known ? `leave source out to use the built-in "${spec.module}"` : undefined;
  let fact = "this program loads built-in modules only";
  let hint = leaveOut ?? list;
  if (hostTiers) {
    const refused = source.kind === "path"
      ? { fact: "a relative path needs a plan file", hint: "use the URL of an ES module" }
      : sourceProblem(new URL(source.url), { as: "entry" }, sourceRules(origin, policy, new URL(source.url)));
    if (!refused) return [];
    ({ fact } = refused);
    hint = leaveOut ? `${refused.hint}; ${leaveOut}` : refused.hint;
  }
  const message = `Cannot load module "${spec.module}": ${fact}: received ${describe(from)}`;
  return [denied(`${spec.path}.source`, message, hint)];
}

/**
 * Returns the tier of a built-in module, always `inline`. A plan that asks for a stronger tier is refused.
 */
function builtinTier({ module, path, source, isolation }: ModuleSpec): { tier: Tier } | { reason: Reason } {
  if (source.kind !== "builtin" || isolation === undefined || isolation === "inline") {
    return { tier: "inline" };
  }
  const message = `Cannot run module "${module}" in tier "${isolation}": built-in modules run inline`;
  return { reason: unavailable(`${path}.isolation`, message, "leave isolation out") };
}

/**
 * Returns the tier of a module from a URL: `inline` for origins in `modules.inline`, else the policy's tier
 * or the stronger one that the plan asks for. If this host lacks that tier, the module is refused, never
 * run in a weaker one.
 */
function urlTier(
  spec: ModuleSpec,
  url: string,
  { origin, policy, hostTiers }: AuthoriseOptions,
): { tier: Tier } | { reason: Reason } {
  const path = `${spec.path}.isolation`;
  const standard: Tier = isTrustedInline(url, policy)
    ? "inline"
    : origin === "caller"
    ? policy.isolation.urls_from_callers
    : policy.isolation.urls_from_operator;
  const asked = spec.isolation ?? standard;
  if (STRENGTH[asked] < STRENGTH[standard]) {
    const message =
      `Cannot run module "${spec.module}" in tier "${asked}": the policy's tier is "${standard}"`;
    return { reason: refused({ path, message, hint: "leave isolation out, or ask for a stronger tier" }) };
  }
  if (asked === "inline") return { tier: asked };
  const answer = hostTiers!()[asked]; // without it no URL is allowed
  if (answer.available) return { tier: asked };
  const message = `Cannot run module "${spec.module}" in tier "${asked}": ${answer.reason}`;
  const hint = "the operator can add what is missing (GET /readyz lists it); built-in modules need no tier";
  return { reason: unavailable(path, message, hint) };
}

/**
 * Returns the URL by which a source is trusted. A folder is trusted as a whole, because its `deno.json` may
 * name any file in it.
 */
function placeOf({ url, folder }: Extract<Source, { kind: "url" }>): string {
  return folder ? new URL(".", url).href : url;
}

function denied(path: string, message: string, hint: string): Reason {
  return { code: "module_source_denied", path, message, hint };
}

function unavailable(path: string, message: string, hint: string): Reason {
  return { code: "isolation_unavailable", path, message, hint };
}

function permissionReasons(
  spec: ModuleSpec,
  asked: ModuleSpec["permissions"],
  max: FullPermissions,
  paths: ExcessPaths | undefined,
): Reason[] {
  const owner = spec.permissions ? `${spec.path}.permissions` : "permissions";
  return excessPermissions(asked, max, paths).map(({ permission, entry }) => {
    const label = entry === true ? `all of ${permission}` : `${permission} ${describe(entry)}`;
    const allowed = max[permission];
    const most = Array.isArray(allowed) && allowed.length > 0 ? allowed.map(describe).join(", ") : "nothing";
    return refused({
      path: `${owner}.${permission}`,
      message:
        `Cannot grant ${label} to module "${spec.module}": the policy allows ${most} for ${permission}`,
      hint: "ask for less, or have the operator raise permissions.max",
    });
  });
}

/**
 * Returns reasons for variables that the policy does not list. Messages do not reveal whether a variable is
 * set.
 */
function envReasons({ env }: CompiledPlan, mayRead: (name: string) => boolean): Reason[] {
  return env.filter(({ name, expanded }) => !expanded || !mayRead(name)).map(({ name, path, expanded }) =>
    refused({
      path,
      message: expanded
        ? `Cannot expand \${${name}}: the policy does not list it in env.allow`
        : `Cannot expand \${${name}} here: variables are expanded in config only`,
      hint: "write the value itself; $${ is a literal ${",
    })
  );
}

function refused(detail: ErrorDetail): Reason {
  return { code: "policy_refused", ...detail };
}

function refusal(reasons: readonly Reason[]): PreampError {
  const codes = new Set(reasons.map(({ code }) => code));
  const code = codes.size === 1 ? reasons[0]!.code : "policy_refused";
  const details = unique(reasons.map(({ code: _, ...detail }) => detail));
  const [first] = details;
  const message = details.length === 1
    ? first!.message
    : `Cannot run this plan: ${details.length} reasons, the first: ${first!.path}: ${first!.message}`;
  return new PreampError(code, message, { details });
}

/** Removes repeated reasons: an entry of the plan's default grant is reported once, not for each tool. */
function unique(details: readonly ErrorDetail[]): ErrorDetail[] {
  const seen = new Set<string>();
  return details.filter(({ path, message }) => {
    const key = path.startsWith("permissions.")
      ? `${path} ${message.split(" to module ")[0]}`
      : `${path} ${message}`;
    return !seen.has(key) && seen.add(key);
  });
}
