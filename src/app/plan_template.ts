/**
 * What all runs of a compiled plan share, worked out once: modules, findings about their configs, and the
 * configs that are the same in each run. The values of variables may change between runs and are never part
 * of it.
 */
import {
  checkConfigs,
  defaultVariables,
  expandConfig,
  type LookUps,
  schemaOf,
  warnOfSecrets,
} from "./plan_configs.ts";
import { planFolder } from "./plan_folders.ts";
import { warnOfWideRules } from "./wide_rules.ts";
import type { ModuleTable } from "./module_table.ts";
import type { ResolvedPlan } from "./plan_finder.ts";
import { isOfUrl } from "./remote_modules.ts";
import type { OpenedModule } from "../kernel/host.ts";
import { toWarning as toWarningDetail, type WarningDetail } from "../plan/check/findings.ts";
import { suppliedFields } from "../plan/check/check_config.ts";
import { agentNames } from "../plan/child_plan.ts";
import type { CompiledPlan } from "../plan/compile.ts";
import { findEnv } from "../plan/env.ts";
import { type Grants, specsOf } from "../policy/authorise.ts";
import type { Policy } from "../policy/policy.ts";
import type { Warning } from "../runs/types.ts";
import type { Findings } from "../sdk/findings.ts";
import { deepFreeze } from "../sdk/json.ts";
import type { Module, ModuleSpec } from "../sdk/types.ts";

/** The shared parts of a plan's runs. */
export interface PlanTemplate {
  readonly compiled: CompiledPlan;
  readonly specs: readonly ModuleSpec[];
  /** Errors in the configs of built-in modules: the plan must not run. */
  readonly findings: Findings;
  /** Warnings about the plan and its configs, for a check and for a run. */
  readonly warnings: readonly WarningDetail[];
  readonly run_warnings: readonly Warning[];
  /** Whether the plan or one of its agents may have something that a lock pins. */
  readonly may_load: boolean;
  /** Built-in modules that every run opens alike: their configs have neither variables nor secrets. */
  readonly opened: ReadonlyMap<ModuleSpec, OpenedModule>;
  /** Policy → grants of a run without limits of its own. */
  readonly grants: Map<Policy, Grants>;
  /** Policies under which every agent of the plan may run. */
  readonly agents_allowed: Set<Policy>;
}

/**
 * Works out the template of a plan; loads its built-in modules.
 *
 * @param found The author of the plan, and the URL of its file.
 */
export async function createTemplate(
  compiled: CompiledPlan,
  modules: ModuleTable,
  { origin, base_url }: Pick<ResolvedPlan, "origin" | "base_url">,
): Promise<PlanTemplate> {
  const specs = specsOf(compiled.plan);
  const findings = await checkConfigs(specs, compiled.written, modules);
  if (origin === "operator") warnOfSecrets(compiled.written, findings); // a caller has no variables
  const warnings = [...compiled.warnings, ...findings.warnings.map((finding) => toWarningDetail(finding))];
  const wide_rules = await warnOfWideRules(compiled.written);
  const folder = planFolder(origin, base_url);
  return {
    compiled,
    specs,
    findings,
    // a rule that is meant so need not be read at each run
    warnings: [...warnings, ...wide_rules.warnings.map((finding) => toWarningDetail(finding))],
    run_warnings: warnings.map(({ code, path, message }) =>
      path === "" ? { code, message } : { code, path, message }
    ),
    may_load:
      specs.some((spec) => isOfUrl(spec) || suppliedFields(schemaOf(spec, modules) ?? {}).length > 0) ||
      compiled.texts.length > 0 ||
      specs.some(({ source, module }) => source.kind === "builtin" && modules.readsTexts(module)) ||
      agentNames(compiled.written).length > 0,
    opened: findings.errors.length === 0 ? openShared(specs, modules, folder) : new Map(),
    grants: new Map(),
    agents_allowed: new Set(),
  };
}

const NO_VARIABLES: LookUps = { plan: () => undefined, keys: () => undefined };

/** Opens the modules that are the same in each run. */
function openShared(
  specs: readonly ModuleSpec[],
  modules: ModuleTable,
  folder: string | undefined,
): ReadonlyMap<ModuleSpec, OpenedModule> {
  const opened = new Map<ModuleSpec, OpenedModule>();
  for (const spec of specs) {
    // a module of the application may change its config
    if (isOfUrl(spec) || !modules.ids.has(spec.module) || modules.isOwn(spec.module)) continue;
    const schema = schemaOf(spec, modules);
    if (findEnv(spec.config).length > 0) continue;
    if (schema && (defaultVariables(spec.config, schema).length > 0 || suppliedFields(schema).length > 0)) {
      continue;
    }
    let has_secrets = false;
    const sink = { register: () => void (has_secrets = true) };
    const config = expandConfig(spec, schema, { ...NO_VARIABLES, folder }, sink);
    if (has_secrets) continue;
    const module = modules.module(spec.module) as Module; // checkConfigs loaded it
    opened.set(spec, openBuiltin(module, deepFreeze(config)));
  }
  return opened;
}

/** Returns a built-in module with its config, ready to be mounted. */
export function openBuiltin(module: Module, config: OpenedModule["config"]): OpenedModule {
  // a built-in module has the program's version, and the plan check has checked its config
  return { module, config, isolation: "inline", integrity: null, stated: {} };
}
