/**
 * Implements `explain`, `lock` and `diff`: authorises plans, fetches and hashes their modules, executes
 * nothing. The pure parts are in `src/plan`.
 */
import { placeInAgent } from "./agent_plans.ts";
import { defaultVariables, schemaOf } from "./plan_configs.ts";
import { promptHost } from "./plan_sentence.ts";
import { expandedConfig } from "./plan_texts.ts";
import type { LazyLoader } from "./lazy_loader_and_sandbox.ts";
import { type AuthorisedPlan, displayOf, effectiveGrantOf, grantOf } from "./module_permissions.ts";
import type { ModuleTable } from "./module_table.ts";
import type { Plans } from "./plan_service.ts";
import type { ComparedInput, LockedInput } from "./types.ts";
import type { Declared } from "../loader/bundler/static_manifest.ts";
import type { LoadContext, ModuleBundle } from "../loader/types.ts";
import { checkPermissions } from "../plan/check/check_permissions.ts";
import type { PlanText } from "../plan/compile.ts";
import { Findings } from "../sdk/findings.ts";
import { diffPlans } from "../plan/diff.ts";
import type { PlanDiff } from "../plan/diff_module.ts";
import { type ExplainedServer, explainPlan, type Explanation, type ModuleFacts } from "../plan/explain.ts";
import { askedOf, blockOf, entriesOf, grantPath } from "../plan/permissions/permission_block.ts";
import { type Lock, lockFromData, LockLookup, lockOf, lockOver } from "../plan/lock.ts";
import { specsOf } from "../policy/authorise.ts";
import type { EffectiveGrant } from "../policy/effective_permissions.ts";
import { withoutPlanSecrets } from "../policy/plan_secrets.ts";
import { Redactor } from "../policy/redact.ts";
import type { Caller } from "../runs/types.ts";
import { bundlerProcess, processTier } from "../sandbox/process_support.ts";
import { type Found, noPermissions, type Permissions } from "../sdk/contracts.ts";
import { canonicalHash } from "../sdk/digest.ts";
import { errorCode, type ErrorDetail, errorMessage, PreampError } from "../sdk/errors.ts";
import { canonicalJson, isObject, type JsonObject } from "../sdk/json.ts";
import type { PinnedTools } from "../sdk/pinned_tools.ts";
import type { ModuleSpec } from "../sdk/plan.ts";
import type { Path } from "../sdk/value_path.ts";

type AuthorisedPlans = Awaited<ReturnType<Plans["authoriseAll"]>>;

/** Collaborators of this file's functions. */
export interface ExplainDeps {
  plans: Plans;
  loading: LazyLoader;
  modules: ModuleTable;
  /** Environment variables of the process. */
  env: (name: string) => string | undefined;
}

/**
 * Resolves to what a plan may touch. Fetches its modules and executes none.
 *
 * @throws {PreampError} as a run of this plan before it starts: `plan_invalid`, `policy_refused`,
 * `module_source_denied`, `module_fetch_failed`, `module_integrity_mismatch`, `lock_invalid`, ….
 */
export async function explain(
  input: LockedInput,
  caller: Caller,
  { plans, loading, modules: table, env }: ExplainDeps,
  base_url?: string,
): Promise<Explanation> {
  const authorised = await plans.authoriseAll(input, caller, base_url);
  const { compiled, template: { run_warnings }, grants, context, base_url: from } = authorised.plan;
  const modules = await fetchAll(modulesOf(authorised, caller), loading, { unread: true });
  const { lock } = context;
  const promptsOf = (spec: ModuleSpec) => promptHost(spec, schemaOf(spec, table), env, caller);
  return explainPlan({
    plan: compiled.plan,
    ...await plans.textsOf(authorised.plan),
    instructions: (await plans.projectOf(authorised.plan))?.files ?? null,
    lock_hash: lock === undefined ? null : canonicalHash(lock),
    limits: grants.limits,
    env: [...compiled.env, ...variablesOfKeys(modules, table)],
    warnings: [...run_warnings, ...bundlerWarnings(modules)],
    modules: await Promise.all(
      modules.map((module) => factsOf(module, table, promptsOf(module.spec), caller)),
    ),
    agents: authorised.agents.map(({ name, plan }) => ({
      name,
      hooks: plan.compiled.plan.hooks.map((spec) => ({
        ...spec,
        path: placeInAgent(spec.path, name, compiled.written, plan.compiled.written),
      })),
    })),
    ...(from === undefined ? {} : { base_url: from }),
    ...(compiled.project_folder === undefined ? {} : { project_folder: compiled.project_folder }),
  });
}

/**
 * Resolves to the lock of a plan and its agents with their modules as they are now. Entries of `input.lock`
 * for other modules are kept; its entries for this plan's are replaced.
 *
 * @throws {PreampError} as {@link explain}; `module_integrity_mismatch` if the plan itself pins another
 * integrity; `policy_refused` for a caller if the operator's plan has sources that callers do not see.
 */
export async function lockPlan(
  input: LockedInput,
  caller: Caller,
  deps: ExplainDeps,
  base_url?: string,
): Promise<Lock> {
  const { plans, loading } = deps;
  const kept = input.lock === undefined ? undefined : lockFromData(input.lock);
  const authorised = await plans.authoriseAll(input, caller, base_url, { ignore_lock: true });
  const modules = modulesOf(authorised, caller).map((module) => ({
    ...module,
    context: { ...module.context, frozen: false },
  }));
  const graphs = bundled(await fetchAll(modules, loading)).map(({ spec: { source }, bundle }) => {
    const { url, integrity, files } = bundle;
    return { source, url, integrity, files };
  });
  const servers: Record<string, PinnedTools> = {};
  for (const module of modules) Object.assign(servers, await pinsOf(module, deps));
  const texts: PlanText[] = [];
  for (const plan of [authorised.plan, ...authorised.agents.map(({ plan }) => plan)]) {
    texts.push(...(await plans.textsOf(plan)).texts);
  }
  const fresh = lockOf(graphs, authorised.plan.base_url, servers, texts);
  if (caller.origin === "caller" && authorised.plan.origin === "operator") checkPublic(fresh);
  return kept ? lockOver(fresh, kept) : fresh;
}

/**
 * Resolves to the instructions of the project that a plan reads, what its built-in modules find by
 * themselves, and the servers that they name.
 *
 * @throws {PreampError} as a run of this plan before it starts.
 */
export async function foundBy(
  input: LockedInput,
  caller: Caller,
  deps: ExplainDeps,
  base_url?: string,
): Promise<Found[]> {
  const { plan } = await deps.plans.authoriseAll(input, caller, base_url);
  const found = await Promise.all(plan.template.specs.map(async (spec): Promise<Found[]> => {
    const module = spec.source.kind === "builtin" ? await deps.modules.module(spec.module) : undefined;
    if (!module?.finds && !module?.servers) return [];
    const config = expandedConfig(spec, plan, deps);
    const servers = (module.servers?.(config) ?? []).map(({ name }) => ({ label: `MCP server ${name}` }));
    return [
      ...await module.finds?.(config, { ...noPermissions(), ...grantOf(spec, plan) }) ?? [],
      ...servers,
    ];
  }));
  const files = (await deps.plans.projectOf(plan))?.files ?? [];
  found.unshift(files.map(({ path }) => ({ label: path })));
  return [...new Map(found.flat().map((one) => [one.label, one])).values()];
}

/** Resolves to the tools of the servers that a module in the program names. */
async function pinsOf(
  { spec, authorised }: AuthorisedModule,
  deps: ExplainDeps,
): Promise<Record<string, PinnedTools>> {
  const module = spec.source.kind === "builtin" ? await deps.modules.module(spec.module) : undefined;
  if (!module?.pins) return {};
  const config = expandedConfig(spec, authorised, deps);
  try {
    return await module.pins(config, { ...noPermissions(), ...grantOf(spec, authorised) });
  } catch (error) {
    const message = `Cannot lock the servers of ${spec.path}: ${errorMessage(error)}`;
    throw new PreampError("module_load_failed", message, {
      cause: error,
      details: [{ path: `${spec.path}.config`, message: errorMessage(error) }],
    });
  }
}

/**
 * Checks that a lock has only names that a caller may see: no queries, which may contain signatures, no
 * folders of this machine and no code.
 */
function checkPublic({ modules, files, texts }: Lock): void {
  const names = [
    ...Object.keys(texts),
    ...Object.keys(modules),
    ...Object.values(modules).map(({ url }) => url),
    ...Object.keys(files),
  ];
  if (!names.some((name) => name.includes("?") || /^(\/|file:|data:)/i.test(name))) return;
  const message = "Cannot return the lock: it has names of files that only the operator may see: " +
    "the operator can run preamp plan lock";
  throw new PreampError("policy_refused", message);
}

/** A plan and the bundles of its modules from URLs, those of its agents included. */
export interface FetchedPlan {
  plan: AuthorisedPlan;
  modules: { spec: ModuleSpec; bundle: ModuleBundle }[];
}

/**
 * Fetches, verifies and bundles a plan's modules; executes none. Lock and pins hold as in a run.
 *
 * @throws {PreampError} as {@link explain}.
 */
export async function fetchPlan(
  input: LockedInput,
  caller: Caller,
  { plans, loading }: Pick<ExplainDeps, "plans" | "loading">,
  base_url?: string,
): Promise<FetchedPlan> {
  const authorised = await plans.authoriseAll(input, caller, base_url);
  return { plan: authorised.plan, modules: bundled(await fetchAll(modulesOf(authorised, caller), loading)) };
}

/** Returns the modules that come from URLs. */
function bundled(modules: readonly FetchedModule[]): FetchedPlan["modules"] {
  return modules.flatMap(({ spec, bundle }) => bundle ? [{ spec, bundle }] : []);
}

/**
 * Resolves to the differences of two plans. Authorises and fetches nothing. @throws {PreampError} as
 * `Plans.compiled`.
 */
export async function diff(
  from: ComparedInput,
  to: ComparedInput,
  caller: Caller,
  { plans }: Pick<ExplainDeps, "plans">,
): Promise<PlanDiff> {
  const [before, after] = [
    await plans.compiled(from, caller, from.base_url, "from"),
    await plans.compiled(to, caller, to.base_url, "to"),
  ];
  const redactor = new Redactor();
  const [from_lock, to_lock] = [
    await plans.lockBeside(from, caller, from.base_url),
    await plans.lockBeside(to, caller, to.base_url),
  ];
  const textsIn = async (side: ComparedInput, lock: Lock | undefined) => ({
    servers: lock?.servers,
    locked_texts: lock?.texts,
    // a plan that would be refused has no texts to compare
    read_texts: await plans.authoriseAll(side, caller, side.base_url).then(({ plan }) => plans.textsOf(plan))
      .then(({ texts }) => texts, () => undefined),
  });
  const sides = [
    { ...before, ...await textsIn(from, from_lock) },
    { ...after, ...await textsIn(to, to_lock) },
  ] as const;
  return diffPlans(
    ...sides,
    (at, value) => inPlace(at, value, (data) => redactor.redact(withoutPlanSecrets(data))),
  );
}

/** Returns a value after `change` at its place in an object: a change may depend on the names above it. */
function inPlace(at: Path, value: unknown, change: (data: JsonObject) => JsonObject): unknown {
  const names = at.length === 0 ? ["value"] : at.map(String);
  const data = names.reduceRight<unknown>((inner, name) => ({ [name]: inner }), value) as JsonObject; // names is not empty
  return names.reduce<unknown>((outer, name) => isObject(outer) ? outer[name] : outer, change(data));
}

/** Returns the variables from which built-in providers take keys that the plan does not state. */
function variablesOfKeys(modules: readonly AuthorisedModule[], table: ModuleTable): { name: string }[] {
  return modules.flatMap(({ spec }) => {
    const schema = schemaOf(spec, table);
    return schema
      ? defaultVariables(spec.config, schema).flatMap(([, names]) => names.map((name) => ({ name })))
      : [];
  });
}

/** Returns a warning if there is no bundler process, because not every module can be loaded then. */
function bundlerWarnings(modules: readonly AuthorisedModule[]): Explanation["warnings"] {
  const own = bundlerProcess();
  if (own.available || modules.every(({ spec }) => spec.source.kind === "builtin")) return [];
  return [{
    code: "bundler_in_process",
    message: `Modules from URLs are bundled in this process: ${own.reason}`,
  }];
}

/** A module of a plan or of one of its agents. */
interface AuthorisedModule {
  /** The module, with its path in the plan as written. */
  spec: ModuleSpec;
  grant: Pick<ModuleFacts, "asked" | "grant_path" | "granted" | "dropped">;
  tier: ModuleFacts["tier"];
  context: LoadContext;
  /** The plan that has the module. */
  authorised: AuthorisedPlan;
}

/** A module with its bundle; a built-in module has none. */
type FetchedModule = AuthorisedModule & { bundle?: ModuleBundle };

/** Returns the modules of a plan, and those that its agents add. */
function modulesOf({ plan, agents }: AuthorisedPlans, caller: Caller): AuthorisedModule[] {
  const own = authorisedModules(specsOf(plan.compiled.plan), plan, caller);
  const known = new Set(own.map(({ spec }) => identityOf(spec, plan)));
  const brought = agents.flatMap(({ name, plan: child }) => {
    const place = (path: string) => placeInAgent(path, name, plan.compiled.written, child.compiled.written);
    const added = specsOf(child.compiled.plan).filter((spec) => !known.has(identityOf(spec, child)));
    return authorisedModules(added, child, caller).map(({ spec, grant, ...rest }) => ({
      ...rest,
      spec: { ...spec, path: place(spec.path) },
      grant: { ...grant, grant_path: place(grant.grant_path) },
    }));
  });
  return [...own, ...brought];
}

/** Returns modules of one plan. Those with the same block of permissions share what it grants. */
function authorisedModules(
  specs: readonly ModuleSpec[],
  authorised: AuthorisedPlan,
  { origin }: Caller,
): AuthorisedModule[] {
  const { compiled: { plan }, context } = authorised;
  const known = new Map<Permissions | undefined, EffectiveGrant>();
  const display: ReturnType<typeof displayOf> = origin === "operator"
    ? (_kind, entry) => entry
    : displayOf(authorised);
  return specs.map((spec) => {
    const block = askedOf(spec, plan);
    let effective = known.get(block);
    if (!effective) known.set(block, effective = effectiveGrantOf(spec, authorised));
    const shown = (permissions: Permissions) =>
      blockOf(
        entriesOf(permissions).map(({ permission, entry }) => ({
          permission,
          entry: display(permission, entry),
        })),
      );
    const grant = {
      asked: shown(block ?? {}),
      grant_path: grantPath(spec, plan),
      granted: shown(effective.granted),
      dropped: effective.dropped.map(({ permission, entry, by }) => ({
        permission,
        entry: display(permission, entry),
        by,
      })),
    };
    return { spec, grant, tier: tierOf(spec, authorised), context, authorised };
  });
}

function tierOf({ path }: ModuleSpec, { grants }: AuthorisedPlan): ModuleFacts["tier"] {
  return grants.tiers[path] ?? "inline";
}

/** Returns a key of everything that matters for `explain`, independent of the path. */
function identityOf(spec: ModuleSpec, authorised: AuthorisedPlan): string {
  const { module, type, source, integrity = null, instance_id = null } = spec;
  const asked = askedOf(spec, authorised.compiled.plan) ?? {};
  return canonicalJson({
    module,
    type,
    source,
    integrity,
    instance_id,
    asked,
    tier: tierOf(spec, authorised),
  });
}

async function factsOf(
  { spec, grant, tier, context: { lock, base_url }, authorised, bundle }: FetchedModule,
  table: ModuleTable,
  prompts_to: string | null,
  caller: Caller,
): Promise<ModuleFacts> {
  const own = { spec, ...grant, tier, prompts_to };
  const own_tier = tier === "process" ? processTier() : undefined;
  const refused = own_tier?.available === false ? { refused: own_tier.reason } : {};
  if (!bundle && spec.source.kind !== "builtin") {
    const stated = { version: null, description: null };
    return { ...own, ...refused, pinned: isPinned(spec, lock, base_url), declared: null, stated };
  }
  if (!bundle) {
    const servers = await serversOf(spec, authorised, table, caller);
    const { permissions, version, description } = await table.listing(spec.module);
    return { ...own, pinned: true, declared: permissions ?? {}, stated: { version, description }, servers };
  }
  const { declared: info, url, integrity, files, imports_refused } = bundle;
  const pinned = isPinned(spec, lock, base_url);
  const declared = wantedOf(info);
  const stated = { version: textIn(info, "version"), description: textIn(info, "description") };
  return { ...own, ...refused, pinned, declared, stated, graph: { url, integrity, files, imports_refused } };
}

/** Returns whether the plan or its lock has the digest of a module. */
function isPinned(spec: ModuleSpec, lock: Lock | undefined, base_url: string | undefined): boolean {
  return spec.integrity !== undefined ||
    lock !== undefined && LockLookup.of(lock, base_url).modulesOf(spec.source).length > 0;
}

/**
 * Returns the servers that a config names, with their tools in the lock. Only the operator sees what the
 * settings say about a server, and how its plans start one.
 */
async function serversOf(
  { module: id, config }: ModuleSpec,
  { origin, policy, context: { lock } }: AuthorisedPlan,
  table: ModuleTable,
  caller: Caller,
): Promise<ExplainedServer[]> {
  const supplied = caller.origin === "operator" ? { operator_servers: policy.mcp.servers } : {};
  const { servers } = await table.module(id);
  return (servers?.({ ...config, ...supplied }) ?? []).map(({ name, transport, target }) => {
    const tools = lock && Object.hasOwn(lock.servers, name) ? lock.servers[name] : undefined;
    const may_see = caller.origin === "operator" || origin === "caller" || transport === "http";
    const shown = may_see ? String(withoutPlanSecrets({ target }).target) : "";
    return { name, transport, target: shown, tools: tools ? Object.keys(tools).sort() : null };
  });
}

/** Maximum length of a text that a module declares about itself. */
const MAX_TEXT = 500;

function textIn(info: Declared | null, field: "version" | "description"): string | null {
  const value = info?.fields[field];
  return typeof value === "string" ? value.slice(0, MAX_TEXT) : null;
}

/** Returns the permissions that a module declares, or null if they cannot be read. */
function wantedOf(declared: Declared | null): Permissions | null {
  if (declared === null || declared.unread.includes("permissions")) return null;
  const findings = new Findings();
  const permissions = checkPermissions(declared.fields.permissions ?? {}, ["permissions"], findings);
  // a module may want an entry that Deno does not accept
  return findings.errors.every(({ code }) => code === "value") ? permissions ?? null : null;
}

/**
 * Fetches the bundles of all modules from URLs in parallel. Reports all failures.
 *
 * @param options `unread`: leaves a module without its bundle where this host has no bundler for it.
 */
async function fetchAll(
  modules: readonly AuthorisedModule[],
  loading: LazyLoader,
  { unread = false }: { unread?: boolean } = {},
): Promise<FetchedModule[]> {
  if (modules.every(({ spec }) => spec.source.kind === "builtin")) return [...modules];
  const loader = await loading.loader();
  const results = await Promise.allSettled(modules.map(async (module) => {
    const { spec, context } = module;
    if (spec.source.kind === "builtin") return module;
    try {
      return { ...module, bundle: await loader.prepare(spec, context) };
    } catch (error) {
      if (unread && errorCode(error) === "module_load_failed" && !bundlerProcess().available) return module;
      throw error;
    }
  }));
  const failures = results.flatMap((result, index) =>
    result.status === "rejected" ? [{ path: modules[index]!.spec.path, error: result.reason }] : [] // one result for each
  );
  if (failures.length > 0) throw together(failures);
  return results.flatMap((result) => result.status === "fulfilled" ? [result.value] : []);
}

function together(failures: readonly { path: string; error: unknown }[]): unknown {
  const [first] = failures;
  const bug = failures.find(({ error }) => errorCode(error) === undefined);
  if (bug) return bug.error;
  if (failures.length === 1) return first?.error;
  const details = failures.flatMap(({ path, error }): ErrorDetail[] => {
    const own = (error as PreampError).details; // an error with one of our codes
    return own.length > 0 ? [...own] : [{ path: `${path}.source`, message: errorMessage(error) }];
  });
  const message = `Cannot load ${failures.length} modules, the first: ${errorMessage(first?.error)}`;
  return new PreampError((first?.error as PreampError).code, message, { details, cause: first?.error });
}
