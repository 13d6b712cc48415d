/** Computes the session data that changed since the last message to a guest. */
import { isObject, type JsonObject, toPlain } from "../../sdk/json.ts";
import { ProviderInfo } from "../../sdk/providers.ts";
import { inputSchemaOf, methodOf } from "../../sdk/snake_case_aliases.ts";
import type { Coordinator, Provider, Tool } from "../../sdk/types.ts";
import type { CapabilityView, ProviderView, SessionDelta, ToolView } from "../protocol.ts";

/** Tools and providers of a call; for an orchestrator they are its arguments. */
export interface SessionMaps {
  readonly tools: Record<string, Tool>;
  readonly providers: Record<string, Provider>;
}

/** Tracks the session data that one guest has. */
export class SessionDeltaSource {
  #state = "";
  #tools: Readonly<Record<string, Tool>> | null = null;
  #providers: Readonly<Record<string, Provider>> | null = null;
  #capabilities: readonly unknown[] | null = null;
  #handlers = "";
  #slots = "";

  /** Returns the data that changed. `whole`: includes the list of handlers, which few modules read. */
  next(coordinator: Coordinator, maps: SessionMaps, whole: boolean): SessionDelta {
    const { clock, cancellation } = coordinator;
    const view: { -readonly [K in keyof SessionDelta]: SessionDelta[K] } = {
      now: clock.now(),
      monotonic: clock.monotonic(),
      cancellation: cancellation.state,
    };
    const state = JSON.stringify(coordinator.session_state);
    if (state !== this.#state) {
      this.#state = state;
      view.state = JSON.parse(state) as JsonObject;
    }
    const { tools, providers } = maps;
    if (!sameFields(this.#tools, tools)) {
      this.#tools = { ...tools };
      view.tools = Object.entries(tools).map(([key, tool]) => toolView(key, tool));
    }
    if (!sameFields(this.#providers, providers)) {
      this.#providers = { ...providers };
      view.providers = Object.entries(providers).map(([key, provider]) => providerView(key, provider));
    }
    this.#addSlots(view, coordinator);
    this.#addCapabilities(view, coordinator);
    if (whole) this.#addHandlers(view, coordinator);
    return view;
  }

  #addSlots(view: { -readonly [K in keyof SessionDelta]: SessionDelta[K] }, coordinator: Coordinator): void {
    const orchestrator = coordinator.orchestrator !== null;
    const context = coordinator.context !== null;
    const slots = `${orchestrator} ${context}`;
    if (slots === this.#slots) return;
    this.#slots = slots;
    view.orchestrator = orchestrator;
    view.context = context;
  }

  #addCapabilities(
    view: { -readonly [K in keyof SessionDelta]: SessionDelta[K] },
    coordinator: Coordinator,
  ): void {
    const { capabilities } = coordinator.toDict();
    const names = Array.isArray(capabilities) ? capabilities.map(String) : [];
    const now = names.flatMap((name) => [name, coordinator.getCapability(name)]);
    if (same(this.#capabilities, now)) return;
    this.#capabilities = now;
    view.capabilities = Object.fromEntries(
      names.map((name) => [name, capabilityView(coordinator.getCapability(name))]),
    );
  }

  #addHandlers(
    view: { -readonly [K in keyof SessionDelta]: SessionDelta[K] },
    coordinator: Coordinator,
  ): void {
    const handlers = coordinator.hooks.listHandlers();
    const text = JSON.stringify(handlers);
    if (text === this.#handlers) return;
    this.#handlers = text;
    view.handlers = handlers;
  }
}

/** Returns whether two maps have the same entries in the same order. perf: runs at each call, copies nothing. */
function sameFields<T>(known: Readonly<Record<string, T>> | null, now: Readonly<Record<string, T>>): boolean {
  if (known === null) return false;
  const keys = Object.keys(now);
  const before = Object.keys(known);
  return keys.length === before.length &&
    keys.every((key, index) => key === before[index] && now[key] === known[key]);
}

function same(a: readonly unknown[] | null, b: readonly unknown[]): boolean {
  return a !== null && a.length === b.length && a.every((item, index) => item === b[index]);
}

function toolView(key: string, tool: Tool): ToolView {
  const { name, description, risk, requires_approval, idempotent, native_specs } = tool;
  return {
    key,
    name,
    description,
    input_schema: inputSchemaOf(tool),
    ...(risk ? { risk } : {}),
    ...(requires_approval ? { requires_approval } : {}),
    ...(idempotent ? { idempotent } : {}),
    ...(native_specs ? { native_specs: toPlain(native_specs) as JsonObject } : {}),
  };
}

function providerView(key: string, provider: Provider): ProviderView {
  return {
    key,
    name: provider.name,
    priority: provider.priority ?? 100,
    info: infoOf(provider, key),
    ...modelInfoOf(provider),
  };
}

/** Returns the info of a provider. The guest's own provider has no guard while `mount` runs, and may have no info. */
function infoOf(provider: Provider, key: string): ProviderInfo {
  const info = answerOf(provider, "getInfo");
  return isObject(info) ? toPlain(info) as unknown as ProviderInfo : ProviderInfo({ id: key });
}

function modelInfoOf(provider: Provider): { model_info?: unknown } {
  const info = answerOf(provider, "getModelInfo");
  return info === undefined ? {} : { model_info: toPlain(info) };
}

/** Returns the result of a method; undefined if it does not exist or throws. */
function answerOf(provider: Provider, method: string): unknown {
  try {
    return methodOf(provider, method)?.();
  } catch {
    return undefined;
  }
}

/** Returns the data of a capability and the names of its functions. */
function capabilityView(value: unknown): CapabilityView {
  if (typeof value === "function") return { value: null, methods: [""] };
  if (typeof value !== "object" || value === null) return { value: toPlain(value), methods: [] };
  const methods = Object.entries(value).flatMap(([name, item]) => typeof item === "function" ? [name] : []);
  return { value: toPlain(value), methods };
}
