/**
 * Session data for a guest: what it receives once, with `mount`, and what has changed since the last message
 * to it. Of other modules it receives names, not configurations.
 */
import { isObject, type JsonObject, toPlain } from "../../sdk/json.ts";
import { ProviderInfo } from "../../sdk/providers.ts";
import { inputSchemaOf, methodOf } from "../../sdk/snake_case_aliases.ts";
import type { Coordinator, Provider, Tool } from "../../sdk/types.ts";
import type { CapabilityView, ProviderView, SessionDelta, SessionSnapshot, ToolView } from "../protocol.ts";

/** The guest's own entry in the plan: its `instance_id`, else its module id, and its config. */
interface OwnEntry {
  readonly name: string;
  readonly config: JsonObject;
}

/** Returns the data that a guest of a session receives once. */
export function snapshotOf(coordinator: Coordinator, id_seed: string, own: OwnEntry): SessionSnapshot {
  const { session_id, parent_id, permissions, limits, injection_size_limit, injection_budget_per_turn } =
    coordinator;
  return {
    session_id,
    parent_id,
    config: outline(coordinator.config, own),
    permissions: { ...permissions },
    limits: { ...limits },
    injection_size_limit,
    injection_budget_per_turn,
    id_seed,
  };
}

/**
 * Returns a plan without sources, the plans of agents, and the configs and permissions of other modules: they
 * may contain keys and tokens.
 */
function outline(plan: JsonObject, own: OwnEntry): JsonObject {
  const session: JsonObject = {};
  for (const [key, value] of Object.entries(isObject(plan.session) ? plan.session : {})) {
    if (key === "orchestrator" || key === "context") session[key] = entry(value, own);
    else if (typeof value === "number" || typeof value === "boolean" || value === null) session[key] = value;
  }
  const visible: JsonObject = { session };
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

function entry(value: unknown, own: OwnEntry): JsonObject {
  if (typeof value === "string") return { module: value };
  if (!isObject(value)) return {};
  const { module, instance_id, permissions, source } = value;
  const visible: JsonObject = {
    ...(typeof module === "string" ? { module } : {}),
    ...(typeof instance_id === "string" ? { instance_id } : {}),
  };
  if ((instance_id ?? module) !== own.name) return visible;
  // another entry may have the same name: use the config that this module received
  visible.config = toPlain(own.config);
  if (source !== undefined) visible.source = ""; // it has one, which may contain a token
  if (isObject(permissions)) visible.permissions = toPlain(permissions);
  return visible;
}

/** Tracks the session data that one guest has. */
export class SessionDeltaSource {
  /** Values from which each field was made when it was sent. */
  readonly #sent = new Map<keyof SessionDelta, readonly unknown[]>();

  /**
   * Returns the data that changed.
   *
   * @param parts Tools and providers of the call; for an orchestrator they are its arguments.
   * @param whole Whether to include the list of handlers, which few modules read.
   */
  next(
    coordinator: Coordinator,
    parts: Pick<Coordinator, "tools" | "providers">,
    whole: boolean,
  ): SessionDelta {
    const { clock, cancellation, orchestrator, context, hooks } = coordinator;
    const tools = Object.entries(parts.tools);
    const providers = Object.entries(parts.providers);
    const capabilities = capabilitiesOf(coordinator);
    const state = JSON.stringify(coordinator.session_state);
    const handlers = whole ? JSON.stringify(hooks.listHandlers()) : undefined;
    return {
      now: clock.now(),
      monotonic: clock.monotonic(),
      cancellation: cancellation.state,
      ...this.#changed("state", [state], () => JSON.parse(state)),
      ...this.#changed("tools", tools.flat(), () => tools.map(toolView)),
      ...this.#changed("providers", providers.flat(), () => providers.map(providerView)),
      ...this.#changed("orchestrator", [orchestrator !== null], () => orchestrator !== null),
      ...this.#changed("context", [context !== null], () => context !== null),
      ...this.#changed("capabilities", capabilities.flat(), () => viewsOf(capabilities)),
      ...(handlers === undefined ? {} : this.#changed("handlers", [handlers], () => JSON.parse(handlers))),
    };
  }

  /** Returns a field if one of the values from which it is made has changed. */
  #changed<Field extends keyof SessionDelta>(
    field: Field,
    values: readonly unknown[],
    make: () => SessionDelta[Field],
  ): Partial<SessionDelta> {
    const sent = this.#sent.get(field);
    if (sent?.length === values.length && values.every((value, index) => value === sent[index])) return {};
    this.#sent.set(field, values);
    return { [field]: make() };
  }
}

function toolView([key, tool]: [string, Tool]): ToolView {
  const { name, description, risk, requires_approval, idempotent, native_specs } = tool;
  return {
    key,
    name,
    description,
    input_schema: inputSchemaOf(tool),
    ...(risk ? { risk } : {}),
    ...(requires_approval ? { requires_approval } : {}),
    ...(idempotent ? { idempotent } : {}),
    ...(native_specs ? { native_specs: toPlain(native_specs) as Record<string, JsonObject> } : {}),
  };
}

/** Describes a provider. The guest's own provider has no guard while `mount` runs, and may have no info. */
function providerView([key, provider]: [string, Provider]): ProviderView {
  const info = answerOf(provider, "getInfo");
  const model_info = answerOf(provider, "getModelInfo");
  return {
    key,
    name: provider.name,
    priority: provider.priority ?? 100,
    info: isObject(info) ? toPlain(info) as unknown as ProviderInfo : ProviderInfo({ id: key }),
    ...(model_info === undefined ? {} : { model_info: toPlain(model_info) }),
  };
}

/** Returns the result of a method; undefined if it does not exist or throws. */
function answerOf(provider: Provider, method: string): unknown {
  try {
    return methodOf(provider, method)?.();
  } catch {
    return undefined;
  }
}

function capabilitiesOf(coordinator: Coordinator): [name: string, value: unknown][] {
  const { capabilities } = coordinator.toDict();
  const names = Array.isArray(capabilities) ? capabilities.map(String) : [];
  return names.map((name) => [name, coordinator.getCapability(name)]);
}

function viewsOf(capabilities: [string, unknown][]): Record<string, CapabilityView> {
  return Object.fromEntries(capabilities.map(([name, value]) => [name, capabilityView(value)]));
}

/** Returns the data of a capability and the names of its functions. */
function capabilityView(value: unknown): CapabilityView {
  if (typeof value === "function") return { value: null, methods: [""] };
  const methods = isObject(value)
    ? Object.keys(value).filter((name) => typeof value[name] === "function")
    : [];
  return { value: toPlain(value), methods };
}
