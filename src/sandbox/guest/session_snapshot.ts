/** Builds the session data that a guest receives once. It names the other modules without their configuration. */
import { isObject, type JsonObject, toPlain } from "../../sdk/json.ts";
import type { Coordinator } from "../../sdk/types.ts";
import type { SessionSnapshot } from "../protocol.ts";

/** Fields of a module's entry in the plan that other modules may see. */
const VISIBLE_KEYS = ["module", "instance_id"] as const;

/** The guest's own entry in the plan: its `instance_id`, else its module id, and its config. */
export interface OwnEntry {
  readonly name: string;
  readonly config: JsonObject;
}

/** Returns the snapshot of a session for one of its guests. */
export function snapshotOf(coordinator: Coordinator, id_seed: string, own: OwnEntry): SessionSnapshot {
  const { session_id, parent_id, limits, injection_size_limit, injection_budget_per_turn } = coordinator;
  return {
    session_id,
    parent_id,
    config: outline(coordinator.config, own),
    limits: { ...limits },
    injection_size_limit,
    injection_budget_per_turn,
    id_seed,
  };
}

/**
 * Returns a plan without sources, the plans of agents, and the configs and permissions of other modules: they may contain keys
 * and tokens.
 */
function outline(plan: JsonObject, own: OwnEntry): JsonObject {
  const visible: JsonObject = {};
  const session = isObject(plan.session) ? plan.session : {};
  const flags = Object.entries(session).filter(([key, value]) =>
    !SLOTS.has(key) && (typeof value === "number" || typeof value === "boolean" || value === null)
  );
  visible.session = {
    ...Object.fromEntries(flags),
    ...Object.fromEntries(
      [...SLOTS].flatMap((key) => key in session ? [[key, entry(session[key], own)]] : []),
    ),
  };
  for (const list of ["providers", "tools", "hooks"]) {
    const modules = plan[list];
    if (Array.isArray(modules)) visible[list] = modules.map((module) => entry(module, own));
  }
  if (isObject(plan.agents)) {
    visible.agents = Object.fromEntries(Object.entries(plan.agents).map(agentOutline));
  }
  if (isObject(plan.limits)) visible.limits = toPlain(plan.limits);
  return visible;
}

/** Returns the description of an agent, which models see too. */
function agentOutline([name, agent]: [string, unknown]): [string, JsonObject] {
  const { description } = isObject(agent) ? agent : {};
  return [name, typeof description === "string" ? { description } : {}];
}

const SLOTS: ReadonlySet<string> = new Set(["orchestrator", "context"]);

function entry(value: unknown, own: OwnEntry): JsonObject {
  if (typeof value === "string") return { module: value };
  if (!isObject(value)) return {};
  const visible: JsonObject = {};
  for (const key of VISIBLE_KEYS) if (typeof value[key] === "string") visible[key] = value[key];
  if ((value.instance_id ?? value.module) !== own.name) return visible;
  // another entry may have the same name: use the config that this module received
  visible.config = toPlain(own.config);
  if (isObject(value.permissions)) visible.permissions = toPlain(value.permissions);
  return visible;
}
