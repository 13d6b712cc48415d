/**
 * Checks configs against the `config_schema` of their modules: of built-in modules before anything runs, of
 * others when their code is loaded, before `mount`.
 */
import { checkExpandedConfig, checkWrittenConfig, typeVariables } from "../plan/check/check_config.ts";
import type { CompiledPlan } from "../plan/compile.ts";
import { expandEnv, findEnv } from "../plan/env.ts";
import { Findings } from "../sdk/findings.ts";
import { parsePath, type Path } from "../sdk/value_path.ts";
import { specsOf } from "../policy/authorise.ts";
import { withDefaults } from "../sdk/config.ts";
import { isObject, type JsonObject } from "../sdk/json.ts";
import type { Module } from "../sdk/contracts.ts";
import type { ModuleSpec } from "../sdk/plan.ts";
import type { ModuleTable } from "./module_table.ts";
import type { LookUp } from "./plan_env.ts";

/**
 * Resolves to findings about the configs of a plan's built-in modules as written; loads those modules. Modules
 * from URLs are checked when their code runs: see {@link checkOpened}.
 */
export async function checkConfigs(compiled: CompiledPlan, modules: ModuleTable): Promise<Findings> {
  const findings = new Findings();
  for (const { spec, schema } of await schemasOf(compiled, modules)) {
    checkWrittenConfig(spec.config, schema, configPath(spec, compiled.written), findings);
  }
  return findings;
}

/**
 * Checks the configs of a plan's built-in modules with the values of their variables, and resolves to the
 * errors. The configs as written must have no errors. Findings name the variables, never their values.
 *
 * @param lookup Returns the value of a variable; undefined if it is not set or may not be read.
 */
export async function checkVariables(
  compiled: CompiledPlan,
  modules: ModuleTable,
  lookup: LookUp,
): Promise<Findings> {
  const findings = new Findings();
  for (const { spec, schema } of await schemasOf(compiled, modules)) {
    const { value } = expandEnv(spec.config, lookup);
    const config = typeVariables(value, spec.config, schema);
    checkExpandedConfig(config, schema, configPath(spec, compiled.written), findings, spec.config);
  }
  return findings;
}

/** Loads the built-in modules of a plan and resolves to their schemas. */
async function schemasOf(
  { plan }: CompiledPlan,
  modules: ModuleTable,
): Promise<{ spec: ModuleSpec; schema: JsonObject }[]> {
  const found = [];
  for (const spec of specsOf(plan)) {
    if (!isNamedById(spec, modules)) continue;
    await modules.module(spec.module);
    const schema = schemaOf(spec, modules);
    if (schema) found.push({ spec, schema });
  }
  return found;
}

/**
 * Returns the config schema of a built-in module; undefined for other modules, and before the module is
 * loaded.
 */
export function schemaOf(spec: ModuleSpec, modules: ModuleTable): JsonObject | undefined {
  const module = isNamedById(spec, modules) ? modules.module(spec.module) : undefined;
  return module instanceof Promise ? undefined : statedSchema(module?.module);
}

/** Returns true if the table has the module. The policy reports unknown ids. */
function isNamedById({ module, source }: ModuleSpec, { ids }: ModuleTable): boolean {
  return source.kind === "builtin" && ids.has(module);
}

/**
 * Checks the config of an opened module, and returns the findings and the config to mount it with: typed
 * variables, defaults filled in.
 *
 * @param expanded The config with the values of its variables.
 */
export function checkOpened(
  spec: ModuleSpec,
  { module: info }: Pick<Module, "module">,
  expanded: JsonObject,
  written: JsonObject,
): { findings: Findings; config: JsonObject } {
  const findings = new Findings();
  const schema = statedSchema(info);
  if (!schema) return { findings, config: expanded };
  const path = configPath(spec, written);
  checkWrittenConfig(spec.config, schema, path, findings);
  const config = typeVariables(expanded, spec.config, schema);
  if (findings.errors.length > 0) return { findings, config };
  if (findEnv(spec.config).length > 0) {
    const values = new Findings();
    checkExpandedConfig(config, schema, path, values, spec.config);
    if (values.errors.length > 0) return { findings: values, config };
  }
  return { findings, config: withDefaults(config, schema) as JsonObject }; // an object remains one
}

function statedSchema(info: unknown): JsonObject | undefined {
  const schema = isObject(info) ? info.config_schema : undefined;
  return isObject(schema) ? schema : undefined;
}

/**
 * Returns the config's path. The string form of orchestrator and context has its config in a top-level
 * block.
 */
function configPath({ path, type }: ModuleSpec, { session }: JsonObject): Path {
  if (isObject(session) && typeof session[type] === "string") return [type, "config"];
  return [...parsePath(path) ?? [], "config"];
}
