/**
 * A kernel session for tests, with a fake clock, modules that are functions in memory, ids that count up, a
 * list of entries and scripted approvals. Needs no permission.
 */
import { RunLimitGuard } from "../../src/kernel/run_limits.ts";
import type { KernelLimits } from "../../src/kernel/session/session_context.ts";
import type {
  ApprovalDecision,
  ApprovalRequest,
  DraftEntry,
  Entry,
  Host,
  OpenedModule,
} from "../../src/kernel/host.ts";
import type { Outcome } from "../../src/kernel/session/outcome.ts";
import { Session, type SessionOptions } from "../../src/kernel/session/session.ts";
import { toPlain } from "../../src/sdk/json.ts";
import { mountLoop } from "../../src/sdk/loop/mount_loop.ts";
import { FakeClock } from "../../src/testing/clocks.ts";
import { MockContextManager } from "../../src/testing/mocks.ts";
import { MockProvider, type ScriptStep } from "../../src/testing/mock_provider.ts";
import type {
  Coordinator,
  HookHandler,
  HookOptions,
  JsonObject,
  Message,
  Module,
  ModuleSpec,
  ModuleType,
  MountPlan,
  Prompt,
  Provider,
  RunLimits,
  Tool,
} from "../../src/sdk/types.ts";

/** A module in memory: its mount function, or the whole module. */
export type TestModule =
  | Module["mount"]
  | (Module & { config?: JsonObject; id?: string; instance_id?: string; required?: boolean });

/**
 * Answer to an approval: a decision, `never` (no answer in time), `unavailable` (no person can be asked), or
 * a function.
 */
export type Answer =
  | string
  | ((
    request: ApprovalRequest,
  ) => Partial<ApprovalDecision> | null | Promise<Partial<ApprovalDecision> | null>);

/** Options of {@link planOf}. */
export interface PlanOptions {
  /** Default: the loop of `loop-streaming`. */
  orchestrator?: TestModule;
  /** Default: {@link listContext}. */
  context?: TestModule;
  /**
   * Scripts of providers named `mock`, `mock2`, …, providers, or modules. Default: one that answers "done".
   */
  providers?: (readonly ScriptStep[] | Provider | TestModule)[];
  tools?: (Tool | TestModule)[];
  hooks?: TestModule[];
  /** Returns the location of an error, as a host that loads modules by URL does. */
  placeOf?: (error: unknown) => string | undefined;
  /** Ends an opened module, as the host ends its sandbox. */
  close?: () => Promise<void>;
  /** Timeout of `mount`, in seconds. */
  load_timeout_s?: number;
  system?: string;
  /** Fields of `session` in the plan. */
  session?: Partial<MountPlan["session"]>;
  /** Config of the default loop. */
  loop?: JsonObject;
}

/** Options of {@link kit}. */
export interface KitOptions extends PlanOptions {
  limits?: Partial<RunLimits>;
  kernel?: Partial<KernelLimits>;
  cost_limit_is_set?: boolean;
  /** Whether a person can raise the limits. Default: no. */
  raisable?: boolean;
  answers?: readonly Answer[];
  options?: Partial<SessionOptions>;
  /** Called for each entry; may throw, or return a promise that the session waits for. */
  record?: (entry: DraftEntry) => Promise<void> | void;
}

/** A session and its collaborators. */
export interface Kit {
  readonly session: Session;
  readonly clock: FakeClock;
  readonly run_limits: RunLimitGuard;
  /** Entries in order. */
  readonly entries: DraftEntry[];
  /**
   * Names of the entries in order, from the turn's first entry on: mounting and session:start are left out.
   */
  turn(): string[];
  /** Names of all entries in order. */
  names(): string[];
  /** Entries of one event. */
  of(event: string): DraftEntry[];
  /** Data of the entries of one event. */
  data(event: string): JsonObject[];
  /** Messages of the history, computed from the log. */
  messages(): Message[];
  /** Warnings that the host received. */
  readonly warnings: { code: string; message: string }[];
  /** Approval requests that the host received. */
  readonly asked: ApprovalRequest[];
  readonly coordinator: () => Coordinator;
  run(prompt?: Prompt): Promise<Outcome>;
}

/** Limits of the kernel in tests. */
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

/** Limits of a run in tests. */
export const LIMITS: RunLimits = {
  max_iterations: 50,
  max_tool_calls: 200,
  max_total_tokens: 1_000_000,
  max_cost_usd: "5",
  max_duration_s: 600,
};

/** Creates a session. Nothing is mounted before `run` or `session.initialize()`. */
export function kit(options: KitOptions = {}): Kit {
  const clock = new FakeClock();
  const { plan, open } = planOf(options, clock);
  let coordinator: Coordinator | null = null;
  const entries: DraftEntry[] = [];
  const warnings: Kit["warnings"] = [];
  const asked: ApprovalRequest[] = [];
  const counts = new Map<string, number>();
  const host: Host = {
    clock,
    newId(prefix) {
      const count = (counts.get(prefix) ?? 0) + 1;
      counts.set(prefix, count);
      return `${prefix}_${count}`;
    },
    open(spec) {
      const opened = open(spec);
      const mount: Module["mount"] = (received, config) => {
        coordinator ??= received;
        return opened.module.mount(received, config);
      };
      return { ...opened, module: { ...opened.module, mount } };
    },
    record(entry) {
      const stored = options.record?.(entry);
      const { seq: _seq, ts: _ts, run_id: _run_id, ...draft } = entry as Entry; // the log sets these three
      entries.push(toPlain(draft) as unknown as DraftEntry);
      return stored;
    },
    ask: (request, signal) => {
      const answer = options.answers?.[Math.min(asked.length, options.answers.length - 1)] ?? "unavailable";
      asked.push(request);
      return answerOf(answer, request, signal);
    },
    accept() {},
    mayRaise: () => options.raisable ?? false,
    warn: (code, message) => void warnings.push({ code, message }),
  };
  const run_limits = new RunLimitGuard({
    limits: { ...LIMITS, ...options.limits },
    cost_limit_is_set: options.cost_limit_is_set ?? false,
    clock,
  });
  const session = new Session({
    plan,
    host,
    run_limits,
    limits: { ...KERNEL_LIMITS, ...options.kernel },
    session_id: "ses_1",
    ...options.options,
  });
  const of = (event: string) => entries.filter((entry) => entry.event === event);
  return {
    session,
    clock,
    run_limits,
    entries,
    warnings,
    asked,
    of,
    names: () => entries.map((entry) => entry.event),
    turn: () => entries.filter((entry) => entry.turn_id !== undefined).map((entry) => entry.event),
    data: (event) => of(event).map((entry) => entry.data),
    messages: () => history(entries),
    coordinator: () => coordinator!,
    run: (prompt = "hello") => session.execute(prompt),
  };
}

/** A plan with modules in memory. */
export interface PlanInMemory {
  readonly plan: MountPlan;
  open(spec: ModuleSpec): OpenedModule;
}

/** Creates a plan with modules in memory; its scripted providers use `clock`. */
export function planOf(options: PlanOptions, clock: FakeClock): PlanInMemory {
  const modules = new Map<ModuleSpec, Module>();
  const spec = (type: ModuleType, path: string, id: string, module: TestModule): ModuleSpec => {
    const whole = typeof module === "function" ? { mount: module } : module;
    const made: ModuleSpec = {
      module: "id" in whole && whole.id ? whole.id : id,
      type,
      source: { kind: "builtin" },
      config: ("config" in whole ? whole.config : undefined) ?? {},
      path,
      ...("instance_id" in whole && whole.instance_id ? { instance_id: whole.instance_id } : {}),
      ...("required" in whole && whole.required !== undefined ? { required: whole.required } : {}),
    };
    modules.set(made, whole);
    return made;
  };
  const loop: TestModule = {
    id: "loop-streaming",
    ...(options.loop === undefined ? {} : { config: options.loop }),
    mount: (coordinator, config) =>
      mountLoop(coordinator, config, {
        orchestrator: "loop-streaming",
        steering: true,
        max_parallel_tools: 8,
      }),
  };
  const plan: MountPlan = {
    session: {
      orchestrator: spec("orchestrator", "session.orchestrator", "loop-test", options.orchestrator ?? loop),
      context: spec("context", "session.context", "context-test", options.context ?? listContext),
      ...options.session,
    },
    providers: (options.providers ?? [["done"]]).map((provided, index) =>
      spec("provider", `providers[${index}]`, `provider-${index}`, asProvider(provided, index, clock))
    ),
    tools: (options.tools ?? []).map((provided, index) =>
      spec("tool", `tools[${index}]`, `tool-${index}`, asTool(provided))
    ),
    hooks: (options.hooks ?? []).map((provided, index) =>
      spec("hook", `hooks[${index}]`, `hook-${index}`, provided)
    ),
    agents: {},
    limits: {},
    ...(options.system === undefined ? {} : { system: options.system }),
  };
  const open = (opened: ModuleSpec): OpenedModule => ({
    module: modules.get(opened)!,
    config: opened.config,
    isolation: "inline",
    integrity: null,
    ...(options.load_timeout_s === undefined ? {} : { load_timeout_s: options.load_timeout_s }),
    ...(options.placeOf ? { placeOf: options.placeOf } : {}),
    ...(options.close ? { close: options.close } : {}),
  });
  return { plan, open };
}

/** Computes the history from the log. */
function history(entries: readonly DraftEntry[]): Message[] {
  let messages: Message[] = [];
  for (const { event, data } of entries) {
    if (event === "context:message") messages.push(data.message as Message);
    else if (event === "context:reset") messages = [...data.messages as Message[]];
  }
  return messages;
}

async function answerOf(
  answer: Answer,
  request: ApprovalRequest,
  signal: AbortSignal,
): Promise<ApprovalDecision | null> {
  if (answer === "unavailable") return null;
  if (answer === "never") {
    return await new Promise((resolve) => {
      const give = () =>
        resolve(
          signal.reason === "timeout"
            ? { decision: "timeout", reason: null, decided_by: null }
            : { decision: "deny", reason: String(signal.reason), decided_by: null },
        );
      if (signal.aborted) give();
      else signal.addEventListener("abort", give, { once: true });
    });
  }
  if (typeof answer === "string") return { decision: answer, reason: null, decided_by: "tester" };
  const decision = await answer(request);
  return decision && { decision: "deny", reason: null, decided_by: "tester", ...decision };
}

/** Mounts a context that stores its messages in a list. */
export async function listContext(coordinator: Coordinator): Promise<void> {
  await coordinator.mount("context", new MockContextManager());
}

function asProvider(
  provided: readonly ScriptStep[] | Provider | TestModule,
  index: number,
  clock: FakeClock,
): TestModule {
  if (typeof provided === "function" || "mount" in provided) return provided as TestModule;
  const name = index === 0 ? "mock" : `mock${index + 1}`;
  const provider = Array.isArray(provided)
    ? new MockProvider({ name, responses: provided, clock })
    : provided as Provider; // not a script and not a module
  return async (coordinator) => void await coordinator.mount("providers", provider);
}

function asTool(provided: Tool | TestModule): TestModule {
  if (typeof provided === "function" || "mount" in provided) return provided;
  return async (coordinator) => void await coordinator.mount("tools", provided);
}

/** Creates a tool. */
export function tool(
  name: string,
  execute: Tool["execute"] = () => Promise.resolve("ok"),
  more: Partial<Tool> = {},
): Tool {
  return { name, description: `The tool ${name}`, execute, ...more };
}

/** Creates a hook module that registers one handler. */
export function hook(event: string, handler: HookHandler, options: HookOptions = {}): TestModule {
  return (coordinator) => {
    coordinator.hooks.register(event, handler, { name: "test-hook", ...options });
  };
}

/** Creates a script step with tool calls, `[name, arguments, id]` each; default ids are c1, c2, … */
export function calls(...tool_calls: [name: string, args?: JsonObject, id?: string][]): ScriptStep {
  return {
    tool_calls: tool_calls.map(([name, args = {}, id], index) => ({
      name,
      arguments: args,
      id: id ?? `c${index + 1}`,
    })),
  };
}

/** Resolves once `condition` returns true; rejects after 200 turns of the event loop. */
export async function until(condition: () => boolean): Promise<void> {
  for (let turns = 0; turns < 200; turns++) {
    if (condition()) return;
    await nextTurn();
  }
  throw new Error("the condition stayed false for 200 turns");
}

/** Resolves after one turn of the event loop, without a timer. */
export function nextTurn(): Promise<void> {
  return new FakeClock().advance(0);
}

export const contents = (messages: readonly Message[]) =>
  messages.map((
    { role, content },
  ) => [
    role,
    typeof content === "string" ? content : content.map((block) => block.text ?? block.type).join(),
  ]);

/** Creates a module that passes its coordinator to the test. */
export function spy(): { module: TestModule; coordinator: () => Coordinator } {
  let given: Coordinator | null = null;
  return {
    module: async (coordinator) => {
      given = coordinator;
      await coordinator.mount("tools", tool("spy"));
    },
    coordinator: () => given!,
  };
}
