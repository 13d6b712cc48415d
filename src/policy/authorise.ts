/**
 * Authorises a checked plan under a policy, before anything is fetched or mounted. Returns the plan's
 * grants or every reason for refusal; never drops anything silently (src/docs/security.md).
 */
import type { Tier } from "../plan/check/check_spec.ts";
import type { CompiledPlan } from "../plan/compile.ts";
import { isRequestHeader } from "../plan/env.ts";
import { askedOf, type FullPermissions } from "../plan/permissions/permission_block.ts";
import type { Permissions, RunLimits } from "../sdk/contracts.ts";
import { didYouMean } from "../sdk/findings.ts";
import { type ErrorCode, type ErrorDetail, PreampError } from "../sdk/errors.ts";
import { toFrozenObject } from "../sdk/json.ts";
import type { ModuleSpec, MountPlan } from "../sdk/plan.ts";
import { describe } from "../sdk/value_path.ts";
import { fullPermissions } from "./effective_permissions.ts";
import { combineLimits } from "./limits.ts";
import { type Origin, type Policy, trustOf } from "./policy.ts";
import {
  endpointReasons,
  exceedsParent,
  type ExcessPaths,
  permissionReasons,
} from "./refused_permissions.ts";
import { isPinnedInline, isTrustedInline, sourceProblem, sourceRules } from "./source_rules.ts";

export interface AuthoriseOptions {
  origin: Origin;
  /** Policy of the caller ({@link policyFor}). */
  policy: Policy;
  /** Ids of the built-in modules. */
  builtins: ReadonlySet<string>;
  /** Limits of the request. They may only be lower. */
  limits?: Partial<RunLimits>;
  /**
   * Returns whether this host has the tier `process`; called for modules from URLs. Absent: only built-in
   * modules are loaded.
   */
  processTier?: () => TierAnswer;
  /**
   * Resolves the paths of the plan (`asked`) and of the policy (`max`). Absent: paths are compared as
   * written.
   */
  paths?: ExcessPaths;
}

/** Whether a host has a tier, or why not, as the second half of a sentence. */
export type TierAnswer = { readonly available: true } | {
  readonly available: false;
  readonly reason: string;
};

/** Result of `authorise`. */
export interface Grants {
  limits: RunLimits;
  /** Source of the dollar limit; see `combineLimits`. */
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
  checkGuests(plan, options); // each module that follows costs time
  const { mayReadEnv, permissions: max } = trustOf(origin, policy);
  const reasons: Reason[] = [];
  const tiers: Record<string, Tier> = {};
  const permissions: Record<string, FullPermissions> = {};
  const allowed = new Set<Permissions | undefined>(); // blocks: many tools may have the plan's default
  for (const spec of specsOf(plan)) {
    const asked = askedOf(spec, plan);
    const refusals = sourceReasons(spec, options);
    const tier = refusals.length === 0 && spec.source.kind === "url"
      ? urlTier(spec, spec.source, options)
      : builtinTier(spec);
    reasons.push(...refusals, ...(typeof tier === "string" ? [] : [tier]));
    if (max) {
      const excess = allowed.has(asked) ? [] : permissionReasons(spec, plan, max, options.paths);
      if (excess.length === 0) allowed.add(asked);
      reasons.push(...excess.map(refused));
      reasons.push(...endpointReasons(spec, max).map(refused));
    }
    tiers[spec.path] = typeof tier === "string" ? tier : "inline";
    permissions[spec.path] = fullPermissions(asked);
  }
  if (origin === "caller") reasons.push(...envReasons(compiled, mayReadEnv));
  const { limits, cost_limit, reasons: too_high } = combineLimits(policy.limits, {
    plan: plan.limits,
    request: options.limits ?? {},
  });
  reasons.push(...too_high.map(refused));
  if (reasons.length > 0) throw refusal("plan", reasons);
  return {
    limits: toFrozenObject(limits) as unknown as RunLimits, // shared by runs, their entries and records
    cost_limit,
    mayReadEnv,
    tiers,
    permissions,
    ...(max ? { max_permissions: max } : {}),
  };
}

/**
 * Checks that a session may have as many sandboxes as a plan needs. @throws {PreampError} `policy_refused`.
 */
function checkGuests(plan: MountPlan, options: AuthoriseOptions): void {
  const { max_guests_per_session: max } = options.policy.isolation;
  const guests = specsOf(plan).filter((spec) =>
    spec.source.kind === "url" && (spec.isolation === "process" || !isTrusted(spec, spec.source, options))
  );
  const extra = guests[max];
  if (!extra) return;
  throw refusal("plan", [refused({
    path: extra.path,
    message: `Cannot start ${guests.length} modules from URLs: a session has at most ${max} sandboxes`,
    hint: "use fewer modules; the operator sets isolation.max_guests_per_session",
  })]);
}

/**
 * Returns the URL that decides whether a module is trusted. A folder is trusted as a whole, because its
 * `deno.json` may name any file in it.
 */
function placeOf({ url, folder = false }: { url: string; folder?: boolean }): string {
  return folder ? new URL(".", url).href : url;
}

/** Returns whether the policy trusts a module's source, or the operator's plan its bytes. */
function isTrusted(
  spec: ModuleSpec,
  source: { url: string; folder?: boolean },
  { policy, origin }: AuthoriseOptions,
): boolean {
  return isPinnedInline(spec, origin) || isTrustedInline(placeOf(source), policy);
}

/**
 * Authorises a sub-agent's plan, like any plan of its origin and within its parent's grants: delegation never
 * adds a permission.
 *
 * @throws {PreampError} as `authorise`; `policy_refused` for a grant that the parent does not have.
 */
export function authoriseWithin(
  compiled: CompiledPlan,
  options: AuthoriseOptions,
  parent: Pick<Grants, "permissions">,
): Grants {
  const grants = authorise(compiled, options);
  const details = exceedsParent(grants, parent, options.paths?.asked);
  if (details.length > 0) throw refusal("sub-agent", details.map(refused));
  return grants;
}

/** Returns every module of a plan in mount order. */
export function specsOf(plan: MountPlan): ModuleSpec[] {
  const { orchestrator, context } = plan.session;
  return [orchestrator, context, ...plan.providers, ...plan.tools, ...plan.hooks];
}

/** Returns reasons to refuse a module that is neither built in nor from a URL that the policy allows. */
function sourceReasons(
  { module, path, source }: ModuleSpec,
  { origin, policy, builtins, processTier }: AuthoriseOptions,
): Reason[] {
  const known = builtins.has(module);
  const list = `built-in modules are ${[...builtins].sort().join(", ")}`;
  if (source.kind === "builtin") {
    if (known) return [];
    const meant = didYouMean(module, builtins);
    const message = `Cannot load module "${module}": it has no source and is not built in`;
    const hint = meant ? `did you mean "${meant}"?` : list;
    return [{ code: "plan_invalid", path, message, hint }];
  }
  const leave_out = known ? `leave source out to use the built-in "${module}"` : undefined;
  let fact = "this program loads built-in modules only";
  let hint = leave_out ?? list;
  if (processTier) {
    const problem = source.kind === "path"
      ? { fact: "a relative path needs a plan file", hint: "use the URL of an ES module" }
      : sourceProblem(new URL(source.url), { as: "entry" }, sourceRules(origin, policy, new URL(source.url)));
    if (!problem) return [];
    ({ fact } = problem);
    hint = leave_out ? `${problem.hint}; ${leave_out}` : problem.hint;
  }
  const from = source.kind === "url" ? source.url : source.original;
  const message = `Cannot load module "${module}": ${fact}: received ${describe(from)}`;
  return [{ code: "module_source_denied", path: `${path}.source`, message, hint }];
}

/**
 * Returns the tier of a built-in module, always `inline`. A plan that asks for a stronger tier is refused.
 */
function builtinTier({ module, path, source, isolation = "inline" }: ModuleSpec): Tier | Reason {
  if (source.kind !== "builtin" || isolation === "inline") return "inline";
  return {
    code: "isolation_unavailable",
    path: `${path}.isolation`,
    message: `Cannot run module "${module}" in tier "${isolation}": built-in modules run inline`,
    hint: "leave isolation out",
  };
}

/**
 * Returns the tier of a module from a URL: `process`, or `inline` for trusted code if the plan does not ask
 * for `process`. If this host has no processes, the module is refused, never run inline.
 */
function urlTier(
  spec: ModuleSpec,
  source: { url: string; folder?: boolean },
  options: AuthoriseOptions,
): Tier | Reason {
  const { origin, processTier } = options;
  const path = `${spec.path}.isolation`;
  const is_trusted = isTrusted(spec, source, options);
  const asked = spec.isolation ?? (is_trusted ? "inline" : "process");
  const message = `Cannot run module "${spec.module}" in tier "${asked}"`;
  if (asked === "inline") {
    if (is_trusted) return asked;
    const hint = origin === "caller"
      ? "leave isolation out"
      : "leave isolation out, or read the code and trust it with preamp plan vendor --inline";
    return refused({ path, message: `${message}: it is not trusted`, hint });
  }
  const answer = processTier!(); // without it no URL is allowed
  if (answer.available) return asked;
  return {
    code: "isolation_unavailable",
    path,
    message: `${message}: ${answer.reason}`,
    hint: origin === "caller"
      ? "use built-in modules; the operator can add what is missing, or offer the module in a plan of the server"
      : "read the module's code and vendor it with preamp plan vendor --inline, or add what is missing",
  };
}

/**
 * Returns reasons for variables that the policy does not list. Messages do not reveal whether a variable is
 * set.
 */
function envReasons({ env }: CompiledPlan, mayRead: (name: string) => boolean): Reason[] {
  const isRefused = ({ name, expanded }: CompiledPlan["env"][number]) =>
    !expanded || !isRequestHeader(name) && !mayRead(name);
  return env.filter(isRefused).map(({ name, path, expanded }) =>
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

/** Returns the error that lists the reasons to refuse a `plan` or `sub-agent`. */
function refusal(subject: string, reasons: readonly Reason[]): PreampError {
  const codes = new Set(reasons.map(({ code }) => code));
  const code = codes.size === 1 ? reasons[0]!.code : "policy_refused";
  const details = unique(reasons.map(({ code: _, ...detail }) => detail));
  const { path, message } = details[0]!; // there is at least one reason
  const more = `Cannot run this ${subject}: ${details.length} reasons, the first: ${path}: ${message}`;
  return new PreampError(code, details.length === 1 ? message : more, { details });
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
