/** What a guest is told of the session once. It learns which modules there are, and nothing of their configuration. Pure. */
import { isObject, type JsonObject, toPlain } from "../sdk/json.ts";
import type { Coordinator } from "../sdk/types.ts";
import type { Statics } from "./protocol.ts";

/** Keys of a module's entry in the plan that others may see. */
const SHOWN = ["module", "instance_id"] as const;

/** Returns the statics of a session for one of its guests. */
export function staticsOf(coordinator: Coordinator, id_seed: string): Statics {
  const { session_id, parent_id, limits, injection_size_limit, injection_budget_per_turn } = coordinator;
  return {
    session_id,
    parent_id,
    config: outline(coordinator.config),
    limits: { ...limits },
    injection_size_limit,
    injection_budget_per_turn,
    id_seed,
  };
}

/**
 * Returns a plan without configs, sources and agents: another module's settings hold keys, its sources tokens, and both are none
 * of a stranger's business.
 */
function outline(plan: JsonObject): JsonObject {
  const shown: JsonObject = {};
  const session = isObject(plan.session) ? plan.session : {};
  const own = Object.entries(session).filter(([key, value]) =>
    !SLOTS.has(key) && (typeof value === "number" || typeof value === "boolean" || value === null)
  );
  shown.session = {
    ...Object.fromEntries(own),
    ...Object.fromEntries([...SLOTS].flatMap((key) => key in session ? [[key, entry(session[key])]] : [])),
  };
  for (const list of ["providers", "tools", "hooks"]) {
    const modules = plan[list];
    if (Array.isArray(modules)) shown[list] = modules.map(entry);
  }
  if (isObject(plan.limits)) shown.limits = toPlain(plan.limits);
  return shown;
}

const SLOTS: ReadonlySet<string> = new Set(["orchestrator", "context"]);

function entry(value: unknown): JsonObject {
  if (typeof value === "string") return { module: value };
  if (!isObject(value)) return {};
  return Object.fromEntries(
    SHOWN.flatMap((key) => typeof value[key] === "string" ? [[key, value[key]]] : []),
  );
}
