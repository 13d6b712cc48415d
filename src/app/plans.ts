/** From what a request names to a plan that may run: found, checked, allowed; its modules opened. */
import { type CompiledPlan, compilePlan } from "../plan/compile.ts";
import { PlanCache } from "../plan/cache.ts";
import { type EnvReference, expandEnv } from "../plan/env.ts";
import { withPlaces } from "../plan/places.ts";
import { authorise, type Grants, specsOf } from "../policy/authorise.ts";
import { type Policy, policyFor } from "../policy/policy.ts";
import { isSecretKey } from "../policy/redact.ts";
import { authoriseWithin } from "../policy/within.ts";
import type { ReadyPlan, SecretSink } from "../runs/deps.ts";
import type { Caller, RunRequest, Warning } from "../runs/types.ts";
import { canonicalHash } from "../sdk/digest.ts";
import { errorCode, type ErrorDetail, PreampError } from "../sdk/errors.ts";
import { isObject, type JsonObject } from "../sdk/json.ts";
import type { ModuleSpec, RunLimits } from "../sdk/types.ts";
import { judgeAgents } from "./agent_plans.ts";
import { BUILTIN_IDS, builtinModule } from "./builtins.ts";
import { DEMO_PLAN } from "./demo_plan.ts";
import type { NamedPlans } from "./named_plans.ts";
import type { NamedPlan, PlanCheck, PlanInput } from "./types.ts";

/** What plans are made ready with. */
export interface PlansOptions {
  policy: Policy;
  named: NamedPlans;
  /** Environment variables of the process. */
  env: (name: string) => string | undefined;
}

/** A plan as it was found, before it is checked. */
interface Found {
  input: JsonObject | string;
  origin: "operator" | "caller";
  base_url?: string;
  name?: string;
}

/** How a plan is made ready. */
interface ReadyOptions {
  lock_hash: string | null;
  /** Ceilings of the request. */
  limits?: Partial<RunLimits>;
  /** What the plan was granted that spawns this one. */
  within?: Grants;
}

/** Finds plans and makes them ready. */
export class Plans {
  readonly #options: PlansOptions;
  readonly #cache = new PlanCache();
  /** Plans whose agents may all run, with the names of the policies that say so. */
  readonly #judged = new WeakMap<CompiledPlan, Set<string | undefined>>();

  constructor(options: PlansOptions) {
    this.#options = options;
  }

  /**
   * Returns the plan of a request, ready to run.
   * @throws {PreampError} `not_found` for an unknown `plan_ref`; `plan_invalid`, `plan_limit_exceeded`; `policy_refused`,
   * `module_source_denied`, `isolation_unavailable`; `lock_invalid`.
   */
  async ready(request: RunRequest, caller: Caller, base_url?: string): Promise<ReadyPlan> {
    const found = await this.#find(request, caller, base_url);
    const lock_hash = request.lock === undefined ? null : lockHash(request.lock);
    try {
      return await this.#ready(found, caller, {
        lock_hash,
        ...(request.limits ? { limits: request.limits } : {}),
      });
    } catch (error) {
      throw await located(error, found);
    }
  }

  async #ready(found: Found, caller: Caller, options: ReadyOptions): Promise<ReadyPlan> {
    const compiled = await this.#compile(found);
    const { limits } = policyFor(this.#options.policy, caller.policy);
    const grants = this.#authorise(compiled, found, caller, options);
    if (options.within === undefined) await this.#judgeAgents(compiled, found, caller, grants);
    return {
      compiled,
      limits: grants.limits,
      cost_is_asked_for: grants.cost_limit === "asked",
      lock_hash: options.lock_hash,
      warnings: [...compiled.warnings.map(toWarning), ...this.#unset(compiled)],
      ...(found.base_url === undefined ? {} : { base_url: found.base_url }),
      registerSecrets: (secrets) => {
        for (const spec of specsOf(compiled.plan)) this.#expand(spec, grants, secrets);
      },
      agents: {
        origin: found.origin,
        max_depth: limits.max_depth,
        max_sessions: limits.max_sessions,
        child: (written) =>
          this.#ready({ ...found, input: written }, caller, { lock_hash: options.lock_hash, within: grants }),
      },
      open: (spec, secrets) => this.#open(spec, grants, secrets),
    };
  }

  #authorise(
    compiled: CompiledPlan,
    { origin }: Found,
    caller: Caller,
    options: Partial<ReadyOptions>,
  ): Grants {
    const { limits, within } = options;
    const judged = {
      origin,
      policy: policyFor(this.#options.policy, caller.policy),
      builtins: BUILTIN_IDS,
      ...(limits ? { limits } : {}),
    };
    return within ? authoriseWithin(compiled, judged, within) : authorise(compiled, judged);
  }

  /** Once for each plan and key's policy: nothing else decides, and a plan with many agents would pay at every run. */
  async #judgeAgents(compiled: CompiledPlan, found: Found, caller: Caller, within: Grants): Promise<void> {
    const judged = this.#judged.get(compiled) ?? new Set<string | undefined>();
    const { policy } = caller;
    if (judged.has(policy)) return;
    await judgeAgents(compiled, async (written) => {
      const child = { ...found, input: written };
      this.#authorise(await this.#compile(child), child, caller, { within });
    });
    this.#judged.set(compiled, judged.add(policy));
  }

  async #find(request: RunRequest, caller: Caller, base_url: string | undefined): Promise<Found> {
    if (request.plan !== undefined && request.plan_ref !== undefined) {
      throw new PreampError(
        "request_invalid",
        "Cannot read the request: plan and plan_ref exclude each other: received both",
      );
    }
    if (request.plan !== undefined) {
      const { origin } = caller;
      return origin === "operator" && base_url !== undefined
        ? { input: request.plan, origin, base_url }
        : { input: request.plan, origin };
    }
    if (request.plan_ref !== undefined) return await this.#named(request.plan_ref);
    const standard = await this.#options.named.find("default");
    if (standard) {
      return { input: standard.text, origin: "operator", base_url: standard.base_url, name: "default" };
    }
    return { input: DEMO_PLAN, origin: "operator", name: "demo" };
  }

  async #named(name: string): Promise<Found> {
    const file = await this.#options.named.get(name);
    return { input: file.text, origin: "operator", base_url: file.base_url, name };
  }

  #compile({ input, origin, base_url, name }: Found): Promise<CompiledPlan> {
    return compilePlan(input, {
      origin,
      cache: this.#cache,
      ...(base_url === undefined ? {} : { base_url }),
      ...(name === undefined ? {} : { name }),
      ...(origin === "operator" ? { readText: readFileText } : {}),
    });
  }

  /** References without default whose variable is not set: said, never silent (W-40). */
  #unset(compiled: CompiledPlan): Warning[] {
    if (compiled.env.length === 0) return [];
    const own = specsOf(compiled.plan)
      .flatMap((spec) => expandEnv(spec.config, this.#options.env, `${spec.path}.config`).missing);
    return [...own, ...this.#unsetInAgents(compiled)]
      .map(({ name, path }) => ({ code: "env_unset", path, message: `The variable ${name} is not set` }));
  }

  /** The same in the configs of overlays; what models read is text, whatever it looks like. */
  #unsetInAgents({ plan, env }: CompiledPlan): EnvReference[] {
    const places = new Set(env.flatMap(({ path, expanded }) => expanded ? [path] : []));
    return expandEnv(plan.agents, this.#options.env, "agents").missing.filter(({ path }) => places.has(path));
  }

  /** Returns a module's config with its `${VAR}`s; what must not be seen of it is registered. */
  #expand(spec: ModuleSpec, grants: Grants, secrets: SecretSink): JsonObject {
    const lookup = (name: string) => grants.mayReadEnv(name) ? this.#options.env(name) : undefined;
    const expansion = expandEnv(spec.config, lookup, `${spec.path}.config`);
    for (const secret of expansion.secrets) secrets.register(secret);
    registerSecrets(expansion.value, secrets);
    return expansion.value;
  }

  #open(spec: ModuleSpec, grants: Grants, secrets: SecretSink): ReturnType<ReadyPlan["open"]> {
    const config = this.#expand(spec, grants, secrets);
    const opened = { config, isolation: "inline", integrity: null } as const;
    const module = builtinModule(spec.module);
    return module instanceof Promise
      ? module.then((loaded) => ({ ...opened, module: loaded }))
      : { ...opened, module };
  }

  /** Checks a plan's structure and the policy; runs and fetches nothing. A bad plan is a good answer. */
  async check(input: PlanInput, caller: Caller, options: { base_url?: string } = {}): Promise<PlanCheck> {
    const found = "plan_ref" in input
      ? await this.#named(input.plan_ref)
      : await this.#find({ prompt: "", ...input }, caller, options.base_url);
    let compiled: CompiledPlan;
    try {
      compiled = await this.#compile(found);
    } catch (error) {
      return { ok: false, errors: detailsOf(error), warnings: [] };
    }
    const { plan_hash } = compiled;
    const warnings = [
      ...compiled.warnings,
      ...this.#unset(compiled).map((warning) => ({ path: "", ...warning })),
    ];
    try {
      const grants = this.#authorise(compiled, found, caller, {});
      await this.#judgeAgents(compiled, found, caller, grants);
      return { ok: true, errors: [], warnings, plan_hash };
    } catch (error) {
      return { ok: false, errors: detailsOf(await located(error, found)), warnings, plan_hash };
    }
  }

  /** Returns the operator's plans that can be read; a broken one is left out, `plan check` says why. */
  async list(): Promise<NamedPlan[]> {
    const plans: NamedPlan[] = [];
    for (const name of await this.#options.named.names()) {
      try {
        const { plan_hash, written } = await this.#compile(await this.#named(name));
        const { description } = written;
        plans.push({ name, plan_hash, ...(typeof description === "string" ? { description } : {}) });
      } catch (error) {
        if (errorCode(error) === undefined) throw error;
      }
    }
    return plans;
  }
}

/** Returns an error about a plan with the places its findings have in the plan's text. */
async function located(error: unknown, { input }: Found): Promise<unknown> {
  if (typeof input !== "string" || errorCode(error) === undefined) return error;
  const { code, message, details, facts, cause } = error as PreampError; // ours, by its code
  if (!Array.isArray(details) || details.length === 0) return error;
  return new PreampError(code, message, { details: await withPlaces(details, input), facts, cause });
}

function toWarning({ code, path, message }: { code: string; path: string; message: string }): Warning {
  return path === "" ? { code, message } : { code, path, message };
}

function detailsOf(error: unknown): ErrorDetail[] {
  if (errorCode(error) === undefined) throw error;
  const { details, message } = error as PreampError;
  return details.length > 0 ? [...details] : [{ path: "", message }];
}

async function readFileText(url: string): Promise<string> {
  return await Deno.readTextFile(new URL(url));
}

/** Values of fields that are named like secrets are known by value too, wherever a module puts them. */
function registerSecrets(value: unknown, secrets: SecretSink): void {
  if (Array.isArray(value)) { for (const item of value) registerSecrets(item, secrets); }
  if (!isObject(value)) return;
  for (const [key, item] of Object.entries(value)) {
    if (typeof item === "string" && isSecretKey(key)) secrets.register(item);
    else registerSecrets(item, secrets);
  }
}

/** @throws {PreampError} `lock_invalid` when it is not a lock of version 1. */
function lockHash(lock: JsonObject): string {
  if (lock.version !== 1 || !isObject(lock.modules)) {
    throw new PreampError(
      "lock_invalid",
      'Cannot read the lock: must be {"version": 1, "modules": {…}, "files": {…}}',
    );
  }
  return canonicalHash(lock);
}
