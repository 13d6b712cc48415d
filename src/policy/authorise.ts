/**
 * A checked plan under a policy: what it gets, or every reason why it gets nothing. Before anything is fetched or mounted;
 * nothing is silently dropped (trust.md).
 */
import { type ErrorCode, type ErrorDetail, PreampError } from "../sdk/errors.ts";
import type { ModuleSpec, MountPlan, RunLimits } from "../sdk/plan.ts";
import type { CompiledPlan } from "../plan/compile.ts";
import { didYouMean } from "../plan/did_you_mean.ts";
import { describe } from "../plan/path.ts";
import { endpointReasons } from "./endpoints.ts";
import { type AskedLimits, combineLimits } from "./limits.ts";
import { type Origin, trustOf } from "./origin.ts";
import { excessOf, fullPermissions } from "./permissions.ts";
import type { FullPermissions, Policy } from "./policy.ts";

/** What a plan is judged by. */
export interface AuthoriseOptions {
  origin: Origin;
  /** The policy that holds for whoever asks ({@link policyFor}). */
  policy: Policy;
  /** Ids of the modules that are compiled in. */
  builtins: ReadonlySet<string>;
  /** Ceilings of the request; they may only tighten. */
  limits?: Partial<RunLimits>;
}

/** Where a module runs. */
export type Tier = "inline" | "worker" | "process";

/** What a plan may have. */
export interface Grants {
  limits: RunLimits;
  /** Who set the dollar ceiling; see limits.ts. */
  cost_limit: "asked" | "policy";
  /** Returns true when a config may expand the variable. */
  mayReadEnv(name: string): boolean;
  /** Tier of each module, by its place in the plan. */
  tiers: Readonly<Record<string, Tier>>;
  /** Grant of each module, by its place in the plan; every name said. */
  permissions: Readonly<Record<string, FullPermissions>>;
}

type Reason = ErrorDetail & { code: ErrorCode };

/**
 * Returns what a plan gets under a policy.
 *
 * @throws {PreampError} with every reason in `details`: `module_source_denied`, `isolation_unavailable` or `policy_refused`
 * when all reasons are of one kind, `policy_refused` when they are mixed.
 */
export function authorise(compiled: CompiledPlan, options: AuthoriseOptions): Grants {
  const { origin, policy, builtins } = options;
  const { plan } = compiled;
  const trust = trustOf(origin, policy);
  const reasons: Reason[] = [];
  const tiers: Record<string, Tier> = {};
  const permissions: Record<string, FullPermissions> = {};
  for (const spec of specsOf(plan)) {
    reasons.push(...sourceReasons(spec, builtins), ...isolationReasons(spec));
    const asked = spec.permissions ?? (spec.type === "tool" ? plan.permissions : undefined);
    if (trust.permissions) {
      reasons.push(...permissionReasons(spec, asked, trust.permissions));
      reasons.push(...endpointReasons(spec, trust.permissions).map(refused));
    }
    tiers[spec.path] = "inline";
    permissions[spec.path] = fullPermissions(asked);
  }
  if (origin === "caller") reasons.push(...envReasons(compiled, trust.mayReadEnv));
  const asked: AskedLimits = { plan: plan.limits, ...(options.limits ? { request: options.limits } : {}) };
  const { limits, cost_limit, reasons: tooHigh } = combineLimits(policy.limits, asked);
  reasons.push(...tooHigh.map(refused));
  if (reasons.length > 0) throw refusal(reasons);
  return { limits, cost_limit, mayReadEnv: trust.mayReadEnv, tiers, permissions };
}

/** Returns every module of a plan in mount order. */
export function specsOf(plan: MountPlan): ModuleSpec[] {
  const { orchestrator, context } = plan.session;
  return [orchestrator, context, ...plan.providers, ...plan.tools, ...plan.hooks];
}

/** This build loads what is compiled in; every other source is refused, whoever asks. */
function sourceReasons(spec: ModuleSpec, builtins: ReadonlySet<string>): Reason[] {
  const known = builtins.has(spec.module);
  if (spec.source.kind === "builtin" && known) return [];
  const path = spec.source.kind === "builtin" ? spec.path : `${spec.path}.source`;
  const list = `built in are ${[...builtins].sort().join(", ")}`;
  if (spec.source.kind === "builtin") {
    const meant = didYouMean(spec.module, builtins);
    const message = `Cannot load module "${spec.module}": it has no source and is not built in`;
    return [{
      code: "module_source_denied",
      path,
      message,
      hint: meant ? `did you mean "${meant}"? ${list}` : list,
    }];
  }
  const from = spec.source.kind === "url" ? spec.source.url : spec.source.original;
  const message = `Cannot load module "${spec.module}": this build loads built-in modules only: received ${
    describe(from)
  }`;
  const hint = known ? `leave source out to use the built-in "${spec.module}"` : list;
  return [{ code: "module_source_denied", path, message, hint }];
}

/** Built-in modules run inline; a plan that asks for a stronger tier must not be run in a weaker one. */
function isolationReasons({ module, path, source, isolation }: ModuleSpec): Reason[] {
  if (source.kind !== "builtin" || isolation === undefined || isolation === "inline") return [];
  const message = `Cannot run module "${module}" in tier "${isolation}": built-in modules run inline`;
  return [{ code: "isolation_unavailable", path: `${path}.isolation`, message, hint: "leave isolation out" }];
}

function permissionReasons(
  spec: ModuleSpec,
  asked: ModuleSpec["permissions"],
  max: FullPermissions,
): Reason[] {
  const owner = spec.permissions ? `${spec.path}.permissions` : "permissions";
  return excessOf(asked, max).map(({ permission, asked: entry }) => {
    const what = entry === true ? `all of ${permission}` : `${permission} ${describe(entry)}`;
    const given = max[permission];
    const most = Array.isArray(given) && given.length > 0 ? given.map(describe).join(", ") : "nothing";
    return refused({
      path: `${owner}.${permission}`,
      message:
        `Cannot grant ${what} to module "${spec.module}": the policy's ceiling for ${permission} is ${most}`,
      hint: "ask for less, or have the operator raise permissions.max",
    });
  });
}

/** Names only: whether a variable is set on the server is nobody's business (threats T6). */
function envReasons({ env }: CompiledPlan, mayRead: (name: string) => boolean): Reason[] {
  return env.filter(({ name, expanded }) => !expanded || !mayRead(name)).map(({ name, path, expanded }) =>
    refused({
      path,
      message: expanded
        ? `Cannot expand \${${name}}: the policy does not list it in env.allow`
        : `Cannot expand \${${name}} here: variables are expanded in config only`,
      hint: "write the value itself; $${ stands for a literal ${",
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

/** One entry of the plan's default grant is refused once, not for each tool that would get it. */
function unique(details: readonly ErrorDetail[]): ErrorDetail[] {
  const seen = new Set<string>();
  return details.filter(({ path, message }) => {
    const key = path.startsWith("permissions.")
      ? `${path} ${message.split(" to module ")[0]}`
      : `${path} ${message}`;
    return !seen.has(key) && seen.add(key);
  });
}
