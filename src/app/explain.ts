/**
 * `explain`, `lock` and `diff` over what the runtime has: plans are judged, their modules fetched and hashed, and nothing of
 * them is executed. The pure parts are in `src/plan`.
 */
import type { Declared } from "../loader/bundler/static_manifest.ts";
import type { LoadContext, ModuleBundle } from "../loader/types.ts";
import { checkPermissions } from "../plan/check/check_permissions.ts";
import { diffPlans } from "../plan/diff.ts";
import type { PlanDiff } from "../plan/diff_report.ts";
import { explainPlan, type Explanation, type ModuleFacts, planGrant } from "../plan/explain.ts";
import { Findings } from "../plan/check/findings.ts";
import { type Lock, lockFromData, lockOf, lockOver } from "../plan/lock.ts";
import { LockLookup } from "../plan/lock_lookup.ts";
import { specsOf } from "../policy/authorise.ts";
import { Redactor } from "../policy/redact.ts";
import { bundlerProcess } from "../sandbox/tiers/isolation_tiers.ts";
import type { Caller } from "../runs/types.ts";
import type { Permissions } from "../sdk/contracts.ts";
import { errorCode, type ErrorDetail, errorMessage, PreampError } from "../sdk/errors.ts";
import { canonicalJson } from "../sdk/json.ts";
import type { ModuleSpec } from "../sdk/plan.ts";
import { placeInAgent } from "./agent_plans.ts";
import type { ModuleTable } from "./module_table.ts";
import { displayGrant, effectiveGrantOf } from "./module_permissions.ts";
import type { LazyLoader } from "./lazy_loader.ts";
import { hashLock } from "./plan_locks.ts";
import type { AuthorisedPlan, Plans } from "./plan_service.ts";
import type { ComparedInput, LockedInput } from "./types.ts";

type JudgedPlans = Awaited<ReturnType<Plans["judgeAll"]>>;

/** What plans are looked at with. */
export interface ExplainParts {
  plans: Plans;
  loading: LazyLoader;
  modules: ModuleTable;
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
  { plans, loading, modules: table }: ExplainParts,
  base_url?: string,
): Promise<Explanation> {
  const judged = await plans.judgeAll(input, caller, base_url);
  const { compiled, warnings, grants, context, base_url: from } = judged.plan;
  const modules = modulesOf(judged);
  const bundles = await fetchAll(modules, loading);
  const { lock } = context;
  return explainPlan({
    plan: compiled.plan,
    plan_hash: compiled.plan_hash,
    lock_hash: lock === undefined ? null : hashLock(lock),
    limits: grants.limits,
    env: compiled.env,
    warnings: [...warnings.map(toWarning), ...bundlerWarnings(modules)],
    modules: await Promise.all(modules.map((module, index) => factsOf(module, bundles[index], table))),
    ...(from === undefined ? {} : { base_url: from }),
  });
}

/**
 * Resolves to the lock of a plan as its modules are now, those of its agents too. What `input.lock` has of other modules is
 * kept; what it says of this plan's is not looked at.
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
  const judged = await plans.judgeAll(input, caller, base_url, { ignore_lock: true });
  const modules = modulesOf(judged).map((module) => ({
    ...module,
    context: { ...module.context, frozen: false },
  }));
  const bundles = await fetchAll(modules, loading);
  const graphs = modules.flatMap(({ spec: { source } }, index) => {
    const bundle = bundles[index];
    return bundle ? [{ source, url: bundle.url, integrity: bundle.integrity, files: bundle.files }] : [];
  });
  const fresh = lockOf(graphs, judged.plan.base_url);
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

/** Without a process for the bundler not every module of a URL can be loaded. */
function bundlerWarnings(modules: readonly JudgedModule[]): Explanation["warnings"] {
  const own = bundlerProcess();
  if (own.available || modules.every(({ spec }) => spec.source.kind === "builtin")) return [];
  return [{ code: "bundler_in_process", message: `Modules of URLs are bundled here: ${own.reason}` }];
}

/** A module of a plan or of one of its agents. */
interface JudgedModule {
  /** With its place in the plan as written. */
  spec: ModuleSpec;
  grant: Pick<ModuleFacts, "asked" | "grant_path" | "granted" | "dropped">;
  tier: ModuleFacts["tier"];
  context: LoadContext;
}

/** The modules of a plan, and those that its agents do not have from it. */
function modulesOf({ plan, agents }: JudgedPlans): JudgedModule[] {
  const own = specsOf(plan.compiled.plan).map((spec) => judgedModule(spec, plan));
  const known = new Set(own.map(identityOf));
  const brought = agents.flatMap(({ name, plan: child }) => {
    const place = (path: string) => placeInAgent(path, name, plan.compiled.written, child.compiled.written);
    return specsOf(child.compiled.plan).map((spec) => judgedModule(spec, child))
      .filter((module) => !known.has(identityOf(module)))
      .map(({ spec, grant, ...rest }) => ({
        ...rest,
        spec: { ...spec, path: place(spec.path) },
        grant: { ...grant, grant_path: place(grant.grant_path) },
      }));
  });
  return [...own, ...brought];
}

function judgedModule(spec: ModuleSpec, judged: AuthorisedPlan): JudgedModule {
  const { compiled, grants, context } = judged;
  const { granted, dropped } = effectiveGrantOf(spec, judged);
  const grant = { ...planGrant(spec, compiled.plan), granted: displayGrant(granted, judged), dropped };
  return { spec, grant, tier: grants.tiers[spec.path] ?? "inline", context };
}

/** What makes it the same thing to touch the world with, wherever it stands. */
function identityOf({ spec, grant, tier }: JudgedModule): string {
  const { module, type, source, integrity = null, instance_id = null } = spec;
  return canonicalJson({ module, type, source, integrity, instance_id, asked: grant.asked, tier });
}

async function factsOf(
  { spec, grant, tier, context: { lock, base_url } }: JudgedModule,
  bundle: ModuleBundle | undefined,
  table: ModuleTable,
): Promise<ModuleFacts> {
  if (!bundle) {
    const { permissions, version, description } = await table.listing(spec.module);
    return {
      spec,
      ...grant,
      tier,
      pinned: true,
      declared: permissions ?? {},
      stated: { version, description },
    };
  }
  const { declared: info, url, integrity, files, imports_refused } = bundle;
  const pinned = spec.integrity !== undefined ||
    lock !== undefined && LockLookup.of(lock, base_url).modulesOf(spec.source).length > 0;
  const declared = wantedOf(info);
  const stated = { version: textIn(info, "version"), description: textIn(info, "description") };
  return {
    spec,
    ...grant,
    tier,
    pinned,
    declared,
    stated,
    graph: { url, integrity, files, imports_refused },
  };
}

/** Characters of a text that a module says of itself. */
const MAX_TEXT = 500;

function textIn(info: Declared | null, field: "version" | "description"): string | null {
  const value = info?.fields[field];
  return typeof value === "string" ? value.slice(0, MAX_TEXT) : null;
}

/** Returns what a module says it wants, or null when that cannot be read. */
function wantedOf(declared: Declared | null): Permissions | null {
  if (declared === null || declared.unread.includes("permissions")) return null;
  const findings = new Findings();
  const permissions = checkPermissions(declared.fields.permissions ?? {}, ["permissions"], findings);
  // an entry that Deno would not take is a wish all the same
  return findings.errors.every(({ code }) => code === "value") ? permissions ?? null : null;
}

/** Bundles of all that is not compiled in, by index, fetched side by side; all that fail are told. */
async function fetchAll(
  modules: readonly Pick<JudgedModule, "spec" | "context">[],
  loading: LazyLoader,
): Promise<(ModuleBundle | undefined)[]> {
  if (modules.every(({ spec }) => spec.source.kind === "builtin")) return modules.map(() => undefined);
  const loader = await loading.loader();
  const results = await Promise.allSettled(
    modules.map(({ spec, context }) =>
      spec.source.kind === "builtin" ? undefined : loader.prepare(spec, context)
    ),
  );
  const failures = results.flatMap((result, index) =>
    result.status === "rejected" ? [{ path: modules[index]!.spec.path, error: result.reason }] : [] // one result for each
  );
  if (failures.length > 0) throw together(failures);
  return results.map((result) => result.status === "fulfilled" ? result.value : undefined);
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

function toWarning(
  { code, path, message }: { code: string; path: string; message: string },
): Explanation["warnings"][number] {
  return path === "" ? { code, message } : { code, path, message };
}
