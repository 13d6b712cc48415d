/**
 * The coordinator of one module: its access to the shared parts of the session. Until the module is
 * committed, everything that it mounts and registers is a draft that only the module itself sees. Then each
 * mounted object is wrapped in its guard and put at its mount point.
 */
import { noPermissions } from "../sdk/contracts.ts";
import { registerHook } from "../sdk/handler_list.ts";
import { isObject, type JsonObject } from "../sdk/json.ts";
import { errorMessage, PreampError } from "../sdk/errors.ts";
import { CONTEXT_EVENTS, GATES, RESERVED_EVENTS, RUNTIME_EVENTS } from "../sdk/event_table.ts";
import { SessionStatus } from "../sdk/session_status.ts";
import { timestamp } from "../sdk/timestamp.ts";
import { TOOL_NAME } from "../sdk/tools.ts";
import { describe } from "../sdk/value_path.ts";
import { POINT, resolvePoint, withSnakeCase } from "../sdk/snake_case_aliases.ts";
import type {
  CallFacts,
  CancellationToken,
  Cleanup,
  Clock,
  ContextManager,
  Coordinator,
  Emission,
  GrantedPermissions,
  HookRegistry,
  Message,
  ModuleLimits,
  ModuleType,
  Orchestrator,
  Provider,
  Tool,
  ToolCall,
} from "../sdk/types.ts";
import type { Emitter } from "./hooks.ts";
import { type Draft, ModuleHooks } from "./module_hooks.ts";
import { ContextGuard } from "./guard_context.ts";
import { ProviderGuard } from "./guard_provider.ts";
import { callTool, ToolGuard } from "./guard_tool.ts";
import type { SessionContext } from "./session_context.ts";
import { HOLDING_SECRETS, KEEP_BEFORE, type SessionParts } from "./session_parts.ts";
import { problemsOf } from "./module_checks.ts";
import { type Mounted, resolveMount } from "./mounts.ts";

/** Events that an orchestrator and a context manager cannot emit; all other modules: RESERVED_EVENTS. */
const RESERVED_FOR: Readonly<Record<string, ReadonlySet<string>>> = {
  orchestrator: RUNTIME_EVENTS,
  context: RESERVED_EVENTS.difference(CONTEXT_EVENTS),
};

export class ModuleCoordinator implements Coordinator {
  readonly module_id: string;
  readonly hooks: HookRegistry;
  readonly permissions: GrantedPermissions;
  readonly #shared: SessionParts;
  readonly #type: ModuleType;
  readonly #emitter: Emitter;
  /** Number of calls of {@link mount}. */
  #mounts = 0;
  #draft: Draft | null = { mounted: [], handlers: [], cleanups: [], effects: [] };

  constructor(
    shared: SessionParts,
    module_id: string,
    type: ModuleType,
    permissions: GrantedPermissions = noPermissions(),
  ) {
    this.#shared = shared;
    this.module_id = module_id;
    this.permissions = permissions;
    this.#type = type;
    this.#emitter = { module_id, reserved: RESERVED_FOR[type] ?? RESERVED_EVENTS, open: 0 };
    this.hooks = new ModuleHooks(shared.hooks, this.#emitter, () => this.#draft);
  }

  get session_id(): string {
    return this.#shared.session.session_id;
  }
  get parent_id(): string | null {
    return this.#shared.session.parent_id;
  }
  get config(): JsonObject {
    return this.#shared.config;
  }
  get session_state(): JsonObject {
    return this.#shared.session.state.view;
  }
  get clock(): Clock {
    return this.#shared.session.host.clock;
  }
  get limits(): ModuleLimits {
    const { run_limits, limits: { max_answer_bytes }, turn } = this.#shared.session;
    const max_iterations = run_limits.calls_left + (turn?.answered ?? 0);
    return Object.freeze({ ...run_limits.limits, max_iterations, max_answer_bytes });
  }
  get cancellation(): CancellationToken {
    return this.#shared.session.cancellation;
  }
  get injection_size_limit(): number | null {
    return this.#shared.session.plan.session.injection_size_limit ?? null;
  }
  get injection_budget_per_turn(): number | null {
    return this.#shared.session.plan.session.injection_budget_per_turn ?? null;
  }
  get tools(): Record<string, Tool> {
    return this.#many("tools", this.#shared.mounts.tools.view);
  }
  get providers(): Record<string, Provider> {
    const { providers, loop_providers } = this.#shared.mounts;
    // model calls of the orchestrator belong to the turn
    return this.#many("providers", (this.#type === "orchestrator" ? loop_providers : providers).view);
  }
  get orchestrator(): Orchestrator | null {
    return this.#single("orchestrator", this.#shared.mounts.orchestrator);
  }
  get context(): ContextManager | null {
    return this.#single("context", this.#shared.mounts.context?.handle ?? null);
  }

  #many<T>(point: string, published: Record<string, T>): Record<string, T> {
    const own = this.#draft?.mounted.filter((mounted) => mounted.point === point) ?? [];
    if (own.length === 0) return published;
    return { ...published, ...Object.fromEntries(own.map((mounted) => [mounted.name, mounted.module as T])) };
  }

  #single<T>(point: string, published: T | null): T | null {
    const own = this.#draft?.mounted.findLast((mounted) => mounted.point === point);
    return own ? own.module as T : published;
  }

  /** Mounts before it returns, because a module may call it without awaiting it. */
  mount(point: string, module: object, name?: string | { name?: string }): Promise<void> {
    return Promise.try(() => {
      if (point === "hooks" && isObject(module)) {
        return registerHook(this.hooks, module, isObject(name) ? name.name : name);
      }
      const which = `object ${++this.#mounts} that module "${this.module_id}" mounts`;
      const mounted = resolveMount(point, module, name, which);
      if (this.#draft) return void this.#draft.mounted.push(mounted);
      const facts = problemsOf(mounted);
      if (facts === null) return this.#publish([mounted]);
      const message = `Cannot mount "${mounted.name}" at ${mounted.point}: ${facts}`;
      throw new PreampError("module_invalid", message);
    });
  }

  unmount(point: string, name?: string): Promise<void> {
    return Promise.try(() => {
      const { single, many } = resolvePoint(point, name);
      if (many && name === undefined) throw new TypeError(`Name required to unmount from ${many}`);
      if (this.#draft) {
        this.#draft.mounted = this.#draft.mounted.filter((mounted) =>
          mounted.point !== (single ?? many) || (many && mounted.name !== name)
        );
        return;
      }
      const { mounts } = this.#shared;
      if (single) mounts[single] = null;
      else if (many === "tools") mounts.tools.remove(name!); // checked above
      else mounts.removeProvider(name!);
    });
  }

  get(point: string, name?: string): unknown {
    if (point === "hooks") return this.hooks;
    const { single, many } = resolvePoint(point, name);
    if (single) return this[single];
    return name === undefined ? this[many] : this[many][name] ?? null;
  }

  newId(prefix: string): string {
    return this.#shared.session.host.newId(prefix);
  }

  registerCleanup(cleanup: Cleanup): void {
    if (typeof cleanup !== "function") return;
    if (this.#draft) this.#draft.cleanups.push(cleanup);
    else this.#shared.cleanups.push({ module_id: this.module_id, cleanup });
  }

  registerCapability(name: string, value: unknown): void {
    if (HOLDING_SECRETS.has(name)) {
      throw new PreampError(
        "module_invalid",
        `Cannot register the capability ${name}: it is the runtime's own`,
      );
    }
    this.#applyOrDraft(() => this.#shared.capabilities.set(name, value));
  }

  getCapability(name: string): unknown {
    const value = this.#shared.capabilities.get(name) ?? null;
    if (name !== KEEP_BEFORE || typeof value !== "function") return value;
    return (change: unknown) => value(change, this.permissions.write);
  }

  registerContributor(channel: string, name: string, callback: () => unknown): void {
    this.#applyOrDraft(() => this.#shared.contributors.push({ channel, name, callback }));
  }

  /** Applies an effect now, or when the draft is committed. */
  #applyOrDraft(effect: () => void): void {
    if (this.#draft) this.#draft.effects.push(effect);
    else effect();
  }

  async collectContributions(channel: string): Promise<unknown[]> {
    const values: unknown[] = [];
    const contributors = this.#shared.contributors.filter((entry) => entry.channel === channel);
    for (const { name, callback } of contributors) {
      if (this.cancellation.is_immediate) break;
      try {
        const value = await callback();
        if (value !== null && value !== undefined) values.push(value);
      } catch (error) {
        this.#shared.session.host.warn(
          "contributor_failed",
          `Contributor "${name}" of ${channel} failed: ${errorMessage(error)}`,
        );
      }
    }
    return values;
  }

  processHookResult(result: Emission, event: string, hook_name?: string): Promise<Emission> {
    return this.#shared.steps.settle(result, event, hook_name);
  }

  callTool(call: ToolCall, facts: CallFacts = {}): Promise<Message> {
    return callTool(this.#shared.session, this.#shared.mounts, call, facts);
  }

  sessionStatus(): Promise<SessionStatus> {
    const { host, session_id } = this.#shared.session;
    const started_at = timestamp(host.clock.now());
    return Promise.resolve(host.sessionStatus?.(session_id) ?? SessionStatus({ session_id, started_at }));
  }

  requestCancel(immediate = false): void {
    const { session } = this.#shared;
    session.cancel(immediate ? "immediate" : "graceful").catch((error) =>
      session.host.warn("cancel_failed", errorMessage(error))
    );
  }

  resetTurn(): void {
    this.#shared.steps.resetTurn();
  }

  toDict(): JsonObject {
    const { mounts, capabilities } = this.#shared;
    return {
      tools: mounts.tools.names,
      providers: mounts.providers.names,
      has_orchestrator: mounts.orchestrator !== null,
      has_context: mounts.context !== null,
      capabilities: [...capabilities.keys()],
      has_approval_provider: true,
      has_display_service: true,
    };
  }

  /** Objects that the module has mounted in its draft. */
  get drafted(): readonly Mounted[] {
    return this.#draft?.mounted ?? [];
  }

  /** Events that the draft has handlers for. */
  get drafted_events(): string[] {
    const handlers = this.#draft?.handlers ?? [];
    if (handlers.length === 0) return [];
    return [...new Set(handlers.map(({ event }) => event))];
  }

  /** Whether the draft has a handler of a gate that denies when it fails. */
  get drafted_gate(): boolean {
    const handlers = this.#draft?.handlers ?? [];
    return handlers.some(({ event, options }) => GATES.has(event) && options.fail_closed !== false);
  }

  /**
   * Publishes the draft; afterwards, everything takes effect immediately. Publishes nothing when it throws.
   *
   * @param instance_id Name for the object of the module's type, if it mounted only one.
   * @returns the names of the published objects; of a hook, its events.
   */
  commit(instance_id: string | undefined): string[] {
    const draft = this.#draft;
    if (!draft) return [];
    const events = this.drafted_events;
    const mounted = withInstanceId(draft.mounted, this.#type, instance_id);
    this.#publish(mounted);
    this.#draft = null;
    for (const entry of draft.handlers) {
      entry.dispose = this.#shared.hooks.handlers.add(entry, this.module_id, this.hooks);
    }
    for (const cleanup of draft.cleanups) this.registerCleanup(cleanup);
    for (const effect of draft.effects) effect();
    return this.#type === "hook" ? events : mounted.map(({ name }) => name);
  }

  /** Puts objects at their mount points; throws without publishing anything when one cannot be guarded. */
  #publish(all: readonly Mounted[]): void {
    const publish = all.map((mounted) => guardMounted(this.#shared, mounted, this.module_id));
    for (const mounted of all) this.#takeRole(mounted);
    for (const publishOne of publish) publishOne();
  }

  /**
   * Lets a provider, a tool or a hook that mounts an orchestrator or a context manager emit its events. Only
   * before the first turn, which keeps the ones it begins with.
   */
  #takeRole({ point }: Mounted): void {
    const { session, mounts } = this.#shared;
    if (point !== "orchestrator" && point !== "context") return;
    if (this.#type in RESERVED_FOR || session.has_begun_turn) return;
    this.#emitter.reserved = this.#emitter.reserved.intersection(RESERVED_FOR[point]!); // has both points
    mounts.foreign.push(point);
  }

  /** Discards the draft; returns the cleanups that the module registered. */
  discard(): Cleanup[] {
    const cleanups = this.#draft?.cleanups ?? [];
    this.#draft = { mounted: [], handlers: [], cleanups: [], effects: [] };
    return cleanups;
  }
}

withSnakeCase(ModuleCoordinator);

/** Returns the drafted objects, with the `instance_id` as the name of the module's only tool or provider. */
function withInstanceId(drafted: Mounted[], type: ModuleType, instance_id: string | undefined): Mounted[] {
  if (instance_id === undefined || (type !== "tool" && type !== "provider")) return drafted;
  const own = drafted.filter(({ point }) => point === POINT[type]);
  if (own.length !== 1) return drafted;
  return drafted.map((mounted) => mounted === own[0] ? { ...mounted, name: instance_id } : mounted);
}

/** Wraps a mounted object in its guard; the returned function publishes the guard and cannot fail. */
function guardMounted(shared: SessionParts, mounted: Mounted, module_id: string): () => void {
  const { session, mounts } = shared;
  const { point, name } = mounted;
  const warnOfOverwrite = (replaced: unknown) => {
    if (!replaced) return;
    const message = `Module "${module_id}" replaced another module at ${point} "${name}"`;
    session.host.warn("module_overwritten", message);
  };
  switch (point) {
    case "orchestrator":
      return () => {
        warnOfOverwrite(mounts.orchestrator);
        mounts.orchestrator = mounted.module as Orchestrator;
      };
    case "context": {
      const handle = new ContextGuard(session, mounted.module as ContextManager);
      return () => {
        warnOfOverwrite(mounts.context);
        mounts.context = handle;
      };
    }
    case "providers": {
      const guard = new ProviderGuard(session, mounted.module as Provider, { name, module_id });
      return () => warnOfOverwrite(mounts.putProvider(name, guard));
    }
    case "tools": {
      const tool = mounted.module as Tool;
      const advertised = advertisedName(session, mounted, tool, module_id);
      if (!TOOL_NAME.test(advertised)) {
        const fact = `Tool ${describe(advertised)}: most models refuse this name`; // the whole request would fail
        session.host.warn("tool_name_refused", `${fact}; use letters, digits, _ and -, at most 64`);
      }
      const handle = new ToolGuard(session, tool, { key: name, name: advertised, module_id });
      return () => warnOfOverwrite(mounts.tools.put(name, handle));
    }
  }
}

/** Returns the name that is sent to models: the instance id when there is one, else the tool's own name. */
function advertisedName({ host }: SessionContext, mounted: Mounted, tool: Tool, module_id: string): string {
  if (mounted.name === module_id) return mounted.name;
  if (typeof tool.name !== "string" || tool.name === "" || tool.name === mounted.name) return mounted.name;
  host.warn(
    "tool_name_mismatch",
    `Tool "${tool.name}" is mounted as "${mounted.name}": models see the name "${tool.name}"`,
  );
  return tool.name;
}
