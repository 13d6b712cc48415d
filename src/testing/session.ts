/**
 * A session in memory: the kernel's own, with its guards, gates and limits. Its modules are objects, its
 * clock is a test's, its answers to approvals are scripted, and its log is a list.
 */
import type {
  ApprovalDecision,
  ApprovalRequest,
  DraftEntry,
  Entry,
  Host,
  HostClock,
  LimitQuestion,
  OpenedModule,
} from "../kernel/host.ts";
import { RunLimitGuard } from "../kernel/run_limits.ts";
import { Session, type SessionOptions } from "../kernel/session.ts";
import type { KernelLimits } from "../kernel/session_context.ts";
import {
  type Clock,
  type ContextManager,
  type Module,
  type ModuleType,
  noPermissions,
  type Orchestrator,
  type Permissions,
  type RunLimits,
} from "../sdk/contracts.ts";
import type { HookDefinition } from "../sdk/define.ts";
import { allows, type InjectionLimits } from "../sdk/hook_outcomes.ts";
import { type JsonObject, toPlain } from "../sdk/json.ts";
import { mountLoop } from "../sdk/loop/mount_loop.ts";
import { formatDecimal, parseDecimal } from "../sdk/money.ts";
import type { Message, Prompt } from "../sdk/messages.ts";
import { type ModuleSpec, type MountPlan, POINT } from "../sdk/plan.ts";
import type { Provider } from "../sdk/providers.ts";
import type { Tool } from "../sdk/tools.ts";
import { FakeClock } from "./clocks.ts";
import { MockProvider, type ScriptStep } from "./mock_provider.ts";
import { FakeApproval, MockContextManager } from "./mocks.ts";

/** A module with the config that it is mounted with, and other fields of its entry in a plan. */
export interface ConfiguredModule extends Module {
  /** Id in the plan; default such as `tool-0`. */
  id?: string;
  /** Default {}. */
  config?: JsonObject;
  /** Id of this instance in the plan. */
  instance_id?: string;
  /** Whether the session fails when the module does; default: only an orchestrator and a context. */
  required?: boolean;
}

/** A module of a session: what it mounts, the module, or its `mount`. */
export type TestModule<Part> = Part | ConfiguredModule | Module["mount"];

/** Modules of a session; all are optional. */
export interface TestModules {
  /** Default: the loop of `loop-streaming`. */
  orchestrator?: TestModule<Orchestrator>;
  /** Default: a {@link MockContextManager}. */
  context?: TestModule<ContextManager>;
  /** Providers; a list of steps is a {@link MockProvider}. Default: one that answers `done`. */
  providers?: readonly (TestModule<Provider> | readonly ScriptStep[])[];
  /** Default: none. */
  tools?: readonly TestModule<Tool>[];
  /** Default: none. */
  hooks?: readonly TestModule<HookDefinition>[];
  /** First system message; default: none. */
  system?: string;
}

/** Options of a {@link TestSession}; all are optional. */
export interface TestSessionOptions extends TestModules, InjectionLimits {
  /** Limits that differ from the defaults of a run; they are enforced. */
  limits?: Partial<RunLimits>;
  /**
   * Answers approvals; default: denies all; null: no person can be asked. With `on_limit: "pause"` it is
   * asked about limits too, and `allow` doubles a limit.
   */
  approval?: FakeApproval | null;
  /** Default a {@link FakeClock}. */
  clock?: Clock;
  /** What the modules may do; default: nothing. */
  permissions?: Permissions;
  /** The plan as its author wrote it, which modules read as `coordinator.config`; default {}. */
  config?: JsonObject;
}

/** How a turn ended. */
export interface TurnOutcome {
  /** The status of its run. */
  status: "completed" | "incomplete" | "denied" | "cancelled" | "failed";
  /** Such as `end_turn`, `limit:max_tool_calls` or `denied`. */
  stop_reason: string;
  /** The text that the loop returned. */
  output_text: string;
  /** Code and message of a failure or a denial, else null. */
  error: { code: string; message: string } | null;
}

/** Default limits of a run. */
export const RUN_LIMITS: RunLimits = {
  max_iterations: 50,
  max_tool_calls: 200,
  max_total_tokens: 1_000_000,
  max_cost_usd: "5",
  max_duration_s: 600,
};

/** Default limits of a server. */
export const KERNEL_LIMITS: KernelLimits = {
  tool_timeout_s: 60,
  max_tool_result_bytes: 131_072,
  max_tool_image_bytes: 10_485_760,
  max_answer_tool_calls: 128,
  max_answer_blocks: 2_000,
  max_answer_bytes: 16_777_216,
  max_hooks: 256,
  cleanup_timeout_s: 10,
  hook_timeout_s: 30,
  approval_timeout: 300,
  max_session_state_bytes: 65_536,
};

/** Replaces the loop of an open session. */
export let replaceLoop: (session: TestSession, change: (loop: Orchestrator) => Orchestrator) => void;

/**
 * Runs turns as a server does: a denied prompt, request or call does not happen, a reached limit ends the
 * turn, and each event is in the log once.
 *
 * @example A loop that meets a limit
 * ```ts
 * import assert from "node:assert/strict";
 * import { MockTool, TestSession } from "preamp/testing";
 *
 * const session = new TestSession({
 *   providers: [[{ tool_calls: [{ name: "clock" }, { name: "clock" }] }, "It is noon."]],
 *   tools: [new MockTool("clock", "12:00")],
 *   limits: { max_tool_calls: 1 },
 * });
 * const { status, stop_reason } = await session.run("What time is it?");
 * assert.deepEqual([status, stop_reason], ["incomplete", "limit:max_tool_calls"]);
 * assert.equal(session.getEvents("tool:pre").length, 2);
 * ```
 */
export class TestSession {
  readonly #session: Session;
  readonly #host: MemoryHost;

  /** Creates a session; its modules are mounted by the first turn. */
  constructor(options: TestSessionOptions = {}) {
    const { approval = new FakeApproval(), permissions, config, limits } = options;
    const clock = withTimers(options.clock ?? new FakeClock());
    const { plan, open } = planOf({
      ...options,
      opened: { permissions: { ...noPermissions(), ...permissions } },
    }, clock);
    for (
      const key of ["injection_size_limit", "injection_budget_per_turn", "injection_budget_mode"] as const
    ) {
      if (options[key] !== undefined) Object.assign(plan.session, { [key]: options[key] });
    }
    const run_limits = new RunLimitGuard({ limits: { ...RUN_LIMITS, ...limits }, clock });
    this.#host = new MemoryHost(clock, open, async (request, signal) => {
      const decision = await answer(approval, request, signal, clock);
      if (decision && request.limit && allows(decision.decision, [])) {
        run_limits.raise(doubled(request.limit));
      }
      return decision;
    });
    this.#host.may_raise = approval !== null;
    const written = config === undefined ? {} : { written: config };
    this.#session = createSession(plan, this.#host, run_limits, written);
  }

  /**
   * Mounts the modules, unless that was done.
   *
   * @throws {PreampError} `module_load_failed` for a loop, a context or a required module that is not
   * mounted, and without a provider.
   */
  open(): Promise<void> {
    return this.#session.initialize();
  }

  /** Runs one turn to its end; one at a time. @throws {PreampError} an error of {@link open}. */
  async run(prompt: Prompt = "Hello"): Promise<TurnOutcome> {
    const { status, stop_reason, output_text, error } = await this.#session.execute(prompt);
    return { status, stop_reason, output_text, error };
  }

  /** Cancels the running turn: after its running tools, or at once. */
  cancel(immediate = false): Promise<void> {
    return this.#session.cancel(immediate ? "immediate" : "graceful");
  }

  /** Ends the session: runs the cleanups of its modules. */
  close(): Promise<void> {
    return this.#session.cleanup("completed");
  }

  /** Returns the events of the log as `[event, data]`; with an argument, only those of that event. */
  getEvents(event?: string): [event: string, data: JsonObject][] {
    return this.#host.entries
      .filter((entry) => event === undefined || entry.event === event)
      .map((entry) => [entry.event, entry.data]);
  }

  /** The history, read from the log. */
  get messages(): Message[] {
    return this.#host.messages;
  }

  /** Problems that have no event, such as a handler that failed. */
  get warnings(): string[] {
    return this.#host.warnings.map(({ message }) => message);
  }

  static {
    replaceLoop = (session, change) => {
      const { mounts } = session.#session;
      mounts.orchestrator &&= change(mounts.orchestrator);
    };
  }
}

/** Creates a kernel session on a host in memory. */
export function createSession(
  plan: MountPlan,
  host: MemoryHost,
  run_limits: RunLimitGuard,
  options: Partial<SessionOptions> = {},
): Session {
  return new Session({ plan, host, run_limits, limits: KERNEL_LIMITS, session_id: "ses_1", ...options });
}

/** Returns a limit that is raised by as much again, as the question says. */
function doubled({ name, value }: LimitQuestion): Partial<RunLimits> {
  return { [name]: typeof value === "number" ? value * 2 : formatDecimal(parseDecimal(value) * 2n) };
}

/** Answers a question, or resolves to null when no person can be asked. */
type Answerer = (request: ApprovalRequest, signal: AbortSignal) => Promise<ApprovalDecision | null>;

/** The environment of a session in memory; ids count up. */
export class MemoryHost implements Host {
  /** The log. */
  readonly entries: DraftEntry[] = [];
  readonly warnings: { code: string; message: string }[] = [];
  /** All questions, in order. */
  readonly asked: ApprovalRequest[] = [];
  /** Whether a person can raise the limits. */
  may_raise = false;
  readonly #ids = new Map<string, number>();

  constructor(
    readonly clock: HostClock,
    readonly open: Host["open"],
    readonly answer: Answerer,
    /** Called before an entry is appended; may throw, or return a promise that the session waits for. */
    readonly onRecord: (entry: DraftEntry) => Promise<void> | void = () => {},
  ) {}

  newId(prefix: string): string {
    const count = (this.#ids.get(prefix) ?? 0) + 1;
    this.#ids.set(prefix, count);
    return `${prefix}_${count}`;
  }

  record(entry: DraftEntry): Promise<void> | void {
    const stored = this.onRecord(entry);
    const { seq: _seq, ts: _ts, run_id: _run_id, ...draft } = entry as Entry; // a log sets these three
    this.entries.push(toPlain(draft) as unknown as DraftEntry);
    return stored;
  }

  ask(request: ApprovalRequest, signal: AbortSignal): Promise<ApprovalDecision | null> {
    this.asked.push(request);
    return this.answer(request, signal);
  }

  accept(): void {}

  mayRaise(): boolean {
    return this.may_raise;
  }

  warn(code: string, message: string): void {
    this.warnings.push({ code, message });
  }

  /** The history, computed from the log. */
  get messages(): Message[] {
    let messages: Message[] = [];
    for (const { event, data } of this.entries) {
      if (event === "context:message") messages.push(data.message as Message);
      else if (event === "context:reset") messages = [...data.messages as Message[]];
    }
    return messages;
  }
}

/** Resolves to the answer of a scripted approval system; one that fails denies. */
async function answer(
  approval: FakeApproval | null,
  { prompt, options, default: fallback, hook_name, expires_at }: ApprovalRequest,
  signal: AbortSignal,
  clock: Clock,
): Promise<ApprovalDecision | null> {
  if (approval === null) return null;
  const timeout = (Date.parse(expires_at) - clock.now()) / 1000;
  const question = { prompt, options, timeout, default: fallback, hook_name: hook_name ?? "" };
  const ended = Promise.withResolvers<string>();
  const end = () => ended.resolve(signal.reason === "timeout" ? "timeout" : "deny");
  signal.addEventListener("abort", end, { once: true });
  const answered = approval.requestApproval(question).catch((error) =>
    error?.name === "ApprovalTimeoutError" ? "timeout" : "deny"
  );
  const decision = await Promise.race([answered, ended.promise]);
  return { decision, reason: null, decided_by: decision === "timeout" ? null : "tester" };
}

function withTimers(clock: Clock): HostClock {
  if ("later" in clock) return clock as HostClock;
  return {
    now: () => clock.now(),
    monotonic: () => clock.monotonic(),
    after: (ms, signal) => clock.after(ms, signal),
    later(ms, then) {
      const stopped = new AbortController();
      clock.after(ms, stopped.signal).then(then, () => {}); // stopped
      return () => stopped.abort();
    },
  };
}

/** Options of {@link planOf}. */
export interface PlanOptions extends TestModules {
  /** Fields of `session` in the plan. */
  session?: Partial<MountPlan["session"]>;
  /** Config of the default loop. */
  loop?: JsonObject;
  /** Fields of each opened module. */
  opened?: Partial<OpenedModule>;
}

/** A plan with modules in memory. */
export interface PlanInMemory {
  readonly plan: MountPlan;
  open(spec: ModuleSpec): OpenedModule;
}

/** Creates a plan with modules in memory; its scripted providers use `clock`. */
export function planOf(options: PlanOptions, clock: Clock): PlanInMemory {
  const modules = new Map<ModuleSpec, Module>();
  const spec = (type: ModuleType, path: string, id: string, part: TestModule<object>): ModuleSpec => {
    const whole = asModule(type, part);
    const { instance_id, required } = whole;
    const made: ModuleSpec = {
      module: whole.id || id,
      type,
      source: { kind: "builtin" },
      config: whole.config ?? {},
      path,
      ...(instance_id ? { instance_id } : {}),
      ...(required === undefined ? {} : { required }),
    };
    modules.set(made, whole);
    return made;
  };
  const listed = (type: ModuleType, parts: readonly TestModule<object>[] = []) =>
    parts.map((part, index) => spec(type, `${type}s[${index}]`, `${type}-${index}`, part));
  const providers = (options.providers ?? [["done"]]).map((part, index) =>
    Array.isArray(part)
      ? new MockProvider({ name: index === 0 ? "mock" : `mock${index + 1}`, responses: part, clock })
      : part as TestModule<Provider> // not a script
  );
  const loop: ConfiguredModule = {
    id: "loop-streaming",
    config: options.loop ?? {},
    mount: (coordinator, config) =>
      mountLoop(coordinator, config, {
        orchestrator: "loop-streaming",
        steering: true,
        max_parallel_tools: 8,
      }),
  };
  const context = options.context ?? (() => new MockContextManager());
  const plan: MountPlan = {
    session: {
      orchestrator: spec("orchestrator", "session.orchestrator", "loop-test", options.orchestrator ?? loop),
      context: spec("context", "session.context", "context-test", context),
      ...options.session,
    },
    providers: listed("provider", providers),
    tools: listed("tool", options.tools),
    hooks: listed("hook", options.hooks),
    agents: {},
    limits: {},
    ...(options.system === undefined ? {} : { system: options.system }),
  };
  const open = (opened: ModuleSpec): OpenedModule => ({
    module: modules.get(opened)!, // a spec of this plan
    config: opened.config,
    isolation: "inline",
    integrity: null,
    ...options.opened,
  });
  return { plan, open };
}

function asModule(type: ModuleType, part: TestModule<object>): ConfiguredModule {
  if (typeof part === "function") return { mount: part as Module["mount"] };
  if ("mount" in part) return part;
  return { mount: (coordinator) => coordinator.mount(POINT[type], part) };
}
