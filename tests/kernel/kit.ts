/**
 * A kernel session for tests: modules are mount functions in memory, time stands still, ids count up, entries are kept in a
 * list, and a person answers by script. Needs no permission.
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
import { FakeClock } from "../../src/sdk/testing/fake_clock.ts";
import { MockContextManager } from "../../src/sdk/testing/mock_context.ts";
import { MockProvider, type ScriptStep } from "../../src/sdk/testing/mock_provider.ts";
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

/** A module of a plan in memory: its mount function, or all of it. */
export type TestModule =
  | Module["mount"]
  | (Module & { config?: JsonObject; id?: string; instance_id?: string; required?: boolean });

/** What a person does when asked: a decision, `never` (no answer), `nobody` (there is nobody to ask), or a function. */
export type Answer =
  | string
  | ((
    request: ApprovalRequest,
  ) => Partial<ApprovalDecision> | null | Promise<Partial<ApprovalDecision> | null>);

/** What a plan is made of. */
export interface PlanOptions {
  /** Default: the loop of `loop-streaming`. */
  orchestrator?: TestModule;
  /** Default: a list. */
  context?: TestModule;
  /** Scripts of providers named `mock`, `mock2`, …, providers, or modules. Default: one that says "done". */
  providers?: (readonly ScriptStep[] | Provider | TestModule)[];
  tools?: (Tool | TestModule)[];
  hooks?: TestModule[];
  /** Where an error was thrown, as a host that loaded the modules by URL says it. */
  placeOf?: (error: unknown) => string | undefined;
  /** Seconds that a mount may take. */
  load_timeout_s?: number;
  system?: string;
  /** Fields of `session` in the plan. */
  session?: Partial<MountPlan["session"]>;
  /** Config of the default loop. */
  loop?: JsonObject;
}

/** What a session is made with. */
export interface KitOptions extends PlanOptions {
  limits?: Partial<RunLimits>;
  kernel?: Partial<KernelLimits>;
  cost_is_asked_for?: boolean;
  answers?: readonly Answer[];
  options?: Partial<SessionOptions>;
  /** Stands for the log: may fail or take its time. */
  record?: (entry: DraftEntry) => Promise<void> | void;
}

/** A session and everything around it. */
export interface Kit {
  readonly session: Session;
  readonly clock: FakeClock;
  readonly ceilings: RunLimitGuard;
  /** Entries in order. */
  readonly entries: DraftEntry[];
  /** Names of the entries in order, from the turn's first entry on: mounting and session:start are left out. */
  turn(): string[];
  /** Names of all entries in order. */
  names(): string[];
  /** Entries of one name. */
  of(event: string): DraftEntry[];
  /** Data of the entries of one name. */
  data(event: string): JsonObject[];
  /** The messages as the log tells them. */
  messages(): Message[];
  /** Codes of what the host was warned of. */
  readonly warnings: { code: string; message: string }[];
  /** What a person was asked. */
  readonly asked: ApprovalRequest[];
  readonly coordinator: () => Coordinator;
  run(prompt?: Prompt): Promise<Outcome>;
}

const KERNEL_LIMITS: KernelLimits = {
  tool_timeout_s: 60,
  max_tool_result_bytes: 131_072,
  max_answer_tool_calls: 128,
  max_answer_blocks: 2_000,
  max_hooks: 256,
  cleanup_timeout_s: 10,
  hook_timeout_s: 30,
  approval_timeout: 300,
  max_session_state_bytes: 65_536,
};

const LIMITS: RunLimits = {
  max_iterations: 50,
  max_tool_calls: 200,
  max_total_tokens: 1_000_000,
  max_cost_usd: "5",
  max_duration_s: 600,
};

/** Makes a session. Nothing is mounted before `run` or `session.initialize()`. */
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
    open(found) {
      const opened = open(found);
      const mount: Module["mount"] = (given, config) => {
        coordinator ??= given;
        return opened.module.mount(given, config);
      };
      return { ...opened, module: { ...opened.module, mount } };
    },
    record(entry) {
      const stored = options.record?.(entry);
      const { seq: _seq, ts: _ts, run_id: _run_id, ...told } = entry as Entry; // room that the log fills
      entries.push(toPlain(told) as unknown as DraftEntry);
      return stored;
    },
    ask: (request, signal) => {
      const answer = options.answers?.[Math.min(asked.length, options.answers.length - 1)] ?? "nobody";
      asked.push(request);
      return answerOf(answer, request, signal);
    },
    accept() {},
    warn: (code, message) => void warnings.push({ code, message }),
  };
  const ceilings = new RunLimitGuard({
    limits: { ...LIMITS, ...options.limits },
    cost_limit_is_set: options.cost_is_asked_for ?? false,
    clock,
  });
  const session = new Session({
    plan,
    host,
    run_limits: ceilings,
    limits: { ...KERNEL_LIMITS, ...options.kernel },
    session_id: "ses_1",
    ...options.options,
  });
  const of = (event: string) => entries.filter((entry) => entry.event === event);
  return {
    session,
    clock,
    ceilings,
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

/** A plan whose modules are in memory, and what opens them. */
export interface PlanInMemory {
  readonly plan: MountPlan;
  open(spec: ModuleSpec): OpenedModule;
}

/** Returns the plan that the options describe; its scripted providers take their time from `clock`. */
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
    mount: (given, config) =>
      mountLoop(given, config, { orchestrator: "loop-streaming", steering: true, max_parallel_tools: 8 }),
  };
  const plan: MountPlan = {
    session: {
      orchestrator: spec("orchestrator", "session.orchestrator", "loop-test", options.orchestrator ?? loop),
      context: spec("context", "session.context", "context-test", options.context ?? listContext),
      ...options.session,
    },
    providers: (options.providers ?? [["done"]]).map((one, index) =>
      spec("provider", `providers[${index}]`, `provider-${index}`, asProvider(one, index, clock))
    ),
    tools: (options.tools ?? []).map((one, index) =>
      spec("tool", `tools[${index}]`, `tool-${index}`, asTool(one))
    ),
    hooks: (options.hooks ?? []).map((one, index) => spec("hook", `hooks[${index}]`, `hook-${index}`, one)),
    agents: {},
    limits: {},
    ...(options.system === undefined ? {} : { system: options.system }),
  };
  const open = (found: ModuleSpec): OpenedModule => ({
    module: modules.get(found)!,
    config: found.config,
    isolation: "inline",
    integrity: null,
    ...(options.load_timeout_s === undefined ? {} : { load_timeout_s: options.load_timeout_s }),
    ...(options.placeOf ? { placeOf: options.placeOf } : {}),
  });
  return { plan, open };
}

/** The history as a fold of the log. */
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
  if (answer === "nobody") return null;
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

/** Mounts a context that is a list. */
export async function listContext(coordinator: Coordinator): Promise<void> {
  await coordinator.mount("context", new MockContextManager());
}

function asProvider(
  given: readonly ScriptStep[] | Provider | TestModule,
  index: number,
  clock: FakeClock,
): TestModule {
  if (typeof given === "function" || "mount" in given) return given as TestModule;
  const name = index === 0 ? "mock" : `mock${index + 1}`;
  const provider = Array.isArray(given)
    ? new MockProvider({ name, responses: given, clock })
    : given as Provider; // neither script nor module
  return async (coordinator) => void await coordinator.mount("providers", provider);
}

function asTool(given: Tool | TestModule): TestModule {
  if (typeof given === "function" || "mount" in given) return given;
  return async (coordinator) => void await coordinator.mount("tools", given);
}

/** Returns a tool: a name and what it does. */
export function tool(
  name: string,
  execute: Tool["execute"] = () => Promise.resolve("ok"),
  more: Partial<Tool> = {},
): Tool {
  return { name, description: `The tool ${name}`, execute, ...more };
}

/** Returns a hook module that registers one handler. */
export function hook(event: string, handler: HookHandler, options: HookOptions = {}): TestModule {
  return (coordinator) => {
    coordinator.hooks.register(event, handler, { name: "test-hook", ...options });
  };
}

/** Returns a script step that calls tools: `[name, arguments]` each; ids are c1, c2, … unless given. */
export function calls(...wanted: [name: string, args?: JsonObject, id?: string][]): ScriptStep {
  return {
    tool_calls: wanted.map(([name, args = {}, id], index) => ({
      name,
      arguments: args,
      id: id ?? `c${index + 1}`,
    })),
  };
}

/** Resolves once `condition` holds, giving everything that can run its turn; fails after 200 turns. */
export async function until(condition: () => boolean): Promise<void> {
  for (let turns = 0; turns < 200; turns++) {
    if (condition()) return;
    await nextTurn();
  }
  throw new Error("the condition never held");
}

/** Resolves after one turn of the event loop, without a timer. */
export function nextTurn(): Promise<void> {
  return new FakeClock().advance(0);
}
