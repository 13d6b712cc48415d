/**
 * Turns the plan of a request into a runnable one: finds, checks and authorises it, and opens its modules.
 */
import { authoriseAgents } from "./agent_plans.ts";
import { checkConfigs, checkOpened, checkVariables, schemaOf } from "./check_configs.ts";
import type { LazyLoader } from "./lazy_loader.ts";
import type { LazySandbox } from "./lazy_sandbox.ts";
import { type AuthorisedPlan, grantOf, grantPaths } from "./module_permissions.ts";
import type { ModuleTable } from "./module_table.ts";
import type { NamedPlans } from "./named_plans.ts";
import { expandConfig, type LookUp, unsetVariables } from "./plan_env.ts";
import { PlanFinder, type ResolvedPlan } from "./plan_finder.ts";
import { hashLock, Locks } from "./plan_locks.ts";
import { isOfUrl, UrlModules, urlSpecs } from "./remote_modules.ts";
import { rewrittenSources, type SourceOverrides } from "./source_overrides.ts";
import type { LockedInput, NamedPlan, PlanCheck, PlanInput } from "./types.ts";
import { documentError, toDetail, toWarning as toWarningDetail } from "../plan/check/findings.ts";
import type { Findings } from "../sdk/findings.ts";
import { agentNames, childPlan } from "../plan/child_plan.ts";
import type { CompiledPlan } from "../plan/compile.ts";
import { type Lock, lockFromData } from "../plan/lock.ts";
import { LockLookup } from "../plan/lock_lookup.ts";
import { withPlaces } from "../plan/parse/parse.ts";
import { authorise, type Grants, specsOf } from "../policy/authorise.ts";
import { authoriseWithin } from "../policy/delegation.ts";
import type { Origin } from "../policy/plan_trust.ts";
import { documentLimits, type Policy, policyFor } from "../policy/policy.ts";
import type { ModuleReporter, RunnablePlan, ServiceLimits } from "../runs/ports.ts";
import type { Caller, RunRequest, Warning } from "../runs/types.ts";
import { type ErrorCode, errorCode, type ErrorDetail, PreampError } from "../sdk/errors.ts";
import type { JsonObject } from "../sdk/json.ts";
import type { Module, ModuleSpec, RunLimits } from "../sdk/types.ts";

/** Collaborators of `Plans`. */
export interface PlansDeps {
  policy: Policy;
  named: NamedPlans;
  /** Modules that a plan can name by id. */
  modules: ModuleTable;
  /** Environment variables of the process. */
  env: (name: string) => string | undefined;
  /** Loads modules from URLs. */
  loading: LazyLoader;
  /** Runs modules in workers and child processes. */
  sandboxing: LazySandbox;
  /** Overrides of the sources in an operator's plans. */
  sources: SourceOverrides;
}

/** Options of `Plans.authorise`. */
interface AuthoriseOptions {
  lock?: JsonObject;
  /** Limits of the request. */
  limits?: Partial<RunLimits>;
  /** The authorised plan that spawns this one. */
  within?: AuthorisedPlan;
  /** Ignores the plan's lock; for commands that rewrite it. */
  ignore_lock?: boolean;
}

/** Finds, authorises and opens plans. */
export class Plans {
  readonly #options: PlansDeps;
  readonly #finder: PlanFinder;
  /** Plans whose agents may all run, with the policies that allow it. */
  readonly #agentsAllowed = new WeakMap<CompiledPlan, Set<Policy>>();
  /** perf: cache of the latest grants of a plan under a policy; authorising it takes 2 % of a short run. */
  readonly #granted = new WeakMap<CompiledPlan, { origin: Origin; policy: Policy; grants: Grants }>();
  readonly #locks = new Locks();
  readonly #policies = new Map<string | undefined, Policy>();
  readonly #limits = new WeakMap<Policy, ServiceLimits>();

  constructor(options: PlansDeps) {
    this.#options = options;
    this.#finder = new PlanFinder({
      ...options,
      esm_host: options.policy.modules.esm_host,
      model: options.policy.model,
      limitsOf: (caller) => documentLimits(caller ? this.#policyOf(caller) : options.policy),
    });
  }

  /**
   * Returns the plan of a request, ready to run.
   *
   * @throws {PreampError} `not_found` for an unknown `plan_ref`; `plan_invalid`, `plan_limit_exceeded`;
   * `policy_refused`, `module_source_denied`, `isolation_unavailable`; `lock_invalid`.
   */
  async ready(request: RunRequest, caller: Caller, base_url?: string): Promise<RunnablePlan> {
    const finding = this.#finder.find(request, caller, base_url);
    const found = finding instanceof Promise ? await finding : finding;
    try {
      return await this.#ready(found, caller, request);
    } catch (error) {
      throw await located(error, found);
    }
  }

  async #ready(found: ResolvedPlan, caller: Caller, options: AuthoriseOptions): Promise<RunnablePlan> {
    const authorised = await this.#compileAndAuthorise(found, caller, options);
    const { compiled, grants, context, base_url, origin } = authorised;
    const { lock } = context;
    const policy = this.#policyOf(caller);
    const { limits } = policy;
    const specs = specsOf(compiled.plan);
    let modules: UrlModules | undefined;
    const urlModules = () => modules ??= this.#urlModules(authorised, policy, specs);
    const lookups = { plan: this.#lookup(grants), keys: this.#options.env };
    /**
     * Configs that were expanded to register their secrets, by index of the spec. The first caller of
     * `open` receives the config itself.
     */
    let expanded: (JsonObject | undefined)[] = [];
    return {
      compiled,
      limits: grants.limits,
      cost_is_asked_for: grants.cost_limit === "asked",
      lock_hash: lock === undefined ? null : hashLock(lock),
      warnings: [
        ...authorised.warnings.map(toWarning),
        ...unsetVariables(compiled, this.#options.env),
        ...(lock === undefined ? [] : unlocked(specs, lock, base_url)),
      ],
      ...(base_url === undefined ? {} : { base_url }),
      agents: {
        origin,
        max_depth: limits.max_depth,
        max_sessions: limits.max_sessions,
        child: (written) => this.#ready({ ...found, input: written }, caller, { within: authorised }),
      },
      registerSecrets: (secrets) => {
        expanded = specs.map((spec) =>
          expandConfig(spec, schemaOf(spec, this.#options.modules), lookups, secrets)
        );
      },
      ...(specs.some(isOfUrl) ? { load: () => urlModules().load() } : {}),
      ...(specs.some((spec) => isOfUrl(spec) && grants.tiers[spec.path] === "inline")
        ? { withConsole: runWithConsole }
        : {}),
      open: (spec, secrets, callbacks) => {
        const index = specs.indexOf(spec);
        const config = expanded[index] ??
          expandConfig(spec, schemaOf(spec, this.#options.modules), lookups, secrets);
        if (index >= 0) expanded[index] = undefined; // the module may change it
        return this.#open(spec, urlModules, config, { callbacks, found, written: compiled.written });
      },
    };
  }

  #urlModules(authorised: AuthorisedPlan, policy: Policy, specs: readonly ModuleSpec[]): UrlModules {
    const { loading, sandboxing } = this.#options;
    const { context, grants } = authorised;
    return new UrlModules({
      specs,
      context,
      policy,
      loading,
      sandboxing,
      tierOf: ({ path }) => grants.tiers[path] ?? "process", // an unknown place gets the strongest tier
      grantOf: (spec) => grantOf(spec, authorised),
    });
  }

  /**
   * Authorises the plan of a request. Fetches nothing.
   *
   * @throws {PreampError} as {@link Plans.ready}.
   */
  async authorise(
    request: Pick<RunRequest, "plan" | "plan_ref" | "model" | "lock" | "limits">,
    caller: Caller,
    base_url?: string,
  ): Promise<AuthorisedPlan> {
    const found = await this.#finder.find(request, caller, base_url);
    try {
      return await this.#compileAndAuthorise(found, caller, request);
    } catch (error) {
      throw await located(error, found);
    }
  }

  /**
   * Authorises a plan like {@link Plans.authorise}, and each of its agents as if it were spawned.
   *
   * @param options `ignore_lock`: for commands that rewrite the lock.
   * @throws {PreampError} as {@link Plans.authorise}.
   */
  async authoriseAll(
    request: Pick<RunRequest, "plan" | "plan_ref" | "model" | "lock">,
    caller: Caller,
    base_url?: string,
    { ignore_lock = false }: { ignore_lock?: boolean } = {},
  ): Promise<{ plan: AuthorisedPlan; agents: { name: string; plan: AuthorisedPlan }[] }> {
    const found = await this.#finder.find(request, caller, base_url);
    try {
      const plan = await this.#compileAndAuthorise(found, caller, { ...request, ignore_lock });
      const agents = [];
      for (const name of agentNames(plan.compiled.written)) {
        const { written } = childPlan(plan.compiled.written, name);
        const child = { ...found, input: written };
        const options = { ...request, ignore_lock, within: plan };
        agents.push({ name, plan: await this.#compileAndAuthorise(child, caller, options) });
      }
      return { plan, agents };
    } catch (error) {
      throw await located(error, found);
    }
  }

  async #compileAndAuthorise(
    found: ResolvedPlan,
    caller: Caller,
    options: AuthoriseOptions,
  ): Promise<AuthorisedPlan> {
    const { origin } = found;
    const { within, ignore_lock } = options;
    const compiled = await this.#finder.located(found);
    const policy = this.#policyOf(caller);
    const grants = this.#authorise(compiled, found, policy, options);
    // perf: cached results are returned without a promise, so that a repeated plan does not wait
    const checking = checkConfigs(compiled, this.#options.modules);
    const configs = checking instanceof Promise ? await checking : checking;
    acceptConfigs(configs, found);
    const warnings = configs.warnings.length === 0
      ? compiled.warnings
      : [...compiled.warnings, ...configs.warnings.map((finding) => toWarningDetail(finding))];
    if (compiled.env.length > 0) await this.#acceptVariables(compiled, found, grants);
    const agents = within === undefined ? this.#authoriseAgents(compiled, found, policy, grants) : undefined;
    if (agents) await agents;
    const beside = found.base_url !== undefined && mayLoad(compiled) ? found.base_url : undefined;
    const may_have_lock = !ignore_lock && (options.lock !== undefined || beside !== undefined);
    const inherited = ignore_lock ? undefined : within?.context.lock;
    const lock = inherited ?? (may_have_lock ? await this.#locks.find(options.lock, beside) : undefined);
    const base = found.base_url === undefined ? {} : { base_url: found.base_url };
    const context = { origin, namespace: caller.namespace, policy, ...base, ...(lock ? { lock } : {}) };
    return { compiled, warnings, grants, context, origin, ...base };
  }

  #authorise(
    compiled: CompiledPlan,
    { origin, base_url }: Pick<ResolvedPlan, "origin" | "base_url">,
    policy: Policy,
    { limits, within }: { limits?: Partial<RunLimits>; within?: Pick<AuthorisedPlan, "grants"> },
  ): Grants {
    const known = limits || within ? undefined : this.#granted.get(compiled);
    if (known?.origin === origin && known.policy === policy) return known.grants;
    const options = {
      origin,
      policy,
      builtins: this.#options.modules.ids,
      url_tiers: this.#options.sandboxing.url_tiers,
      missing_tiers: this.#options.sandboxing.missing_tiers,
      paths: grantPaths(origin, base_url),
      ...(limits ? { limits } : {}),
    };
    if (within) return authoriseWithin(compiled, options, within.grants);
    const grants = authorise(compiled, options);
    if (!limits) this.#granted.set(compiled, { origin, policy, grants });
    return grants;
  }

  /**
   * Authorises agents once for each plan and policy, because a plan with many agents would pay at every
   * run. Each agent is authorised again when it is spawned.
   */
  #authoriseAgents(
    compiled: CompiledPlan,
    found: ResolvedPlan,
    policy: Policy,
    grants: Grants,
  ): Promise<void> | void {
    if (!this.#agentsAllowed.get(compiled)?.has(policy)) {
      return this.#reauthorise(compiled, found, policy, grants);
    }
  }

  async #reauthorise(
    compiled: CompiledPlan,
    found: ResolvedPlan,
    policy: Policy,
    grants: Grants,
  ): Promise<void> {
    const allowed = this.#agentsAllowed.get(compiled) ?? new Set<Policy>();
    await authoriseAgents(compiled, async (written) => {
      const child = await this.#finder.located({ ...found, input: written });
      this.#authorise(child, found, policy, { within: { grants } });
      acceptConfigs(await checkConfigs(child, this.#options.modules), found);
      if (child.env.length > 0) await this.#acceptVariables(child, found, grants);
    });
    this.#agentsAllowed.set(compiled, allowed.add(policy));
  }

  /**
   * Checks the values of variables against the schemas of the modules. @throws {PreampError}
   * `plan_invalid`.
   */
  async #acceptVariables(compiled: CompiledPlan, found: ResolvedPlan, grants: Grants): Promise<void> {
    acceptConfigs(await checkVariables(compiled, this.#options.modules, this.#lookup(grants)), found);
  }

  /** Returns the variables that a plan may read. */
  #lookup(grants: Grants): LookUp {
    return (name) => grants.mayReadEnv(name) ? this.#options.env(name) : undefined;
  }

  /**
   * Returns the policy of a caller. The loader caches by identity, so the same name gives the same object.
   */
  #policyOf({ policy: name }: Caller): Policy {
    let policy = this.#policies.get(name);
    if (!policy) this.#policies.set(name, policy = policyFor(this.#options.policy, name));
    return policy;
  }

  /** Returns the limits of a caller's runs. @throws {PreampError} `forbidden` if its policy was removed. */
  limitsOf(caller: Caller): ServiceLimits {
    const policy = this.#policyOf(caller);
    let limits = this.#limits.get(policy);
    if (!limits) {
      this.#limits.set(policy, limits = { ...policy.limits, ...policy.retention });
    }
    return limits;
  }

  #open(
    spec: ModuleSpec,
    urlModules: () => UrlModules,
    config: JsonObject,
    { callbacks, found, written }: { callbacks: ModuleReporter; found: ResolvedPlan; written: JsonObject },
  ): ReturnType<RunnablePlan["open"]> {
    const check = (module: Pick<Module, "module">) =>
      acceptOpened(checkOpened(spec, module, config, written), found, callbacks.warn);
    if (spec.source.kind !== "builtin") {
      return urlModules().open(spec, callbacks).then((opened) => ({
        ...opened,
        config,
        checkConfig: () => check(opened.module),
      }));
    }
    const { modules } = this.#options;
    const opened = { config, isolation: "inline", integrity: null } as const;
    const module = modules.module(spec.module);
    const stated = {}; // a built-in module has the program's version
    if (module instanceof Promise) return module.then((loaded) => ({ ...opened, stated, module: loaded }));
    return modules.isOwn(spec.module)
      ? { ...opened, module, checkConfig: () => check(module) }
      : { ...opened, stated, module };
  }

  /**
   * Compiles a plan without authorising it. @throws {PreampError} `not_found`, `plan_invalid`,
   * `plan_limit_exceeded`.
   */
  async compiled(input: PlanInput, caller: Caller, base_url?: string, name?: string): Promise<CompiledPlan> {
    const found = await this.#finder.find(input, caller, base_url);
    return await this.#finder.compile(name === undefined ? found : { name, ...found });
  }

  /**
   * Checks a plan and the policy, without running or fetching anything. An invalid plan is a normal result,
   * not an error.
   */
  async check(input: LockedInput, caller: Caller, options: { base_url?: string } = {}): Promise<PlanCheck> {
    let found: ResolvedPlan;
    let compiled: CompiledPlan;
    try {
      found = await this.#finder.find(input, caller, options.base_url);
    } catch (error) {
      if (input.model === undefined) throw error; // no such plan; with a model, the plan may be invalid
      return { ok: false, errors: detailsOf(error), ...codeOf(error), warnings: [] };
    }
    try {
      compiled = await this.#finder.located(found);
    } catch (error) {
      return { ok: false, errors: detailsOf(error), ...codeOf(error), warnings: [] };
    }
    const { plan_hash } = compiled;
    const configs = await checkConfigs(compiled, this.#options.modules);
    const warnings = [
      ...compiled.warnings,
      ...await withPlacesIn(found, configs.warnings.map((finding) => toWarningDetail(finding))),
      ...unsetVariables(compiled, this.#options.env).map((warning) => ({ path: "", ...warning })),
    ];
    const sources = rewrittenSources(specsOf(compiled.plan));
    const common = { warnings, plan_hash, ...(sources.length > 0 ? { sources } : {}) };
    const errors = await withPlacesIn(found, configs.errors.map((finding) => toDetail(finding)));
    let refused: Pick<PlanCheck, "code"> = errors.length > 0 ? { code: "plan_invalid" } : {};
    try {
      if (input.lock !== undefined) lockFromData(input.lock);
      const policy = this.#policyOf(caller);
      const grants = this.#authorise(compiled, found, policy, {});
      if (errors.length === 0) {
        if (compiled.env.length > 0) await this.#acceptVariables(compiled, found, grants);
        // inherited problems were reported for the plan itself
        await this.#authoriseAgents(compiled, found, policy, grants);
      }
    } catch (error) {
      errors.push(...detailsOf(await located(error, found)));
      refused = refused.code ? refused : codeOf(error);
    }
    return { ok: errors.length === 0, ...refused, errors, ...common };
  }

  /** Returns the operator's plans. Leaves out invalid ones; `plan check` reports why. */
  async list(): Promise<NamedPlan[]> {
    const plans: NamedPlan[] = [];
    for (const name of await this.#options.named.names()) {
      try {
        const { plan_hash, written } = await this.#finder.compile(await this.#finder.named(name));
        const { description } = written;
        plans.push({ name, plan_hash, ...(typeof description === "string" ? { description } : {}) });
      } catch (error) {
        if (errorCode(error) === undefined) throw error;
      }
    }
    return plans;
  }
}

/** Throws the errors in the configs of a plan's modules. @throws {PreampError} `plan_invalid`. */
function acceptConfigs({ errors }: Findings, { name }: ResolvedPlan): void {
  if (errors.length === 0) return;
  const label = name === undefined ? "the plan" : `the plan "${name}"`;
  throw documentError("plan_invalid", label, errors.map((finding) => toDetail(finding)));
}

/**
 * Returns the config to mount an opened module with, and reports its warnings.
 *
 * @throws {PreampError} as {@link acceptConfigs}.
 */
function acceptOpened(
  { findings, config }: ReturnType<typeof checkOpened>,
  found: ResolvedPlan,
  warn: (code: string, message: string) => void,
): Promise<JsonObject> | JsonObject {
  for (const { code, message, hint } of findings.warnings) {
    warn(code, hint === undefined ? message : `${message} (${hint})`);
  }
  try {
    acceptConfigs(findings, found);
    return config;
  } catch (error) {
    return located(error, found).then((placed) => Promise.reject(placed));
  }
}

/**
 * Implements {@link RunnablePlan.withConsole}. Imports its code for the first module that runs in this
 * process.
 */
async function runWithConsole<T>(write: ModuleReporter["console"], body: () => Promise<T>): Promise<T> {
  const { withModuleConsole } = await import("../loader/module_console.ts");
  return await withModuleConsole(write, body);
}

/** Returns whether the plan or one of its agents may have modules from URLs. */
function mayLoad({ plan, written }: CompiledPlan): boolean {
  return specsOf(plan).some(isOfUrl) || agentNames(written).length > 0;
}

/** Adds the places of findings in the plan's text, if it has one. */
async function withPlacesIn<T extends ErrorDetail>(
  { input, limits }: ResolvedPlan,
  details: readonly T[],
): Promise<T[]> {
  return typeof input === "string" ? await withPlaces(details, input, limits) : [...details];
}

/** Adds the places of findings in the plan's text to an error about the plan. */
async function located(error: unknown, { input, limits }: ResolvedPlan): Promise<unknown> {
  if (typeof input !== "string" || errorCode(error) === undefined) return error;
  const { code, message, details, facts, cause } = error as PreampError; // an error with one of our codes
  if (!Array.isArray(details) || details.length === 0) return error;
  return new PreampError(code, message, { details: await withPlaces(details, input, limits), facts, cause });
}

function toWarning({ code, path, message }: { code: string; path: string; message: string }): Warning {
  return path === "" ? { code, message } : { code, path, message };
}

function detailsOf(error: unknown): ErrorDetail[] {
  if (errorCode(error) === undefined) throw error;
  const { details, message } = error as PreampError;
  return details.length > 0 ? [...details] : [{ path: "", message }];
}

function codeOf(error: unknown): Pick<PlanCheck, "code"> {
  return { code: errorCode(error) as ErrorCode }; // `detailsOf` accepts errors with our codes only
}

/** Returns warnings about modules that the lock lacks, so that an outdated lock is noticed. */
function unlocked(specs: readonly ModuleSpec[], lock: Lock, base_url: string | undefined): Warning[] {
  const lookup = LockLookup.of(lock, base_url);
  return urlSpecs(specs).filter(({ source, integrity }) =>
    integrity === undefined && lookup.modulesOf(source).length === 0
  ).map(({ path, module }) => ({
    code: "module_not_locked",
    path,
    message: `The lock does not have module "${module}": run preamp plan lock`,
  }));
}
