/**
 * A kernel session for tests, with a fake clock, modules that are functions in memory, ids that count up, a
 * list of entries and scripted approvals. Needs no permission.
 */
import { RunLimitGuard } from "../../src/kernel/run_limits.ts";
import type { KernelLimits } from "../../src/kernel/session_context.ts";
import type { ApprovalDecision, ApprovalRequest, DraftEntry } from "../../src/kernel/host.ts";
import type { Outcome } from "../../src/kernel/outcome.ts";
import type { Session, SessionOptions } from "../../src/kernel/session.ts";
import { FakeClock } from "../../src/testing/clocks.ts";
import { MockContextManager } from "../../src/testing/mocks.ts";
import type { ScriptStep } from "../../src/testing/mock_provider.ts";
import {
  type ConfiguredModule,
  createSession,
  KERNEL_LIMITS,
  MemoryHost,
  planOf,
  type PlanOptions,
  RUN_LIMITS,
} from "../../src/testing/session.ts";
import type {
  Coordinator,
  HookHandler,
  HookOptions,
  JsonObject,
  Message,
  Module,
  Prompt,
  RunLimits,
  Tool,
} from "../../src/sdk/types.ts";

/** A module in memory: its mount function, or the whole module. */
export type TestModule = ConfiguredModule | Module["mount"];

/**
 * Answer to an approval: a decision, `never` (no answer in time), `unavailable` (no person can be asked), or
 * a function.
 */
export type Answer =
  | string
  | ((
    request: ApprovalRequest,
  ) => Partial<ApprovalDecision> | null | Promise<Partial<ApprovalDecision> | null>);

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

/** Creates a session. Nothing is mounted before `run` or `session.initialize()`. */
export function kit(options: KitOptions = {}): Kit {
  const clock = new FakeClock();
  const { plan, open } = planOf(options, clock);
  let coordinator: Coordinator | null = null;
  const opening: typeof open = (spec) => {
    const opened = open(spec);
    const mount: Module["mount"] = (received, config) => {
      coordinator ??= received;
      return opened.module.mount(received, config);
    };
    return { ...opened, module: { ...opened.module, mount } };
  };
  const host: MemoryHost = new MemoryHost(clock, opening, (request, signal) => {
    const { answers } = options;
    const answer = answers?.[Math.min(host.asked.length, answers.length) - 1] ?? "unavailable";
    return answerOf(answer, request, signal);
  }, options.record);
  host.may_raise = options.raisable ?? false;
  const { entries, warnings, asked } = host;
  const run_limits = new RunLimitGuard({
    limits: { ...RUN_LIMITS, ...options.limits },
    cost_limit_is_set: options.cost_limit_is_set ?? false,
    clock,
  });
  const limits = { ...KERNEL_LIMITS, ...options.kernel };
  const session = createSession(plan, host, run_limits, { limits, ...options.options });
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
    messages: () => host.messages,
    coordinator: () => coordinator!,
    run: (prompt = "hello") => session.execute(prompt),
  };
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
