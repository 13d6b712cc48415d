/**
 * Coordinator of a guest. Synchronous members read the latest session data; actions without an answer are
 * notifications; everything else is a request to the host.
 */
import { CancellationToken } from "../../sdk/cancellation.ts";
import { registerHook } from "../../sdk/handler_list.ts";
import { isObject, type JsonObject, toPlain, toPlainObject } from "../../sdk/json.ts";
import { type ManySlot, resolvePoint, type SingleSlot, withSnakeCase } from "../../sdk/snake_case_aliases.ts";
import { bind, Map, map, Object } from "../../sdk/primordials.ts";
import { SessionStatus, type SessionStatusFields } from "../../sdk/session_status.ts";
import type {
  CallFacts,
  Cleanup,
  Clock,
  ContextManager,
  Coordinator,
  Emission,
  GrantedPermissions,
  Message,
  Orchestrator,
  Provider,
  RunLimits,
  Tool,
  ToolCall,
} from "../../sdk/types.ts";
import { guestId } from "../../sdk/ids.ts";
import { keyOf, type SessionDelta, type SessionSnapshot, slotOf } from "../protocol.ts";
import { type GuestObjects, shapeAt } from "./exported_objects.ts";
import { ContextProxy, HooksProxy, ProviderProxy, StateProxy, toolProxy } from "./proxies.ts";
import type { GuestRpc } from "./rpc.ts";

export class GuestCoordinator implements Coordinator {
  readonly hooks: HooksProxy;
  readonly clock: Clock;
  readonly cancellation: CancellationToken = new CancellationToken();
  /** The session's conversation in the host. */
  readonly conversation: ContextManager;
  readonly #rpc: GuestRpc;
  readonly #objects: GuestObjects;
  readonly #snapshot: SessionSnapshot;
  readonly #state: StateProxy;
  #tools: Record<string, Tool> = Object.freeze(Object.create(null));
  #providers: Record<string, Provider> = Object.freeze(Object.create(null));
  /** Objects that the module mounted, used until the host returns their guarded handles. */
  readonly #own: Record<ManySlot, Record<string, object>> = { tools: {}, providers: {} };
  readonly #slots = new Map<SingleSlot, object>();
  readonly #capabilities = new Map<string, unknown>();
  #view: SessionDelta;
  #updated_at = performance.now();
  #ids = 0;

  constructor(rpc: GuestRpc, objects: GuestObjects, snapshot: SessionSnapshot, view: SessionDelta) {
    this.#rpc = rpc;
    this.#objects = objects;
    this.#snapshot = snapshot;
    this.#state = new StateProxy(rpc);
    this.#view = view;
    this.hooks = new HooksProxy(rpc, objects, () => this.#view.handlers ?? {});
    this.conversation = new ContextProxy(rpc, objects, (provider) => keyOf(this.providers, provider));
    this.clock = {
      now: () => this.#view.now + performance.now() - this.#updated_at,
      monotonic: () => this.#view.monotonic + performance.now() - this.#updated_at,
      after: async (ms, signal) => {
        await this.#rpc.request("clock", "after", [ms], { signal });
      },
    };
    this.update(view);
  }

  /** Applies changed session data. */
  update(view: SessionDelta): void {
    this.#view = { ...this.#view, ...view };
    this.#updated_at = performance.now();
    if (view.state) this.#state.update(view.state);
    const { tools, providers } = view;
    if (tools) this.#tools = byKey(tools, (tool) => toolProxy(this.#rpc, tool));
    if (providers) {
      this.#providers = byKey(providers, (provider) => new ProviderProxy(this.#rpc, this.#objects, provider));
    }
    this.cancel(view.cancellation);
  }

  /** Applies the session's cancellation state. */
  cancel(state: SessionDelta["cancellation"]): void {
    const { cancellation } = this;
    if (state === cancellation.state) return;
    if (state === "none") return cancellation.reset();
    if (state === "graceful") cancellation.requestGraceful();
    else cancellation.requestImmediate();
    void cancellation.triggerCallbacks(); // errors of callbacks are ignored
  }

  get session_id(): string {
    return this.#snapshot.session_id;
  }
  get parent_id(): string | null {
    return this.#snapshot.parent_id;
  }
  get config(): JsonObject {
    return this.#snapshot.config;
  }
  get permissions(): GrantedPermissions {
    return this.#snapshot.permissions;
  }
  get limits(): RunLimits {
    return this.#snapshot.limits;
  }
  get injection_size_limit(): number | null {
    return this.#snapshot.injection_size_limit;
  }
  get injection_budget_per_turn(): number | null {
    return this.#snapshot.injection_budget_per_turn;
  }
  get session_state(): JsonObject {
    return this.#state.view;
  }
  get tools(): Record<string, Tool> {
    return withOwn(this.#tools, this.#own.tools as Record<string, Tool>);
  }
  get providers(): Record<string, Provider> {
    return withOwn(this.#providers, this.#own.providers as Record<string, Provider>);
  }
  get context(): ContextManager | null {
    const own = this.#slots.get("context");
    if (own) return own as ContextManager;
    return this.#view.context === true ? this.conversation : null;
  }
  /** The module's own loop; for another module's loop, an object that only shows its existence. */
  get orchestrator(): Orchestrator | null {
    const own = this.#slots.get("orchestrator");
    if (own) return own as Orchestrator;
    return this.#view.orchestrator === true ? FOREIGN_LOOP : null;
  }

  async mount(point: string, module: object, name?: string | { name?: string }): Promise<void> {
    const mount_name = isObject(name) ? name.name : name;
    if (point === "hooks" && isObject(module)) return registerHook(this.hooks, module, mount_name);
    if (typeof module !== "object" && typeof module !== "function" || module === null) {
      await this.#rpc.request("coordinator", "mount", [point, { name: mount_name, value: toPlain(module) }]);
      return;
    }
    const slot = slotOf(point, mount_name);
    const ref = this.#objects.add(module, slot?.point ?? point);
    const shape = shapeAt(slot?.point ?? point, module);
    const key = await this.#rpc.request("coordinator", "mount", [point, { name: mount_name, ref, shape }]);
    if (slot?.single) this.#slots.set(slot.single, module);
    else if (slot?.many && typeof key === "string") this.#own[slot.many][key] = module;
  }

  async unmount(point: string, name?: string): Promise<void> {
    await this.#rpc.request("coordinator", "unmount", [point, name]);
    const slot = slotOf(point, name);
    if (slot?.single) this.#slots.delete(slot.single);
    else if (slot?.many && name !== undefined) delete this.#own[slot.many][name];
  }

  get(point: string, name?: string): unknown {
    if (point === "hooks") return this.hooks;
    const { single, many } = resolvePoint(point, name);
    if (many) return name === undefined ? this[many] : this[many][name] ?? null;
    if (single === "orchestrator" || single === "context") return this[single];
    return this.#slots.get(single) ?? null;
  }

  newId(prefix: string): string {
    return guestId(prefix, this.#snapshot.id_seed, this.#ids++);
  }

  registerCleanup(cleanup: Cleanup): void {
    if (typeof cleanup !== "function") return;
    this.#rpc.notify({ e: "cleanup", ref: this.#objects.add(() => cleanup()) }, "registerCleanup");
  }

  registerCapability(name: string, value: unknown): void {
    const refs: Record<string, number> = {};
    if (typeof value === "function") refs[""] = this.#objects.add(value);
    else if (isObject(value)) {
      for (const key in value) {
        const item = Object.hasOwn(value, key) ? value[key] : undefined;
        if (typeof item === "function") refs[key] = this.#objects.add(bind(item, value));
      }
    }
    const plain = typeof value === "function" ? null : toPlain(value);
    this.#rpc.notify({ e: "capability", name: String(name), value: plain, refs }, "registerCapability");
    this.#capabilities.set(String(name), value);
  }

  /** Returns a capability. Of another module's, data are copies and functions return promises. */
  getCapability(name: string): unknown {
    const own = this.#capabilities.get(name);
    if (own !== undefined) return own;
    const known = this.#view.capabilities ?? {};
    const found = Object.hasOwn(known, name) ? known[name] : undefined;
    if (!found) return null;
    const call = (method: string) => (...args: unknown[]) =>
      this.#rpc.request("capability", method, [name, ...map(args, toPlain)]);
    if (found.methods.includes("")) return call("");
    if (!isObject(found.value)) return found.value;
    const capability: JsonObject = toPlainObject(found.value);
    for (let at = 0; at < found.methods.length; at++) {
      capability[found.methods[at]!] = call(found.methods[at]!);
    }
    return capability;
  }

  registerContributor(channel: string, name: string, callback: () => unknown): void {
    const ref = this.#objects.add(() => callback());
    this.#rpc.notify(
      { e: "contributor", channel: String(channel), name: String(name), ref },
      "registerContributor",
    );
  }

  async collectContributions(channel: string): Promise<unknown[]> {
    return await this.#rpc.request("coordinator", "collectContributions", [channel]) as unknown[];
  }

  async callTool(call: ToolCall, facts: CallFacts = {}): Promise<Message> {
    return await this.#rpc.request("coordinator", "callTool", [toPlain(call), toPlain(facts)]) as Message;
  }

  async processHookResult(result: Emission, event: string, hook_name?: string): Promise<Emission> {
    const args = [toPlain(result), event, hook_name, this.hooks.numberOf(result)];
    return await this.#rpc.request("coordinator", "processHookResult", args) as Emission;
  }

  async sessionStatus(): Promise<SessionStatus> {
    const status = await this.#rpc.request("coordinator", "sessionStatus", []);
    return SessionStatus(status as SessionStatusFields); // from the host
  }

  requestCancel(immediate = false): void {
    this.#rpc.notify({ e: "cancel", immediate: immediate === true }, "requestCancel");
    this.cancel(immediate ? "immediate" : "graceful");
  }

  resetTurn(): void {
    this.#rpc.notify({ e: "reset_turn" }, "resetTurn");
  }

  toDict(): JsonObject {
    return {
      tools: Object.keys(this.tools),
      providers: Object.keys(this.providers),
      has_orchestrator: this.orchestrator !== null,
      has_context: this.context !== null,
      capabilities: [
        ...new Set([...Object.keys(this.#view.capabilities ?? {}), ...this.#capabilities.keys()]),
      ],
      has_approval_provider: true,
      has_display_service: true,
    };
  }

  /** Calls a function of the host by its name. */
  async callBack(name: string): Promise<string> {
    return String(await this.#rpc.request("function", name, []));
  }
}

withSnakeCase(GuestCoordinator);

/** Stands at the orchestrator's mount point for a loop of another module. */
const FOREIGN_LOOP: Orchestrator = Object.freeze({
  execute: () => Promise.reject(new Error("Cannot call execute(): only the session starts a turn")),
});

/** Returns a frozen map of proxies by key. */
function byKey<View extends { key: string }, T>(
  views: readonly View[],
  make: (view: View) => T,
): Record<string, T> {
  const made: Record<string, T> = Object.create(null);
  for (let at = 0; at < views.length; at++) made[views[at]!.key] = make(views[at]!);
  return Object.freeze(made);
}

/** Returns the host's handles and those of the module's own objects that have no handle yet. */
function withOwn<T>(handles: Record<string, T>, own: Record<string, T>): Record<string, T> {
  let all = handles;
  for (const name in own) {
    if (Object.hasOwn(handles, name)) continue;
    if (all === handles) all = { ...handles };
    all[name] = own[name]!;
  }
  return all;
}
