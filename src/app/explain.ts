/**
 * `explain`, `lock` and `diff` over what the runtime has: plans are judged, their modules fetched and hashed, and nothing of
 * them is executed. The pure parts are in `src/plan`.
 */
import type { ModuleBundle } from "../loader/types.ts";
import { checkPermissions } from "../plan/check_permissions.ts";
import { diffPlans } from "../plan/diff.ts";
import type { PlanDiff } from "../plan/diff_report.ts";
import { explainPlan, type Explanation, type ModuleFacts } from "../plan/explain.ts";
import { Findings } from "../plan/findings.ts";
import { type Lock, lockedSource, lockFromData, lockOf, lockOver } from "../plan/lock.ts";
import { specsOf } from "../policy/authorise.ts";
import { Redactor } from "../policy/redact.ts";
import type { Caller } from "../runs/types.ts";
import type { Permissions } from "../sdk/contracts.ts";
import { errorCode, type ErrorDetail, errorMessage, PreampError } from "../sdk/errors.ts";
import type { ModuleSpec } from "../sdk/plan.ts";
import { listingOf } from "./builtins.ts";
import { heldByProcess } from "./held.ts";
import type { Loading } from "./loading.ts";
import { hashLock } from "./locks.ts";
import type { JudgedPlan, Plans } from "./plans.ts";
import type { ComparedInput, LockedInput } from "./types.ts";
import { urlSpecs } from "./url_modules.ts";

/** What plans are looked at with. */
export interface ExplainParts {
  plans: Plans;
  loading: Loading;
}

/**
 * Resolves to what a plan may touch; its modules are fetched, none is executed.
 *
 * @throws {PreampError} As a run of this plan would before it starts: `plan_invalid`, `policy_refused`,
 * `module_source_denied`, `module_fetch_failed`, `module_integrity_mismatch`, `lock_invalid`, ….
 */
export async function explain(
  input: LockedInput,
  caller: Caller,
  { plans, loading }: ExplainParts,
  base_url?: string,
): Promise<Explanation> {
  const judged = await plans.judge(input, caller, base_url);
  const { compiled, grants, context } = judged;
  const bundles = await fetchAll(judged, loading);
  const { lock } = context;
  const modules = await Promise.all(specsOf(compiled.plan).map((spec) => factsOf(spec, judged, bundles)));
  return explainPlan({
    plan: compiled.plan,
    plan_hash: compiled.plan_hash,
    lock_hash: lock === undefined ? null : hashLock(lock),
    limits: grants.limits,
    env: compiled.env,
    warnings: compiled.warnings.map(({ code, path, message }) =>
      path === "" ? { code, message } : { code, path, message }
    ),
    modules,
    holds: heldByProcess(judged.base_url),
    ...(judged.base_url === undefined ? {} : { base_url: judged.base_url }),
  });
}

/**
 * Resolves to the lock of a plan as its modules are now. What `input.lock` has of other modules is kept; what it says of this
 * plan's is not looked at.
 *
 * @throws {PreampError} As {@link explain}; `module_integrity_mismatch` when the plan itself pins other code.
 */
export async function lockPlan(
  input: LockedInput,
  caller: Caller,
  { plans, loading }: ExplainParts,
  base_url?: string,
): Promise<Lock> {
  const kept = input.lock === undefined ? undefined : lockFromData(input.lock);
  const judged = await plans.judge(input, caller, base_url, { ignore_lock: true });
  const context = { ...judged.context, frozen: false };
  const bundles = await fetchAll({ ...judged, context }, loading);
  const graphs = urlSpecs(specsOf(judged.compiled.plan)).flatMap(({ path, source }) => {
    const bundle = bundles.get(path);
    return bundle ? [{ source, url: bundle.url, integrity: bundle.integrity, files: bundle.files }] : [];
  });
  const fresh = lockOf(graphs, judged.base_url);
  return kept ? lockOver(fresh, kept) : fresh;
}

/** Resolves to how one plan differs from another; nothing is judged or fetched. @throws {PreampError} As `Plans.compiled`. */
export async function diff(
  from: ComparedInput,
  to: ComparedInput,
  caller: Caller,
  { plans }: Pick<ExplainParts, "plans">,
): Promise<PlanDiff> {
  const [before, after] = [
    await plans.compiled(from, caller, from.base_url, "from"),
    await plans.compiled(to, caller, to.base_url, "to"),
  ];
  const redactor = new Redactor();
  return diffPlans(before, after, (key, value) => redactor.redact({ [key]: value })[key]);
}

async function factsOf(
  spec: ModuleSpec,
  { grants, context: { lock } }: JudgedPlan,
  bundles: ReadonlyMap<string, ModuleBundle>,
): Promise<ModuleFacts> {
  const tier = grants.tiers[spec.path] ?? "inline";
  const bundle = bundles.get(spec.path);
  if (!bundle) {
    const { permissions } = await listingOf(spec.module);
    return { spec, tier, pinned: true, declared: permissions ?? {} };
  }
  const { code, exports, url, integrity, files, imports_refused } = bundle;
  const pinned = spec.integrity !== undefined ||
    lock !== undefined && Object.hasOwn(lock.modules, lockedSource(spec.source));
  return {
    spec,
    tier,
    pinned,
    declared: exports.includes("module") ? await wantedOf(code) : {},
    graph: { url, integrity, files, imports_refused },
  };
}

/** Resolves to what a module says it wants, or null when that cannot be read. */
async function wantedOf(code: string): Promise<Permissions | null> {
  const { readDeclared } = await import("../loader/declared.ts");
  const declared = await readDeclared(code);
  if (declared === null || declared.unread.includes("permissions")) return null;
  const findings = new Findings();
  const permissions = checkPermissions(declared.fields.permissions ?? {}, ["permissions"], findings);
  return findings.errors.length === 0 ? permissions ?? null : null;
}

/** Every module of a plan that is not compiled in, side by side; all that fail are told. */
async function fetchAll(
  { compiled, context }: JudgedPlan,
  loading: Loading,
): Promise<Map<string, ModuleBundle>> {
  const specs = urlSpecs(specsOf(compiled.plan));
  if (specs.length === 0) return new Map();
  const loader = await loading.loader();
  const results = await Promise.allSettled(specs.map((spec) => loader.prepare(spec, context)));
  const bundles = new Map<string, ModuleBundle>();
  const failures: { path: string; error: unknown }[] = [];
  for (const [index, result] of results.entries()) {
    const { path } = specs[index]!; // one result for each
    if (result.status === "fulfilled") bundles.set(path, result.value);
    else failures.push({ path, error: result.reason });
  }
  if (failures.length > 0) throw together(failures);
  return bundles;
}

function together(failures: readonly { path: string; error: unknown }[]): unknown {
  const [first] = failures;
  const bug = failures.find(({ error }) => errorCode(error) === undefined);
  if (bug) return bug.error;
  if (failures.length === 1) return first?.error;
  const details = failures.flatMap(({ path, error }): ErrorDetail[] => {
    const own = (error as PreampError).details; // it has a code of ours
    return own.length > 0 ? [...own] : [{ path: `${path}.source`, message: errorMessage(error) }];
  });
  const message = `Cannot load ${failures.length} modules, the first: ${errorMessage(first?.error)}`;
  return new PreampError((first?.error as PreampError).code, message, { details, cause: first?.error });
}
