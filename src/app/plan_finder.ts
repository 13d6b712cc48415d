/**
 * Finds the text of the plan that a request names, and compiles it; adds the places in that text to errors
 * about the plan. Authorises nothing.
 */
import { checkConfigs } from "./plan_configs.ts";
import { planFolders } from "./plan_folders.ts";
import { mayBeBundle } from "../bundle/kinds.ts";
import type { ModuleTable } from "./module_table.ts";
import { DEMO_PLAN, type NamedPlans, type PlanFile } from "./named_plans.ts";
import { type SourceOverrides, withOverrides } from "./source_overrides.ts";
import { type CompiledPlan, compilePlan, createPlanCache, readPlan } from "../plan/compile.ts";
import { modelRefused, readModelChoice, withModel, workspaceRefused } from "../plan/model_choice.ts";
import { inMode, modeRefused } from "../plan/modes.ts";
import type { PlanFolders } from "../plan/env.ts";
import type { DocumentLimits } from "../plan/parse/document_limits.ts";
import { printableId } from "../sdk/ids.ts";
import { type Caller, mayOperate, type RunRequest } from "../runs/types.ts";
import { type ErrorCode, errorCode, type ErrorDetail, errorMessage, PreampError } from "../sdk/errors.ts";
import type { JsonObject } from "../sdk/json.ts";
import type { PlanCheck } from "./types.ts";
import { documentError, toDetail, toWarning, type WarningDetail } from "../plan/check/findings.ts";
import type { Policy } from "../policy/policy.ts";
import type { Findings } from "../sdk/findings.ts";

/** A plan that was found and is not yet checked. */
export interface ResolvedPlan {
  input: JsonObject | string;
  origin: "operator" | "caller";
  /** Limits of its size. */
  limits: DocumentLimits;
  base_url?: string;
  name?: string;
  /** Absolute path of the folder that `${WORKSPACE}` means. Default: the process's. */
  workspace?: string;
}

interface PlanFinderDeps {
  named: NamedPlans;
  /** Modules that a plan can name by id. */
  modules: ModuleTable;
  policy: Policy;
  /** Server of npm and JSR packages, or `none`. */
  esm_host: string;
  /** Overrides of the sources in an operator's plans. */
  sources: SourceOverrides;
  /** Absolute path of the folder that `${WORKSPACE}` means. Absent: the folder of each plan's file. */
  workspace?: string;
  /** Model of the demo plan, as `PROVIDER/MODEL`; empty: the scripted one. */
  model: string;
  /** Returns the limits of a caller's plans; of null: the operator's. */
  limitsOf(caller: Caller | null): DocumentLimits;
}

/** Finds and compiles plans. The same text is compiled once. */
export class PlanFinder {
  readonly #options: PlanFinderDeps;
  readonly #cache = createPlanCache();
  /** Plans that were made of bundles → warnings about them. */
  readonly #warnings = new WeakMap<JsonObject, readonly WarningDetail[]>();

  constructor(options: PlanFinderDeps) {
    this.#options = options;
  }

  /**
   * Finds the plan of a request: its own, a named one, or the default; with `model` and without a plan, the
   * demo plan on that model; with `mode`, in that mode.
   *
   * @throws {PreampError} `not_found`, `request_invalid`; `policy_refused` for a caller that chooses the
   * model or the mode of an operator's plan, or a workspace; with `model` or `mode` also as {@link compile}.
   */
  async find(
    request: Pick<RunRequest, "plan" | "plan_ref" | "model" | "mode" | "workspace">,
    caller: Caller,
    base_url: string | undefined,
  ): Promise<ResolvedPlan> {
    const { mode, workspace } = request;
    if (workspace !== undefined && !mayOperate(caller)) throw workspaceRefused();
    const is_of_caller = request.plan !== undefined ||
      request.plan_ref === undefined && request.model !== undefined;
    if (mode !== undefined && !is_of_caller && !mayOperate(caller)) {
      throw modeRefused(`plan "${printableId(request.plan_ref ?? "default")}"`);
    }
    const found = await this.#findOnModel(request, caller, base_url);
    const placed = workspace === undefined ? found : { ...found, workspace };
    if (mode === undefined) return placed;
    const { written } = await this.compile(placed);
    return this.#withWarnings({ ...placed, input: inMode(written, mode) }, placed);
  }

  async #findOnModel(
    request: Pick<RunRequest, "plan" | "plan_ref" | "model">,
    caller: Caller,
    base_url: string | undefined,
  ): Promise<ResolvedPlan> {
    const { model } = request;
    if (model === undefined) return await this.#find(request, caller, base_url);
    if (request.plan_ref !== undefined && !mayOperate(caller)) {
      throw modelRefused(`plan "${printableId(request.plan_ref)}"`);
    }
    const has_plan = request.plan !== undefined || request.plan_ref !== undefined;
    const found = has_plan ? await this.#find(request, caller, base_url) : this.#demo(caller);
    return await this.#onModel(found, model);
  }

  /** Returns the plan on another model. Its text becomes data, so later errors have no line and column. */
  async #onModel(found: ResolvedPlan, model: string): Promise<ResolvedPlan> {
    const choice = readModelChoice(model, this.#options.modules.ids);
    const { written } = await this.compile(found);
    return this.#withWarnings({ ...found, input: withModel(written, choice) }, found);
  }

  /** Resolves to the plan of a text that is a bundle, an agent or a profile; a plan is returned as it is. */
  async #planOf(found: ResolvedPlan & { input: string }): Promise<ResolvedPlan> {
    const { input, base_url, name = "" } = found;
    if (!mayBeBundle(input, base_url ?? name)) return found;
    const { planOfBundle } = await import("./import_plan.ts");
    const { policy, modules } = this.#options;
    const made = await planOfBundle(input, base_url, { policy, modules });
    if (made === null) return found;
    if (made.warnings.length > 0) this.#warnings.set(made.plan, made.warnings);
    return { ...found, input: made.plan };
  }

  /** Returns a plan with the warnings about the one that it was made of. */
  #withWarnings(found: ResolvedPlan & { input: JsonObject }, { input }: ResolvedPlan): ResolvedPlan {
    const warnings = typeof input === "string" ? undefined : this.#warnings.get(input);
    if (warnings) this.#warnings.set(found.input, warnings);
    return found;
  }

  #demo({ origin }: Pick<Caller, "origin">): ResolvedPlan {
    return { input: DEMO_PLAN, name: "demo", origin, limits: this.#options.limitsOf(null) };
  }

  async #find(
    request: Pick<RunRequest, "plan" | "plan_ref">,
    caller: Caller,
    base_url: string | undefined,
  ): Promise<ResolvedPlan> {
    if (request.plan !== undefined && request.plan_ref !== undefined) {
      throw new PreampError(
        "request_invalid",
        "Cannot read the request: it has both plan and plan_ref; send one of them",
      );
    }
    if (request.plan !== undefined) {
      const { origin } = caller;
      const limits = this.#options.limitsOf(origin === "operator" ? null : caller);
      const { plan: input } = request;
      const found = origin === "operator" && base_url !== undefined
        ? { origin, limits, base_url }
        : { origin, limits };
      return typeof input === "string" ? await this.#planOf({ ...found, input }) : { ...found, input };
    }
    return await (request.plan_ref === undefined ? this.standard() : this.named(request.plan_ref));
  }

  /** Finds the plan of requests without one: the one named `default`, else the demo plan. */
  async standard(): Promise<ResolvedPlan> {
    const standard = await this.#options.named.find("default");
    if (standard) return await this.#ofFile(standard);
    const demo = this.#demo({ origin: "operator" });
    return this.#options.model === "" ? demo : await this.#onModel(demo, this.#options.model);
  }

  /** Finds an operator's plan by name. @throws {PreampError} `not_found`. */
  async named(name: string): Promise<ResolvedPlan> {
    return await this.#ofFile(await this.#options.named.get(name));
  }

  #ofFile({ name, text, base_url }: PlanFile): Promise<ResolvedPlan> {
    return this.ofText(text, name, base_url);
  }

  /** Resolves to a plan of the operator with the URL of its file. */
  ofText(input: JsonObject | string, name: string, base_url: string): Promise<ResolvedPlan> {
    const found = { base_url, name, origin: "operator" as const, limits: this.#options.limitsOf(null) };
    return typeof input === "string"
      ? this.#planOf({ ...found, input })
      : Promise.resolve({ ...found, input });
  }

  /**
   * Compiles a plan and applies the operator's source overrides.
   *
   * @throws {PreampError} as {@link compile}. @throws {Error} for overrides that are broken, in a caller's
   * request: they are not the caller's fault.
   */
  async located(found: ResolvedPlan, caller: Pick<Caller, "origin">): Promise<CompiledPlan> {
    const { sources } = this.#options;
    const compiled = await this.compile(found);
    if (found.origin !== "operator" || sources.empty) return compiled;
    try {
      return withOverrides(compiled, await sources.find(), this.#options.modules.ids);
    } catch (error) {
      throw caller.origin === "operator" ? error : new Error(errorMessage(error), { cause: error });
    }
  }

  /**
   * Compiles a plan. @throws {PreampError} `plan_invalid`, `plan_limit_exceeded`.
   *
   * @param folders Default: those of the plan.
   */
  async compile(found: ResolvedPlan, folders?: PlanFolders): Promise<CompiledPlan> {
    const { input } = found;
    const warnings = typeof input === "string" ? undefined : this.#warnings.get(input);
    const compiled = await compilePlan(input, this.#compileOptions(found, folders));
    return warnings === undefined ? compiled : { ...compiled, warnings: [...warnings, ...compiled.warnings] };
  }

  /**
   * Resolves to all findings about an invalid plan: about its form, and about the configs of those modules
   * whose entries are valid. @throws {PreampError} as {@link compile}, for a text that cannot be read.
   */
  async problems(found: ResolvedPlan): Promise<Pick<PlanCheck, "errors" | "warnings">> {
    const { findings, specs, written, locate } = await readPlan(found.input, this.#compileOptions(found));
    const of_configs = await checkConfigs(specs, written, this.#options.modules);
    return {
      errors: [...findings.errors, ...of_configs.errors].map((finding) => toDetail(finding, locate)),
      warnings: [...findings.warnings, ...of_configs.warnings].map((finding) => toWarning(finding, locate)),
    };
  }

  #compileOptions(
    { origin, limits, base_url, name, workspace }: ResolvedPlan,
    folders = planFolders(origin, base_url, workspace ?? this.#options.workspace),
  ): Parameters<typeof compilePlan>[1] {
    return {
      origin,
      limits,
      cache: this.#cache,
      builtins: this.#options.modules.ids,
      folders,
      esm_host: this.#options.esm_host,
      ...(base_url === undefined ? {} : { base_url }),
      ...(name === undefined ? {} : { name }),
      ...(origin === "operator" ? { readText: readFileText } : {}),
    };
  }
}

async function readFileText(url: string): Promise<string> {
  return await Deno.readTextFile(new URL(url));
}

/** Throws the errors in the configs of a plan's modules. @throws {PreampError} `plan_invalid`. */
export function acceptConfigs({ errors }: Findings, { name }: ResolvedPlan): void {
  if (errors.length === 0) return;
  const label = name === undefined ? "the plan" : `the plan "${name}"`;
  throw documentError("plan_invalid", label, errors.map((finding) => toDetail(finding)));
}

/** Adds the places of findings in the plan's text, if it has one. */
export async function withPlacesIn<T extends ErrorDetail>(
  { input, limits }: ResolvedPlan,
  details: readonly T[],
): Promise<T[]> {
  if (typeof input !== "string") return [...details];
  const { withPlaces } = await import("../plan/parse/parse.ts");
  return await withPlaces(details, input, limits);
}

/** Adds the places of findings in the plan's text to an error about the plan. */
export async function located(error: unknown, found: ResolvedPlan): Promise<unknown> {
  if (typeof found.input !== "string" || errorCode(error) === undefined) return error;
  const { code, message, details, facts, cause } = error as PreampError; // an error with one of our codes
  if (!Array.isArray(details) || details.length === 0) return error;
  return new PreampError(code, message, { details: await withPlacesIn(found, details), facts, cause });
}

/** Returns the details of a refused plan; rethrows an error without one of our codes. */
export function detailsOf(error: unknown): ErrorDetail[] {
  if (errorCode(error) === undefined) throw error;
  const { details, message } = error as PreampError;
  return details.length > 0 ? [...details] : [{ path: "", message }];
}

/** Returns the code of an error that {@link detailsOf} accepts. */
export function codeOf(error: unknown): Pick<PlanCheck, "code"> {
  return { code: errorCode(error) as ErrorCode };
}
