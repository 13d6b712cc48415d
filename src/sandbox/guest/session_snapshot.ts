/** What a guest is told of the session once. It learns which modules there are, and nothing of their configuration. Pure. */
import { isObject, type JsonObject, toPlain } from "../../sdk/json.ts";
import type { Coordinator } from "../../sdk/types.ts";
import type { SessionSnapshot } from "../protocol.ts";

/** Keys of a module's entry in the plan that others may see. */
const VISIBLE_KEYS = ["module", "instance_id"] as const;

/** What a guest knows of itself: the name of its entry in the plan (the instance, or the module), and its config. */
export interface OwnEntry {
  readonly name: string;
  readonly config: JsonObject;
}

/** Returns the statics of a session for one of its guests. */
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
 * Returns a plan without sources, what agents are made of, and the configs and grants of other modules: another module's settings hold keys, its
 * sources tokens, and neither concerns a stranger.
 */
function outline(plan: JsonObject, own: OwnEntry): JsonObject {
  const shown: JsonObject = {};
  const session = isObject(plan.session) ? plan.session : {};
  const flags = Object.entries(session).filter(([key, value]) =>
    !SLOTS.has(key) && (typeof value === "number" || typeof value === "boolean" || value === null)
  );
  shown.session = {
    ...Object.fromEntries(flags),
    ...Object.fromEntries(
      [...SLOTS].flatMap((key) => key in session ? [[key, entry(session[key], own)]] : []),
    ),
  };
  for (const list of ["providers", "tools", "hooks"]) {
    const modules = plan[list];
    if (Array.isArray(modules)) shown[list] = modules.map((one) => entry(one, own));
  }
  if (isObject(plan.agents)) shown.agents = Object.fromEntries(Object.entries(plan.agents).map(agentOutline));
  if (isObject(plan.limits)) shown.limits = toPlain(plan.limits);
  return shown;
}

/** What a model is told of an agent, whoever offers it: its name, and what it is for. */
function agentOutline([name, agent]: [string, unknown]): [string, JsonObject] {
  const { description } = isObject(agent) ? agent : {};
  return [name, typeof description === "string" ? { description } : {}];
}

const SLOTS: ReadonlySet<string> = new Set(["orchestrator", "context"]);

function entry(value: unknown, own: OwnEntry): JsonObject {
  if (typeof value === "string") return { module: value };
  if (!isObject(value)) return {};
  const shown: JsonObject = {};
  for (const key of VISIBLE_KEYS) if (typeof value[key] === "string") shown[key] = value[key];
  if ((value.instance_id ?? value.module) !== own.name) return shown;
  // another entry may have the same name: what is shown of the config is what this module was given
  shown.config = toPlain(own.config);
  if (isObject(value.permissions)) shown.permissions = toPlain(value.permissions);
  return shown;
}
