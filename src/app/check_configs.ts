/** The configs of built-in modules against the schemas that these tell of themselves, before anything runs. */
import { checkConfig } from "../plan/check_config.ts";
import type { CompiledPlan } from "../plan/compile.ts";
import { expandEnv } from "../plan/env.ts";
import { Findings } from "../plan/findings.ts";
import { parsePath, type Path } from "../plan/path.ts";
import { typeVariables } from "../plan/typed_env.ts";
import { specsOf } from "../policy/authorise.ts";
import { isObject, type JsonObject } from "../sdk/json.ts";
import type { ModuleSpec } from "../sdk/plan.ts";
import { BUILTIN_IDS, builtinModule } from "./builtins.ts";
import type { LookUp } from "./plan_env.ts";

/** The findings of plans that were checked: a plan that is posted again is compiled to the same object. */
const checked = new WeakMap<CompiledPlan, Findings>();

/**
 * Returns what is wrong with the configs of a plan's built-in modules as written; loads those modules. The schema of a module
 * of a URL is known when its code runs.
 */
export function checkConfigs(compiled: CompiledPlan): Findings | Promise<Findings> {
  return checked.get(compiled) ?? checkWritten(compiled);
}

async function checkWritten(compiled: CompiledPlan): Promise<Findings> {
  const findings = new Findings();
  for (const { spec, schema } of await schemasOf(compiled)) {
    checkConfig(spec.config, schema, configPath(spec, compiled.written), findings);
  }
  checked.set(compiled, findings);
  return findings;
}

/**
 * Resolves to the errors in the configs of a plan's built-in modules with the values of their variables. The configs as written
 * must have no errors; what is found names the variables and shows no value.
 *
 * @param lookup Returns the value of a variable, or undefined when it is not set or may not be read.
 */
export async function checkVariables(compiled: CompiledPlan, lookup: LookUp): Promise<Findings> {
  const findings = new Findings();
  for (const { spec, schema } of await schemasOf(compiled)) {
    const { value } = expandEnv(spec.config, lookup);
    const config = typeVariables(value, spec.config, schema);
    checkConfig(config, schema, configPath(spec, compiled.written), findings, spec.config);
  }
  return findings;
}

/** Resolves to the built-in modules of a plan, each with its schema. */
async function schemasOf({ plan }: CompiledPlan): Promise<{ spec: ModuleSpec; schema: JsonObject }[]> {
  const found = [];
  for (const spec of specsOf(plan)) {
    if (!isBuiltin(spec)) continue;
    await builtinModule(spec.module);
    const schema = schemaOf(spec);
    if (schema) found.push({ spec, schema });
  }
  return found;
}

/** Returns the schema of a built-in module's config; undefined for other modules, and before the module is loaded. */
export function schemaOf(spec: ModuleSpec): JsonObject | undefined {
  const module = isBuiltin(spec) ? builtinModule(spec.module) : undefined;
  const schema = module instanceof Promise ? undefined : module?.module?.config_schema;
  return isObject(schema) ? schema : undefined;
}

/** An unknown id is the policy's finding. */
function isBuiltin({ module, source }: ModuleSpec): boolean {
  return source.kind === "builtin" && BUILTIN_IDS.has(module);
}

/** The string form of orchestrator and context has its config in a block of the plan's own (behaviour.md §2.1). */
function configPath({ path, type }: ModuleSpec, { session }: JsonObject): Path {
  if (isObject(session) && typeof session[type] === "string") return [type, "config"];
  return [...parsePath(path) ?? [], "config"];
}
