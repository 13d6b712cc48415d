/** A coordinator for tests of one module, complete but without a session, a log and guards. */
import { CancellationToken } from "../cancellation.ts";
import type { Cleanup, Clock, ContextManager, Coordinator, Orchestrator, RunLimits } from "../contracts.ts";
import type { Emission, UserMessage } from "../hooks.ts";
import { isObject, type JsonObject } from "../json.ts";
import type { Provider } from "../providers.ts";
import { count, emptyCounters, SessionStatus } from "../session_status.ts";
import { registerHook } from "../handler_list.ts";
import { withSnakeCase } from "../snake_case_aliases.ts";
import { type Tool, ToolResult } from "../tools.ts";
import { EventRecorder } from "./event_recorder.ts";
import { FakeApproval, MockContextManager, MockTool } from "./mocks.ts";
import { FakeClock } from "./clocks.ts";
import { HookActions } from "./hook_actions.ts";
import { resolvePoint, type SingleSlot } from "../mount_points.ts";

/** Options of a {@link TestCoordinator}; all are optional. */
export interface TestCoordinatorOptions {
  /** Default `test-session`. */
  session_id?: string;
  /** Default null. */
  parent_id?: string | null;
  /** The mount plan; default: a minimal one. */
  config?: JsonObject;
  /** Default {}. */
  session_state?: JsonObject;
  /** Default a {@link FakeClock}. */
  clock?: Clock;
  /** Default an {@link EventRecorder} with `clock`. */
  hooks?: EventRecorder;
  /** Answers approvals; default: denies all; null: no approval system. */
  approval?: FakeApproval | null;
  /** Maximum code points of one injection; null = unlimited; default: a warning above 10,240. */
  injection_size_limit?: number | null;
  /** Maximum tokens of all injections of a turn; null = unlimited; default: a warning above 10,000. */
  injection_budget_per_turn?: number | null;
  /** Handling of an injection over the budget; default `warn`. */
  injection_budget_mode?: "warn" | "drop" | "error";
  /** Limits that differ from the defaults of a run. They are visible to modules but not enforced. */
  limits?: Partial<RunLimits>;
}

const DEFAULT_LIMITS: RunLimits = {
  max_iterations: 50,
  max_tool_calls: 200,
  max_total_tokens: 1_000_000,
  max_cost_usd: "5",
  max_duration_s: 600,
};

/** A recorded `mount`. */
export interface MountRecord {
  /** The canonical mount point. */
  mount_point: string;
  /** The mounted object. */
  module: object;
  /** Its mount name; null at a single slot. */
  name: string | null;
}

/** A recorded `unmount`. */
export interface UnmountRecord {
  /** The canonical mount point. */
  mount_point: string;
  /** The given name, or null. */
  name: string | null;
}

/** Result of the cleanups. */
export interface CleanupReport {
  /** Number of cleanups that ran. */
  ran: number;
  /** Errors of failed cleanups. */
  failed: unknown[];
}

/** A coordinator that records mounts and unmounts. Every method has both spellings. */
export class TestCoordinator implements Coordinator {
  /** Id of the session. */
  readonly session_id: string;
  /** Id of the parent session, or null. */
  readonly parent_id: string | null;
  /** The mount plan. */
  readonly config: JsonObject;
  /** State of modules that lasts from run to run. */
  readonly session_state: JsonObject;
  /** Clock of the session. */
  readonly clock: Clock;
  /** Registers handlers and records events. */
  readonly hooks: EventRecorder;
  /** The limits of the run; not enforced here. */
  readonly limits: RunLimits;
  /** The session's cancellation token. */
  readonly cancellation: CancellationToken = new CancellationToken();
  /** Answers approvals; null: no approval system. */
  readonly approval: FakeApproval | null;
  /** Messages to the user, in order. */
  readonly shown: UserMessage[] = [];
  /** All mounts, in order. */
  readonly mount_history: MountRecord[] = [];
  /** All unmounts, in order. */
  readonly unmount_history: UnmountRecord[] = [];
  /** Mounted tools by mount name. */
  readonly tools: Record<string, Tool> = Object.create(null);
  /** Mounted providers by mount name. */
  readonly providers: Record<string, Provider> = Object.create(null);
  readonly #options: TestCoordinatorOptions;
  readonly #slots = new Map<SingleSlot, object>();
  readonly #capabilities = new Map<string, unknown>();
  readonly #contributors: { channel: string; name: string; callback: () => unknown }[] = [];
  readonly #hook_actions = new HookActions();
  #cleanups: Cleanup[] = [];
  #ids = 0;

  /** Creates a coordinator with nothing mounted. */
  constructor(options: TestCoordinatorOptions = {}) {
    this.#options = options;
    this.session_id = options.session_id ?? "test-session";
    this.parent_id = options.parent_id ?? null;
    this.config = options.config ?? { session: { orchestrator: "loop-basic", context: "context-simple" } };
    this.limits = { ...DEFAULT_LIMITS, ...options.limits };
    this.session_state = options.session_state ?? {};
    this.clock = options.clock ?? new FakeClock();
    this.hooks = options.hooks ?? new EventRecorder(this.clock);
    this.approval = options.approval === undefined ? new FakeApproval() : options.approval;
    this.hooks.setDefaultFields({ session_id: this.session_id, parent_id: this.parent_id });
  }

  /** The mounted orchestrator, or null. */
  get orchestrator(): Orchestrator | null {
    return (this.#slots.get("orchestrator") as Orchestrator | undefined) ?? null; // mounted by a module
  }

  /** The mounted context manager, or null. */
  get context(): ContextManager | null {
    return (this.#slots.get("context") as ContextManager | undefined) ?? null; // mounted by a module
  }

  /** Maximum code points of one injection; null = unlimited. */
  get injection_size_limit(): number | null {
    return this.#options.injection_size_limit ?? null;
  }

  /** Maximum tokens of all injections of a turn; null = unlimited. */
  get injection_budget_per_turn(): number | null {
    return this.#options.injection_budget_per_turn ?? null;
  }

  /**
   * Mounts an object synchronously, even if the promise is not awaited. A hook with `events` and a `handler`
   * is registered when it is mounted at `hooks`.
   *
   * @throws {TypeError} `Unknown mount point …`, `Name required for …`.
   */
  mount(point: string, module: object, name?: string | { name?: string }): Promise<void> {
    return settled(() => this.#mount(point, module, isObject(name) ? name.name : name));
  }

  #mount(point: string, module: object, name: string | undefined): void {
    if (typeof module !== "object" && typeof module !== "function" || module === null) {
      throw new TypeError(
        `Cannot mount at "${point}": must be an object: received ${module === null ? "null" : typeof module}`,
      );
    }
    if (point === "hooks") return this.#mountHook(module as JsonObject, name);
    const { single, many } = resolvePoint(point, name);
    if (single) {
      this.#slots.set(single, module);
      this.mount_history.push({ mount_point: single, module, name: null });
      return;
    }
    const own = (module as { name?: unknown }).name;
    const key = name || (typeof own === "string" ? own : "");
    if (!key) throw new TypeError(`Name required for ${many}`);
    (this[many] as Record<string, object>)[key] = module;
    this.mount_history.push({ mount_point: many, module, name: key });
  }

  #mountHook(hook: JsonObject, name: string | undefined): void {
    registerHook(this.hooks, hook, name);
    this.mount_history.push({ mount_point: "hooks", module: hook, name: name ?? null });
  }

  /**
   * Unmounts a module; does nothing when it is not mounted.
   *
   * @throws {TypeError} `Name required to unmount from …`, `Unknown mount point …`.
   */
  unmount(point: string, name?: string): Promise<void> {
    return settled(() => {
      const { single, many } = resolvePoint(point, name);
      if (single) this.#slots.delete(single);
      else if (!name) throw new TypeError(`Name required to unmount from ${many}`);
      else delete this[many][name];
      this.unmount_history.push({ mount_point: single ?? many, name: single ? null : name ?? null });
    });
  }

  /**
   * Returns the module of a single slot or null; all modules of providers or tools; with a name, one of them.
   *
   * @throws {TypeError} `Unknown mount point …`.
   */
  get(point: string, name?: string): unknown {
    if (point === "hooks") return this.hooks;
    const { single, many } = resolvePoint(point, name);
    if (single) return this.#slots.get(single) ?? null;
    return name === undefined ? this[many] : this[many][name] ?? null;
  }

  /** Returns `prefix_1`, `prefix_2`, …. */
  newId(prefix: string): string {
    return `${prefix}_${++this.#ids}`;
  }

  /** Registers a cleanup for {@link cleanup}; values that are not functions are ignored. */
  registerCleanup(cleanup: Cleanup): void {
    if (typeof cleanup === "function") this.#cleanups.push(cleanup);
  }

  /** Runs the cleanups, last registered first, even when one fails. A second call runs none. */
  async cleanup(): Promise<CleanupReport> {
    const cleanups = this.#cleanups.reverse();
    this.#cleanups = [];
    const failed: unknown[] = [];
    for (const cleanup of cleanups) {
      try {
        await cleanup();
      } catch (error) {
        failed.push(error);
      }
    }
    return { ran: cleanups.length, failed };
  }

  /** Publishes a value for other modules. */
  registerCapability(name: string, value: unknown): void {
    this.#capabilities.set(name, value);
  }

  /** Returns a published value, or null. */
  getCapability(name: string): unknown {
    return this.#capabilities.get(name) ?? null;
  }

  /** Adds a callback to a channel. */
  registerContributor(channel: string, name: string, callback: () => unknown): void {
    this.#contributors.push({ channel, name, callback });
  }

  /**
   * Resolves to the values that the channel's callbacks return, in order; nulls and failures are left out.
   */
  async collectContributions(channel: string): Promise<unknown[]> {
    const collected: unknown[] = [];
    for (const contributor of this.#contributors.filter((item) => item.channel === channel)) {
      if (this.cancellation.is_immediate) break;
      try {
        const value = await contributor.callback();
        if (value !== null && value !== undefined) collected.push(value);
      } catch {
        // a failing contributor is left out
      }
    }
    return collected;
  }

  /**
   * Executes an emission: stores injections in the mounted context, records messages, asks {@link approval}.
   *
   * @throws {PreampError} `denied`: `Context injection exceeds N characters`.
   */
  processHookResult(result: Emission | JsonObject, event: string, hook_name = "hook"): Promise<Emission> {
    const { injection_size_limit, injection_budget_per_turn, injection_budget_mode } = this.#options;
    return this.#hook_actions.process(result, event, hook_name, {
      hooks: this.hooks,
      context: this.context,
      approval: this.approval,
      shown: this.shown,
      clock: this.clock,
      injection_size_limit,
      injection_budget_per_turn,
      injection_budget_mode,
    });
  }

  /**
   * Resolves to the status of the session, computed from the events of {@link hooks} and the messages of the
   * mounted context.
   */
  async sessionStatus(): Promise<SessionStatus> {
    const counters = emptyCounters();
    for (const [event, data] of this.hooks.getEvents()) count(counters, { event, data });
    const { tool_invocations, tool_successes, total_input_tokens, total_output_tokens, cost_usd } = counters;
    const now = new Date(this.clock.now());
    return SessionStatus({
      session_id: this.session_id,
      started_at: now,
      last_activity: now,
      total_messages: (await this.context?.getMessages())?.length ?? 0,
      tool_invocations,
      tool_successes,
      tool_failures: tool_invocations - tool_successes,
      total_input_tokens,
      total_output_tokens,
      cost_usd,
    });
  }

  /** Requests graceful, or with `true` immediate, cancellation. */
  requestCancel(immediate = false): void {
    if (immediate) this.cancellation.requestImmediate();
    else this.cancellation.requestGraceful();
  }

  /** Resets the injection counter of the turn. */
  resetTurn(): void {
    this.#hook_actions.resetTurn();
  }

  /** Returns the names of mounted modules and published capabilities. */
  toDict(): JsonObject {
    return {
      tools: Object.keys(this.tools),
      providers: Object.keys(this.providers),
      has_orchestrator: this.orchestrator !== null,
      has_context: this.context !== null,
      capabilities: [...this.#capabilities.keys()],
      has_approval_provider: this.approval !== null,
      has_display_service: true,
    };
  }
}

withSnakeCase(TestCoordinator);

/** Returns a coordinator with the tools `echo` and `fail` and a {@link MockContextManager}. */
export function createTestCoordinator(options: TestCoordinatorOptions = {}): TestCoordinator {
  const coordinator = new TestCoordinator(options);
  const echo = new MockTool({
    name: "echo",
    description: "Returns its input.",
    execute: (input) => ToolResult({ output: input }),
  });
  const fail = new MockTool({
    name: "fail",
    description: "Fails, always.",
    return_value: ToolResult({ success: false, error: { message: "Always fails" } }),
  });
  for (const tool of [echo, fail]) coordinator.tools[tool.name] = tool;
  for (const tool of [echo, fail]) {
    coordinator.mount_history.push({ mount_point: "tools", module: tool, name: tool.name });
  }
  coordinator.mount("context", new MockContextManager());
  return coordinator;
}

/** The name of {@link TestCoordinator} in Amplifier. */
export const MockCoordinator: typeof TestCoordinator = TestCoordinator;

function settled(run: () => void): Promise<void> {
  try {
    run();
    return Promise.resolve();
  } catch (error) {
    return Promise.reject(error);
  }
}
