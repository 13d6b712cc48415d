/** The configs of built-in modules against the schemas that these tell of themselves, before anything runs. */
import { checkConfig } from "../plan/check_config.ts";
import type { CompiledPlan } from "../plan/compile.ts";
import { Findings } from "../plan/findings.ts";
import { parsePath, type Path } from "../plan/path.ts";
import { specsOf } from "../policy/authorise.ts";
import { isObject, type JsonObject } from "../sdk/json.ts";
import type { ModuleSpec } from "../sdk/plan.ts";
import { BUILTIN_IDS, builtinModule } from "./builtins.ts";

/** Remembers what was found: a plan that is posted again is compiled to the same object, and costs a look. */
const checked = new WeakMap<CompiledPlan, Findings>();

/**
 * Returns what is wrong with the configs of a plan's built-in modules; loads those modules. A module of a URL tells its schema
 * when its code runs, not before: it checks its config at mount.
 */
export function checkConfigs(compiled: CompiledPlan): Findings | Promise<Findings> {
  return checked.get(compiled) ?? checkAnew(compiled);
}

async function checkAnew(compiled: CompiledPlan): Promise<Findings> {
  const findings = new Findings();
  for (const spec of specsOf(compiled.plan)) {
    if (spec.source.kind !== "builtin" || !BUILTIN_IDS.has(spec.module)) continue; // an unknown one is the policy's finding
    const { module } = await builtinModule(spec.module);
    const schema = module?.config_schema;
    if (isObject(schema)) checkConfig(spec.config, schema, configPath(spec, compiled.written), findings);
  }
  checked.set(compiled, findings);
  return findings;
}

/** The string form of orchestrator and context has its config in a block of the plan's own (behaviour.md §2.1). */
function configPath({ path, type }: ModuleSpec, { session }: JsonObject): Path {
  if (isObject(session) && typeof session[type] === "string") return [type, "config"];
  return [...parsePath(path) ?? [], "config"];
}
