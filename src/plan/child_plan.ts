/**
 * Builds the plan of a sub-agent: the agent's overlay merged over the plan that spawns it
 * (src/docs/plan.md). Pure; does not change the parent's plan.
 */
import { mergePlans } from "./merge.ts";
import { modelsOfRoles } from "./model_choice.ts";
import { isListed } from "./source/source.ts";
import { describe } from "../sdk/value_path.ts";
import { PreampError } from "../sdk/errors.ts";
import { isObject, type JsonObject } from "../sdk/json.ts";
import type { ProviderPreference } from "../sdk/spawn.ts";

/** Name of the agent that is the plan itself, without an overlay. */
export const SELF = "self";

export interface ChildPlanOptions {
  /** Ids of modules that the child does not inherit. */
  exclude_tools?: readonly string[];
  /** Ids of the modules that the child may inherit; absent: all. */
  inherit_tools?: readonly string[];
  /** Merged over `session.metadata`. */
  metadata?: JsonObject;
}

/** The plan of a sub-agent before it is compiled. */
export interface ChildPlan {
  written: JsonObject;
  /** Preferences of the overlay, and the models of its roles, best first. */
  preferences: readonly ProviderPreference[];
  /** Model roles that the overlay wants, best first. A module may resolve them to models too. */
  model_roles: readonly string[];
  /** Limits that the overlay sets. The parent's limits hold as well. */
  limits: JsonObject;
}

/** Keys of an overlay that are not part of the child's plan. */
const OWN_KEYS: ReadonlySet<string> = new Set([
  "provider_preferences",
  "model_role",
  "instruction",
  "description",
  "mode", // that of the plan holds for its agents
  "modes",
]);

/**
 * Returns the plan of an agent. `spawn` of the plan and the options first filter the parent's tools, so the
 * overlay's own tools always remain.
 *
 * @param parent The plan that spawns, as written.
 * @throws {PreampError} `request_invalid` if the plan has no such agent.
 */
export function childPlan(parent: JsonObject, agent: string, options: ChildPlanOptions = {}): ChildPlan {
  const overlay = overlayOf(parent, agent);
  const { spawn } = parent;
  const base: JsonObject = { ...parent };
  delete base.description;
  if (Array.isArray(base.tools)) {
    const limits = isObject(spawn) ? spawn : {};
    base.tools = inherited(
      inherited(base.tools, limits.tools, limits.exclude_tools),
      options.inherit_tools,
      options.exclude_tools,
    );
  }
  const over: JsonObject = {};
  for (const [key, value] of Object.entries(overlay)) if (!OWN_KEYS.has(key)) over[key] = value;
  if (overlay.instruction !== undefined && over.system === undefined) over.system = overlay.instruction;
  if (typeof overlay.description === "string") over.description = overlay.description;
  const merged = mergePlans(base, over);
  if (options.metadata) {
    const metadata = mergePlans({ metadata: sessionMetadata(merged) }, { metadata: options.metadata });
    merged.session = { ...isObject(merged.session) ? merged.session : {}, ...metadata };
  }
  const model_roles = [overlay.model_role].flat().filter((role) => typeof role === "string");
  return {
    written: merged,
    preferences: [
      // check.ts has checked it: a list of {provider, model?, config?}
      ...Array.isArray(overlay.provider_preferences)
        ? overlay.provider_preferences as unknown as ProviderPreference[]
        : [],
      ...modelsOfRoles(parent.roles, model_roles),
    ],
    model_roles,
    limits: isObject(overlay.limits) ? { ...overlay.limits } : {},
  };
}

/** Returns the names of a plan's agents. */
export function agentNames(plan: JsonObject): string[] {
  return isObject(plan.agents) ? Object.keys(plan.agents) : [];
}

function overlayOf(parent: JsonObject, agent: string): JsonObject {
  if (agent === SELF) return {};
  const { agents } = parent;
  const overlay = isObject(agents) && Object.hasOwn(agents, agent) ? agents[agent] : undefined;
  if (isObject(overlay)) return overlay;
  const names = [...agentNames(parent), SELF];
  throw new PreampError(
    "request_invalid",
    `Cannot spawn agent ${describe(agent)}: the plan has no such agent; its agents are ${
      names.map(describe).join(", ")
    }`,
  );
}

function inherited(tools: readonly unknown[], only: unknown, without: unknown): unknown[] {
  const kept = Array.isArray(only) ? tools.filter((spec) => isListed(spec, new Set(only))) : tools;
  return Array.isArray(without) ? kept.filter((spec) => !isListed(spec, new Set(without))) : [...kept];
}

function sessionMetadata(plan: JsonObject): JsonObject {
  const metadata = isObject(plan.session) ? plan.session.metadata : undefined;
  return isObject(metadata) ? metadata : {};
}
