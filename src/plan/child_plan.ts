/**
 * The plan of a sub-agent: its overlay laid over the plan that spawns it, by the one merge rule (behaviour.md §2.4). Pure; the
 * parent's plan is not changed.
 */
import { PreampError } from "../sdk/errors.ts";
import { isObject, type JsonObject } from "../sdk/json.ts";
import type { ProviderPreference } from "../sdk/spawn.ts";
import { mergePlans } from "./merge.ts";
import { describe } from "./value_path.ts";
import { isListed } from "./source/spec_key.ts";

/** The agent that is the plan itself. */
export const SELF = "self";

/** What a child's plan is made by, beside its parent's. */
export interface ChildPlanOptions {
  /** Ids of modules that are not inherited. */
  exclude_tools?: readonly string[];
  /** The only modules that are inherited. */
  inherit_tools?: readonly string[];
  /** Laid over `session.metadata`. */
  metadata?: JsonObject;
}

/** A child's plan as written. */
export interface ChildPlan {
  written: JsonObject;
  /** Preferences of the overlay, best first. */
  preferences: readonly ProviderPreference[];
  /** Roles of the model that the overlay asks for, best first; who resolves them is a module. */
  model_roles: readonly string[];
  /** Ceilings that the overlay sets; the parent's hold beside them. */
  limits: JsonObject;
}

/** Keys of an overlay that are no part of the plan it makes. */
const OWN_KEYS: ReadonlySet<string> = new Set([
  "provider_preferences",
  "model_role",
  "instruction",
  "description",
]);

/**
 * Returns the plan of an agent. What the plan's `spawn` (`exclude_tools`, `tools`) and the options leave out is left out of the
 * parent's tools first, so the overlay's own tools always stay; `self` is the plan without an overlay.
 *
 * @param parent The plan that spawns, as written.
 * @throws {PreampError} `request_invalid` for an agent that the plan has not.
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
    const told = mergePlans({ metadata: sessionMetadata(merged) }, { metadata: options.metadata });
    merged.session = { ...isObject(merged.session) ? merged.session : {}, ...told };
  }
  return {
    written: merged,
    // checked with the plan: a list of {provider, model?, config?}
    preferences: Array.isArray(overlay.provider_preferences)
      ? overlay.provider_preferences as unknown as ProviderPreference[]
      : [],
    model_roles: [overlay.model_role].flat().filter((role) => typeof role === "string"),
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
    `Cannot spawn agent ${describe(agent)}: the plan has no such agent: it has ${
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
