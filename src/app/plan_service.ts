/**
 * Turns the plan of a request into a runnable one: finds, checks and authorises it, and opens its modules.
 */
import { agentPlans, authoriseAgents } from "./agent_plans.ts";
import { checkVariables, type LookUp, readableVariables, unsetVariables } from "./plan_configs.ts";
import { type AuthorisedPlan, grantPaths } from "./module_permissions.ts";
import type { NamedPlans } from "./named_plans.ts";
import type { ProjectInstructions } from "./project_instructions.ts";
import {
  acceptConfigs,
  codeOf,
  detailsOf,
  located,
  PlanFinder,
  type ResolvedPlan,
  withPlacesIn,
} from "./plan_finder.ts";
import { Locks } from "./plan_locks.ts";
import { createTemplate, type PlanTemplate } from "./plan_template.ts";
import { hashWith, textsOf } from "./plan_texts.ts";
import { ReadyPlan, type ReadyPlanDeps } from "./ready_plan.ts";
import { rewrittenSources, type SourceOverrides } from "./source_overrides.ts";
import type { LockedInput, NamedPlan, PlanCheck, PlanDocument, PlanInput } from "./types.ts";
import { toDetail } from "../plan/check/findings.ts";
import type { CompiledPlan, PlanText } from "../plan/compile.ts";
import { isRequestHeader } from "../plan/env.ts";
import { explainModes } from "../plan/modes.ts";
import { lockFromData } from "../plan/lock.ts";
import { authorise, authoriseWithin, type Grants, specsOf } from "../policy/authorise.ts";
import { documentLimits } from "../policy/limits.ts";
import { type Policy, policyFor } from "../policy/policy.ts";
import type { RunnablePlan, ServiceLimits } from "../runs/ports.ts";
import type { Caller, RunRequest } from "../runs/types.ts";
import { processTier } from "../sandbox/process_support.ts";
import { errorCode } from "../sdk/errors.ts";
import type { JsonObject } from "../sdk/json.ts";
import type { RunLimits } from "../sdk/types.ts";

export interface PlansDeps extends ReadyPlanDeps {
  policy: Policy;
  named: NamedPlans;
  /** Overrides of the sources in an operator's plans. */
  sources: SourceOverrides;
  /** Absolute path of the folder that `${WORKSPACE}` means. Absent: the folder of each plan's file. */
  workspace?: string;
  /** Folder of saved plans, ending in a slash. Default null: plans cannot be saved. */
  saved?: URL | null;
}

/** The caller of plans that are only described. */
const OPERATOR: Caller = { name: "operator", namespace: "", origin: "operator" };

/** What a plan is authorised with. */
interface AuthoriseOptions {
  lock?: JsonObject;
  /** Limits of the request. */
  limits?: Partial<RunLimits>;
  /** The authorised plan that spawns this one. */
  within?: AuthorisedPlan;
  /** Ignores the plan's lock; for commands that rewrite it. */
  ignore_lock?: boolean;
  /** Authorises for any host, also where this one starts no sandboxes; for commands that run nothing. */
  any_host?: boolean;
}

/** Finds, authorises and opens plans. */
export class Plans {
  readonly #options: PlansDeps;
  readonly #finder: PlanFinder;
  /** Templates of the compiled plans that are in use. The origin of a compiled plan is always the same. */
  readonly #templates = new WeakMap<CompiledPlan, PlanTemplate>();
  readonly #locks = new Locks();
  readonly #policies = new Map<string | undefined, { policy: Policy; limits: ServiceLimits }>();

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
   * @param headers Returns a header of the request.
   * @throws {PreampError} `not_found` for an unknown `plan_ref`; `plan_invalid`, `plan_limit_exceeded`;
   * `policy_refused`, `module_source_denied`, `isolation_unavailable`; `lock_invalid`.
   */
  async ready(
    request: RunRequest,
    caller: Caller,
    base_url?: string,
    headers: LookUp = () => undefined,
  ): Promise<RunnablePlan> {
    const found = await this.#finder.find(request, caller, base_url);
    try {
      const authorised = await this.#compileAndAuthorise(found, caller, request);
      return await this.#readyPlan(found, authorised, caller, headers);
    } catch (error) {
      throw await located(error, found);
    }
  }

  async #readyPlan(
    found: ResolvedPlan,
    authorised: AuthorisedPlan,
    caller: Caller,
    headers: LookUp,
  ): Promise<RunnablePlan> {
    const { compiled, template: { specs } } = authorised;
    const { modules } = this.#options;
    // perf: most plans name no files, and are asked for with each run
    const project = compiled.project_folder === undefined ? null : await this.projectOf(authorised);
    const reads = specs.some(({ module }) => modules.readsTexts(module));
    const { texts, plan_hash } = reads ? await this.textsOf(authorised) : compiled;
    const steering = { project, texts, plan_hash };
    return new ReadyPlan(this.#options, found, authorised, headers, steering, async (written) => {
      const child = { ...found, input: written };
      return await this.#readyPlan(
        child,
        await this.#compileAndAuthorise(child, caller, { within: authorised }),
        caller,
        headers,
      );
    });
  }

  /** Resolves to the texts in files that steer the model, and to the hash of the plan with them. */
  async textsOf(authorised: AuthorisedPlan): Promise<{ texts: readonly PlanText[]; plan_hash: string }> {
    const texts = await textsOf(authorised, this.#options);
    return { texts, plan_hash: await hashWith(authorised.compiled, texts) };
  }

  /** Resolves to the hash of a plan that is not authorised for a run, as a run of the operator has it. */
  async #hashOf(found: ResolvedPlan, caller: Caller): Promise<string> {
    const compiled = await this.#finder.located(found, caller);
    const { modules } = this.#options;
    if (!specsOf(compiled.plan).some(({ module }) => modules.readsTexts(module))) return compiled.plan_hash;
    const template = await this.#templateOf(found, caller);
    try {
      const { origin, base_url } = found;
      const policy = this.#policyOf(caller);
      const grants = this.#grantsOf(template, found, policy, {});
      const base = base_url === undefined ? {} : { base_url };
      const context = { origin, namespace: caller.namespace, policy, ...base };
      return (await this.textsOf({
        template,
        compiled: template.compiled,
        grants,
        policy,
        context,
        origin,
        ...base,
      })).plan_hash;
    } catch (error) {
      if (errorCode(error) === undefined) throw error;
      return compiled.plan_hash; // it is refused
    }
  }

  /** Resolves to the instructions of the project that a plan asks for; to null if it asks for none. */
  async projectOf({ compiled }: AuthorisedPlan): Promise<ProjectInstructions | null> {
    const { project_folder } = compiled;
    if (project_folder === undefined) return null;
    const { readProjectInstructions } = await import("./project_instructions.ts");
    return await readProjectInstructions(project_folder, Date.now());
  }

  /**
   * Authorises the plan of a request, and each of its agents as if it were spawned, for any host. Fetches
   * nothing.
   *
   * @param options `ignore_lock`: for commands that rewrite the lock.
   * @throws {PreampError} as {@link Plans.ready}.
   */
  async authoriseAll(
    request: Pick<RunRequest, "plan" | "plan_ref" | "model" | "mode" | "lock" | "workspace">,
    caller: Caller,
    base_url?: string,
    { ignore_lock = false }: { ignore_lock?: boolean } = {},
  ): Promise<{ plan: AuthorisedPlan; agents: { name: string; plan: AuthorisedPlan }[] }> {
    const found = await this.#finder.find(request, caller, base_url);
    try {
      const plan = await this.#compileAndAuthorise(found, caller, {
        ...request,
        ignore_lock,
        any_host: true,
      });
      const agents = [];
      for await (const { name, written } of agentPlans(plan.compiled.written)) {
        const child = { ...found, input: written };
        const options = { ...request, ignore_lock, any_host: true, within: plan };
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
    const { origin, base_url } = found;
    const { within, ignore_lock, any_host } = options;
    const template = await this.#templateOf(found, caller);
    const { compiled } = template;
    const policy = this.#policyOf(caller);
    const grants = this.#grantsOf(template, found, policy, options);
    acceptConfigs(template.findings, found);
    if (compiled.env.length > 0) await this.#acceptVariables(compiled, found, grants);
    if (within === undefined && !any_host && !template.agents_allowed.has(policy)) {
      await this.#authoriseAgents(template, found, caller, { policy, grants });
    }
    const lock = ignore_lock
      ? undefined
      : within?.context.lock ?? await this.#lockOf(template, found, options);
    const base = base_url === undefined ? {} : { base_url };
    const context = { origin, namespace: caller.namespace, policy, ...base, ...(lock ? { lock } : {}) };
    return { template, compiled, grants, policy, context, origin, ...base };
  }

  async #templateOf(found: ResolvedPlan, caller: Pick<Caller, "origin">): Promise<PlanTemplate> {
    const compiled = await this.#finder.located(found, caller);
    const known = this.#templates.get(compiled);
    if (known) return known;
    const template = await createTemplate(compiled, this.#options.modules, found);
    this.#templates.set(compiled, template);
    return template;
  }

  #grantsOf(
    { compiled, grants: known }: PlanTemplate,
    { origin, base_url }: Pick<ResolvedPlan, "origin" | "base_url">,
    policy: Policy,
    { limits, within, any_host }: Pick<AuthoriseOptions, "limits" | "any_host"> & {
      within?: Pick<AuthorisedPlan, "grants">;
    },
  ): Grants {
    const is_shared = limits === undefined && within === undefined && !any_host;
    const shared = is_shared ? known.get(policy) : undefined;
    if (shared) return shared;
    const options = {
      origin,
      policy,
      builtins: this.#options.modules.ids,
      processTier: any_host ? () => ({ available: true } as const) : processTier,
      paths: grantPaths(origin, base_url),
      ...(limits ? { limits } : {}),
    };
    if (within) return authoriseWithin(compiled, options, within.grants);
    const grants = authorise(compiled, options);
    if (is_shared) known.set(policy, grants);
    return grants;
  }

  /**
   * Authorises the agents of a plan, once for each policy, because a plan with many agents would pay at every
   * run. Each agent is authorised again when it is spawned.
   */
  async #authoriseAgents(
    { compiled, agents_allowed }: PlanTemplate,
    found: ResolvedPlan,
    caller: Caller,
    { policy, grants }: Pick<AuthorisedPlan, "policy" | "grants">,
  ): Promise<void> {
    await authoriseAgents(compiled, async (written) => {
      const child = await this.#templateOf({ ...found, input: written }, caller);
      this.#grantsOf(child, found, policy, { within: { grants } });
      acceptConfigs(child.findings, found);
      if (child.compiled.env.length > 0) await this.#acceptVariables(child.compiled, found, grants);
    });
    agents_allowed.add(policy);
  }

  /**
   * Checks the values of variables against the schemas of the modules. @throws {PreampError}
   * `plan_invalid`.
   */
  async #acceptVariables(compiled: CompiledPlan, found: ResolvedPlan, grants: Grants): Promise<void> {
    const { modules, env } = this.#options;
    acceptConfigs(await checkVariables(compiled, modules, readableVariables(grants, env)), found);
  }

  /** Returns the lock of a plan: that of the request, and the one beside the plan's file. */
  #lockOf(
    { may_load }: PlanTemplate,
    { base_url }: ResolvedPlan,
    { lock }: AuthoriseOptions,
  ): ReturnType<Locks["find"]> | undefined {
    const beside = may_load ? base_url : undefined;
    return lock === undefined && beside === undefined ? undefined : this.#locks.find(lock, beside);
  }

  /**
   * Returns the policy of a caller. The loader caches by identity, so the same name gives the same object.
   *
   * @throws {PreampError} `forbidden` if its policy was removed.
   */
  #policyOf(caller: Caller): Policy {
    return this.#policyAndLimitsOf(caller).policy;
  }

  #policyAndLimitsOf({ policy: name }: Caller): { policy: Policy; limits: ServiceLimits } {
    let known = this.#policies.get(name);
    if (!known) {
      const policy = policyFor(this.#options.policy, name);
      const { days: retention_days, idempotency_hours } = policy.retention;
      const limits = { ...policy.limits, retention_days, idempotency_hours };
      this.#policies.set(name, known = { policy, limits });
    }
    return known;
  }

  /** Returns the limits of a caller's runs. @throws {PreampError} `forbidden` if its policy was removed. */
  limitsOf(caller: Caller): ServiceLimits {
    return this.#policyAndLimitsOf(caller).limits;
  }

  /**
   * Compiles a plan to compare it, without authorising it; its folders are as written.
   *
   * @throws {PreampError} `not_found`, `plan_invalid`, `plan_limit_exceeded`.
   */
  async compiled(input: PlanInput, caller: Caller, base_url?: string, name?: string): Promise<CompiledPlan> {
    const found = await this.#finder.find(input, caller, base_url);
    const folders = { PLAN_DIR: ".", WORKSPACE: "${WORKSPACE}" };
    return await this.#finder.compile(name === undefined ? found : { name, ...found }, folders);
  }

  /** Returns the lock beside the file of a plan; undefined if it has none. @throws {PreampError} */
  async lockBeside(input: PlanInput, caller: Caller, base_url?: string): ReturnType<Locks["find"]> {
    const found = await this.#finder.find(input, caller, base_url);
    return await this.#locks.find(undefined, found.base_url);
  }

  /**
   * Checks a plan and the policy, without running or fetching anything. An invalid plan is a normal result,
   * not an error.
   */
  async check(input: LockedInput, caller: Caller, options: { base_url?: string } = {}): Promise<PlanCheck> {
    let found: ResolvedPlan | undefined;
    let template: PlanTemplate;
    try {
      found = await this.#finder.find(input, caller, options.base_url);
      template = await this.#templateOf(found, caller);
    } catch (error) {
      // no such plan; one of the request may be an invalid bundle, and with a model the plan may be invalid
      if (!found && input.model === undefined && "plan_ref" in input) throw error;
      const refused: PlanCheck = { ok: false, errors: detailsOf(error), ...codeOf(error), warnings: [] };
      if (!found || errorCode(error) !== "plan_invalid") return refused;
      const problems = await this.#finder.problems(found).catch(() => null); // the text cannot be read
      return problems?.errors.length ? { ...refused, ...problems } : refused;
    }
    const { compiled, specs, findings } = template;
    const warnings = [
      ...await withPlacesIn(found, template.warnings),
      ...unsetVariables(compiled, (name) => isRequestHeader(name) ? "" : this.#options.env(name)).map((
        warning,
      ) => ({ path: "", ...warning })),
    ];
    const sources = rewrittenSources(specs);
    const common = {
      warnings,
      plan_hash: await this.#hashOf(found, caller),
      ...(sources.length > 0 ? { sources } : {}),
      ...(compiled.plan.modes ? { modes: explainModes(compiled.plan) } : {}),
    };
    const errors = await withPlacesIn(found, findings.errors.map((finding) => toDetail(finding)));
    let refused: Pick<PlanCheck, "code"> = errors.length > 0 ? { code: "plan_invalid" } : {};
    try {
      if (input.lock !== undefined) lockFromData(input.lock);
      const policy = this.#policyOf(caller);
      const grants = this.#grantsOf(template, found, policy, {});
      if (errors.length === 0) {
        if (compiled.env.length > 0) await this.#acceptVariables(compiled, found, grants);
        // inherited problems were reported for the plan itself
        if (!template.agents_allowed.has(policy)) {
          await this.#authoriseAgents(template, found, caller, { policy, grants });
        }
      }
    } catch (error) {
      errors.push(...detailsOf(await located(error, found)));
      refused = refused.code ? refused : codeOf(error);
    }
    return { ok: errors.length === 0, ...refused, errors, ...common };
  }

  /**
   * Returns a plan of the operator, or the one of requests without a plan (`default`).
   * @param redact Replaces the secrets in it.
   */
  async document(name: string, redact: (plan: JsonObject) => JsonObject): Promise<PlanDocument> {
    const found = name === "default" ? await this.#finder.standard() : await this.#finder.named(name);
    const { written } = await this.#finder.compile(found);
    const plan_hash = await this.#hashOf(found, OPERATOR);
    const { planText } = await import("../plan/plan_text.ts");
    const plan = redact(written);
    return { ...summaryOf(found.name ?? name, plan_hash, plan), plan, text: await planText(plan) };
  }

  /** Saves a plan of the caller under a name. @throws {PreampError} as `savePlan`. */
  async save(name: string, plan: JsonObject | string, caller: Caller): Promise<void> {
    const { savePlan } = await import("./saved_plans.ts");
    const { named, saved: folder = null } = this.#options;
    await savePlan(name, plan, caller, {
      named,
      folder,
      check: async (input, base_url) =>
        await this.#finder.compile(await this.#finder.ofText(input, name, base_url)),
    });
  }

  /** Returns the operator's plans. Leaves out invalid ones; `plan check` reports why. */
  async list(): Promise<NamedPlan[]> {
    const plans: NamedPlan[] = [];
    for (const name of await this.#options.named.names()) {
      try {
        const found = await this.#finder.named(name);
        const { written } = await this.#finder.compile(found);
        plans.push(summaryOf(name, await this.#hashOf(found, OPERATOR), written));
      } catch (error) {
        if (errorCode(error) === undefined) throw error;
      }
    }
    return plans;
  }
}

function summaryOf(name: string, plan_hash: string, { description }: JsonObject): NamedPlan {
  return { name, plan_hash, ...(typeof description === "string" ? { description } : {}) };
}
