/** A coordinator for tests of one module: records what it mounts. Runs no turn; see `session.ts`. */
import { CancellationToken } from "../sdk/cancellation.ts";
import {
  type Cleanup,
  type Clock,
  type ContextManager,
  type Coordinator,
  type GrantedPermissions,
  type ModuleLimits,
  noPermissions,
  type Orchestrator,
  type Permissions,
} from "../sdk/contracts.ts";
import { errorName, PreampError } from "../sdk/errors.ts";
import {
  admitInjections,
  afterApproval,
  approvalOutcome,
  injectedMessage,
  type InjectionLimits,
} from "../sdk/hook_outcomes.ts";
import { runChain } from "../sdk/hook_chain.ts";
import type { ApprovalQuestion, Emission, UserMessage } from "../sdk/hooks.ts";
import { isObject, type JsonObject } from "../sdk/json.ts";
import type { Provider } from "../sdk/providers.ts";
import { count, emptyCounters } from "../sdk/run_counters.ts";
import { SessionStatus } from "../sdk/session_status.ts";
import { registerHook } from "../sdk/handler_list.ts";
import { resolvePoint, type SingleSlot, withSnakeCase } from "../sdk/snake_case_aliases.ts";
import type { Message } from "../sdk/messages.ts";
import { type Tool, type ToolCall, ToolResult } from "../sdk/tools.ts";
import { EventRecorder } from "./hooks.ts";
import { ApprovalTimeoutError, FakeApproval, MockContextManager, MockTool } from "./mocks.ts";
import { FakeClock, withinTime } from "./clocks.ts";
import { KERNEL_LIMITS, RUN_LIMITS } from "./session.ts";

/** Options of a {@link TestCoordinator}; all are optional. */
export interface TestCoordinatorOptions extends InjectionLimits {
  /** Default `test-session`. */
  session_id?: string;
  /** Default null. */
  parent_id?: string | null;
  /** The mount plan; default: a minimal one. */
  config?: JsonObject;
  /** What the module may do; default: nothing. */
  permissions?: Permissions;
  /** Default {}. */
  session_state?: JsonObject;
  /** Default a {@link FakeClock}. */
  clock?: Clock;
  /** Default an {@link EventRecorder} with `clock`. */
  hooks?: EventRecorder;
  /** Answers approvals; default: denies all; null: no approval system. */
  approval?: FakeApproval | null;
  /** Limits that differ from the defaults of a run. They are visible to modules but not enforced. */
  limits?: Partial<ModuleLimits>;
}

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

/**
 * A coordinator that records mounts and unmounts. Every method has both spellings. The limits are not
 * enforced.
 */
export class TestCoordinator implements Coordinator {
  readonly session_id: string;
  readonly parent_id: string | null;
  readonly config: JsonObject;
  readonly permissions: GrantedPermissions;
  readonly session_state: JsonObject;
  readonly clock: Clock;
  /** Registers handlers and records events. */
  readonly hooks: EventRecorder;
  readonly limits: ModuleLimits;
  readonly cancellation: CancellationToken = new CancellationToken();
  readonly tools: Record<string, Tool> = Object.create(null);
  readonly providers: Record<string, Provider> = Object.create(null);
  /** Answers approvals; null: no approval system. */
  readonly approval: FakeApproval | null;
  /** Messages to the user, in order. */
  readonly shown: UserMessage[] = [];
  /** All mounts, in order. */
  readonly mount_history: MountRecord[] = [];
  /** All unmounts, in order. */
  readonly unmount_history: UnmountRecord[] = [];
  readonly #options: TestCoordinatorOptions;
  readonly #slots = new Map<SingleSlot, object>();
  readonly #capabilities = new Map<string, unknown>();
  readonly #contributors: { channel: string; name: string; callback: () => unknown }[] = [];
  /** Tokens of the turn's injections. */
  #injected_tokens = 0;
  #cleanups: Cleanup[] = [];
  #ids = 0;

  /** Creates a coordinator with nothing mounted. */
  constructor(options: TestCoordinatorOptions = {}) {
    this.#options = options;
    this.session_id = options.session_id ?? "test-session";
    this.parent_id = options.parent_id ?? null;
    this.config = options.config ?? { session: { orchestrator: "loop-basic", context: "context-simple" } };
    this.limits = { ...RUN_LIMITS, max_answer_bytes: KERNEL_LIMITS.max_answer_bytes, ...options.limits };
    this.permissions = { ...noPermissions(), ...options.permissions };
    this.session_state = options.session_state ?? {};
    this.clock = options.clock ?? new FakeClock();
    this.hooks = options.hooks ?? new EventRecorder(this.clock);
    this.approval = options.approval === undefined ? new FakeApproval() : options.approval;
    this.hooks.setDefaultFields({ session_id: this.session_id, parent_id: this.parent_id });
  }

  get orchestrator(): Orchestrator | null {
    return (this.#slots.get("orchestrator") as Orchestrator | undefined) ?? null; // mounted by a module
  }

  get context(): ContextManager | null {
    return (this.#slots.get("context") as ContextManager | undefined) ?? null; // mounted by a module
  }

  get injection_size_limit(): number | null {
    return this.#options.injection_size_limit ?? null;
  }

  get injection_budget_per_turn(): number | null {
    return this.#options.injection_budget_per_turn ?? null;
  }

  /**
   * Mounts an object synchronously, even if the promise is not awaited. A hook with `events` and a `handler`
   * is registered when it is mounted at `hooks`.
   *
   * @throws {TypeError} `Unknown mount point …`, `Name required for …`.
   */
  // deno-lint-ignore require-await -- its errors are rejections
  async mount(point: string, module: object, options?: string | { name?: string }): Promise<void> {
    const name = isObject(options) ? options.name : options;
    if (typeof module !== "object" && typeof module !== "function" || module === null) {
      throw new TypeError(
        `Cannot mount at "${point}": must be an object: received ${module === null ? "null" : typeof module}`,
      );
    }
    if (point === "hooks") {
      registerHook(this.hooks, module as JsonObject, name);
      this.mount_history.push({ mount_point: "hooks", module, name: name ?? null });
      return;
    }
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

  /**
   * Unmounts a module; does nothing when it is not mounted.
   *
   * @throws {TypeError} `Name required to unmount from …`, `Unknown mount point …`.
   */
  // deno-lint-ignore require-await -- its errors are rejections
  async unmount(point: string, name?: string): Promise<void> {
    const { single, many } = resolvePoint(point, name);
    if (single) this.#slots.delete(single);
    else if (!name) throw new TypeError(`Name required to unmount from ${many}`);
    else delete this[many][name];
    this.unmount_history.push({ mount_point: single ?? many, name: single ? null : name ?? null });
  }

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

  registerCapability(name: string, value: unknown): void {
    this.#capabilities.set(name, value);
  }

  getCapability(name: string): unknown {
    return this.#capabilities.get(name) ?? null;
  }

  registerContributor(channel: string, name: string, callback: () => unknown): void {
    this.#contributors.push({ channel, name, callback });
  }

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

  /** Rejects: only a {@link TestSession} runs turns, with gates and limits. */
  callTool({ name }: ToolCall): Promise<Message> {
    const fact = "a TestCoordinator runs no turn; run the loop in a TestSession";
    return Promise.reject(new PreampError("internal", `Cannot call tool "${name}": ${fact}`));
  }

  /**
   * Executes an emission or a plain hook result: stores injections in the mounted context, records messages,
   * asks {@link approval}.
   *
   * @throws {PreampError} `denied` for an injection over a limit; then nothing is injected.
   */
  async processHookResult(
    result: Emission | JsonObject,
    event: string,
    hook_name = "hook",
  ): Promise<Emission> {
    const emission = isEmission(result) ? result : await emissionOf(result, event, hook_name);
    const { admitted, tokens, violations, refusal } = admitInjections(
      emission,
      this.#injected_tokens,
      this.#options,
    );
    this.#injected_tokens = tokens;
    for (const violation of violations) await this.hooks.emit("policy:violation", violation);
    if (refusal) throw refusal;
    for (const injection of admitted) {
      if (injection.ephemeral) continue;
      await this.context?.addMessage(injectedMessage(injection, event, this.clock.now()));
    }
    this.shown.push(...emission.user_messages);
    const settled: Emission = { ...emission, injections: admitted };
    return emission.action === "ask_user" && emission.approval
      ? await this.#ask(emission.approval, settled, event)
      : settled;
  }

  async #ask(question: ApprovalQuestion, emission: Emission, event: string): Promise<Emission> {
    const { tool_name, tool_call_id, tool_input } = emission.data;
    const call = tool_name === undefined ? {} : { tool_name, tool_call_id, tool_input };
    const { prompt, hook_name, options } = question;
    const facts = { ...call, event, prompt, hook_name };
    await this.hooks.emit("approval:required", { ...facts, options, default: question.default });
    const outcome = approvalOutcome(await this.#decide(question), question);
    const { allowed, reason } = outcome;
    await this.hooks.emit(allowed ? "approval:granted" : "approval:denied", { ...facts, reason });
    return afterApproval(emission, outcome);
  }

  /**
   * Resolves to the answer; `timeout` if it is late, `deny` if the approval system fails, null without one.
   */
  async #decide(question: ApprovalQuestion): Promise<string | null> {
    if (!this.approval) return null;
    const LATE = "no answer in time";
    const wait_ms = (question.timeout ?? 300) * 1000; // the server's default timeout
    try {
      return await withinTime(this.approval.requestApproval(question), wait_ms, LATE, this.clock);
    } catch (error) {
      const late = errorName(error) === ApprovalTimeoutError.name ||
        (error instanceof Error && error.message === LATE);
      return late ? "timeout" : "deny";
    }
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

  requestCancel(immediate = false): void {
    if (immediate) this.cancellation.requestImmediate();
    else this.cancellation.requestGraceful();
  }

  resetTurn(): void {
    this.#injected_tokens = 0;
  }

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

function isEmission(value: Emission | JsonObject): value is Emission {
  return Array.isArray(value.injections) && Array.isArray(value.user_messages);
}

/** Returns the emission of a plain hook result. */
async function emissionOf(result: JsonObject, event: string, hook_name: string): Promise<Emission> {
  const handler = () => Object.keys(result).length === 0 ? null : result;
  const registered = { name: hook_name, handler, observes: false, fail_closed: true, timeout_ms: 0 };
  return await runChain([registered], event, {});
}

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
  for (const tool of [echo, fail]) coordinator.mount("tools", tool);
  coordinator.mount("context", new MockContextManager());
  return coordinator;
}

/** The name of {@link TestCoordinator} in Amplifier. */
export const MockCoordinator: typeof TestCoordinator = TestCoordinator;
