/**
 * Says in a sentence what a plan may touch, as it is written: nothing is fetched, no file beside the plan is
 * read, and no module but the built-in ones is loaded.
 */
import { agentPlans } from "./agent_plans.ts";
import { planOfBundle } from "./import_plan.ts";
import { createModuleTable } from "./module_table.ts";
import { defaultVariables, schemaOf } from "./plan_configs.ts";
import { planFolders } from "./plan_folders.ts";
import { mayBeBundle } from "../bundle/kinds.ts";
import { compilePlan } from "../plan/compile.ts";
import { hostOf, hostText, isProvider } from "../plan/endpoints.ts";
import { expandEnv, findEnv } from "../plan/env.ts";
import { askedOf, type FullPermissions } from "../plan/permissions/permission_block.ts";
import { askedCalls, EVERYTHING, permissionsNear, summaryText } from "../plan/summary.ts";
import { specsOf } from "../policy/authorise.ts";
import { fullPermissions } from "../policy/effective_permissions.ts";
import { grantedAnywhere } from "../policy/refused_permissions.ts";
import type { Origin } from "../policy/policy.ts";
import { defaultPolicy } from "../policy/settings.ts";
import { isPinnedInline } from "../policy/source_rules.ts";
import { isObject, type JsonObject } from "../sdk/json.ts";
import type { ModuleSpec } from "../sdk/plan.ts";

/** Options of {@link planSentence}. */
export interface PlanSentenceOptions {
  /** URL of the plan's file. */
  readonly base_url: string;
  /** Absolute path of the folder that `${WORKSPACE}` means, with a slash at the end. */
  readonly workspace: string;
  /** Environment variables of the process. */
  env(name: string): string | undefined;
}

/** Resolves to the sentence of an operator's plan. @throws {PreampError} as `compilePlan`. */
export async function planSentence(
  input: JsonObject | string,
  { base_url, workspace, env }: PlanSentenceOptions,
): Promise<string> {
  const modules = createModuleTable();
  const origin = "operator";
  const compile = (plan: JsonObject | string) =>
    compilePlan(plan, {
      origin,
      base_url,
      folders: planFolders(origin, base_url, workspace.replace(/(.)\/$/, "$1")),
      builtins: modules.ids,
      readText: () => Promise.resolve(""),
    });
  const bundle = typeof input === "string" && mayBeBundle(input, base_url)
    ? await planOfBundle(input, base_url, { policy: defaultPolicy(), modules })
    : null;
  const own = await compile(bundle?.plan ?? input);
  const all = [own];
  for await (const { written } of agentPlans(own.written)) all.push(await compile(written));
  const permissions: Record<string, FullPermissions> = {};
  const prompts_to = new Set<string>();
  const loads = new Set<string>();
  const inside = new Set<string>();
  for (const [index, { plan }] of all.entries()) {
    for (const spec of specsOf(plan)) {
      if (spec.source.kind !== "builtin") loads.add(spec.source.original);
      if (isPinnedInline(spec, origin)) inside.add(spec.module);
      else if (modules.ids.has(spec.module)) await modules.module(spec.module); // loads its schema
      permissions[`${index} ${spec.path}`] = fullPermissions(askedOf(spec, plan));
      const host = promptHost(spec, schemaOf(spec, modules), env, { origin });
      if (host !== null) prompts_to.add(host);
    }
  }
  const said = summaryText({
    may: inside.size > 0 ? EVERYTHING : permissionsNear(grantedAnywhere({ permissions }), workspace),
    inside: [...inside].sort(),
    prompts_to: [...prompts_to].sort(),
    asks: askedCalls(own.plan),
  });
  return loads.size === 0 ? said : `${said}; runs code from ${[...loads].join(", ")}`;
}

/**
 * Returns where a module sends prompts to (`ExplainedModule.prompts_to`). A caller sees the name of a
 * variable in place of its value.
 */
export function promptHost(
  spec: ModuleSpec,
  schema: JsonObject | undefined,
  env: PlanSentenceOptions["env"],
  { origin }: { origin: Origin },
): string | null {
  const field = isObject(schema?.properties) ? schema.properties.base_url : undefined;
  if (isProvider(spec) && spec.source.kind !== "builtin") return `module ${spec.module}`;
  if (!isProvider(spec) || !isObject(field)) return null;
  const [, names = []] = defaultVariables(spec.config, schema!).find(([key]) => key === "base_url") ?? [];
  const variable = names.find((name) => env(name)?.trim());
  const written = spec.config.base_url ?? (variable === undefined ? field.vendor_url : `\${${variable}}`);
  if (typeof written !== "string") return null;
  if (origin === "caller" && findEnv(written).length > 0) return written;
  const { base_url } = expandEnv({ base_url: written }, env).value;
  const host = typeof base_url === "string" ? hostOf(base_url) : undefined;
  return host?.replace(/:443$/, "") ?? hostText(written); // the address may have a password
}
