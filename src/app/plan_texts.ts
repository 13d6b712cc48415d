/**
 * Finds the texts that steer the model and are in files beside the plan: `system: {file}`, memory files and
 * skills. Their digests are part of the plan's hash, and a lock pins them.
 */
import { expandConfig, type LookUps, readableVariables, schemaOf } from "./plan_configs.ts";
import { planFolder } from "./plan_folders.ts";
import { type AuthorisedPlan, grantOf } from "./module_permissions.ts";
import type { ModuleTable } from "./module_table.ts";
import type { CompiledPlan, PlanText } from "../plan/compile.ts";
import { escapedPath } from "../plan/source/source.ts";
import { noPermissions } from "../sdk/contracts.ts";
import { canonicalDigest } from "../sdk/digest.ts";
import type { JsonObject } from "../sdk/json.ts";
import type { ModuleSpec } from "../sdk/plan.ts";

/** Collaborators of this file's functions. */
export interface TextsDeps {
  modules: ModuleTable;
  /** Environment variables of the process. */
  env: (name: string) => string | undefined;
}

/** Resolves to the texts of a plan: those that it names, then those that its built-in modules read. */
export async function textsOf(authorised: AuthorisedPlan, deps: TextsDeps): Promise<readonly PlanText[]> {
  const { compiled, template: { specs } } = authorised;
  const texts = [...compiled.texts];
  for (const spec of specs) {
    if (spec.source.kind !== "builtin" || !deps.modules.readsTexts(spec.module)) continue;
    const module = await deps.modules.module(spec.module);
    const grant = { ...noPermissions(), ...grantOf(spec, authorised) };
    const read = await module.texts?.(expandedConfig(spec, authorised, deps), grant) ?? [];
    texts.push(...read.map(({ path, ...text }) => ({
      ...text,
      url: new URL(`file://${escapedPath(path)}`).href,
    })));
  }
  return texts;
}

/** Resolves to the hash of a plan with the texts that its modules read. */
export async function hashWith(
  { plan_hash, texts: own }: CompiledPlan,
  texts: readonly PlanText[],
): Promise<string> {
  const read = texts.slice(own.length); // its own texts are in its hash
  if (read.length === 0) return plan_hash;
  return await canonicalDigest({ plan_hash, texts: read.map(({ label, sha256 }) => ({ label, sha256 })) });
}

/** Returns the config of a module with the values of its variables, which are not to be displayed. */
export function expandedConfig(
  spec: ModuleSpec,
  { grants, policy, origin, base_url }: AuthorisedPlan,
  { modules: table, env }: TextsDeps,
): JsonObject {
  const lookups: LookUps = {
    plan: readableVariables(grants, env),
    keys: env,
    supplied: { settings: policy.mcp.servers, lock: {} },
    folder: planFolder(origin, base_url),
  };
  return expandConfig(spec, schemaOf(spec, table), lookups, { register: () => {} });
}
