/** Runs with sub-agents for tests: real plans and policy, a clock that stands still, replaceable modules. */
import { LazyLoader, LazySandbox } from "../../src/app/lazy_loader_and_sandbox.ts";
import { SourceOverrides } from "../../src/app/source_overrides.ts";
import { createModuleTable } from "../../src/app/module_table.ts";
import { NamedPlans } from "../../src/app/named_plans.ts";
import { Plans } from "../../src/app/plan_service.ts";
import type { Entry } from "../../src/kernel/host.ts";
import type { PolicyLimits } from "../../src/policy/limits.ts";
import { defaultPolicy } from "../../src/policy/settings.ts";
import { Redactor } from "../../src/policy/redact.ts";
import type { RunnablePlan } from "../../src/runs/ports.ts";
import { RunService } from "../../src/runs/service.ts";
import type { Run, RunHandle } from "../../src/runs/types.ts";
import { FakeClock } from "../../src/testing/clocks.ts";
import type { Store } from "../../src/store/store.ts";
import type { JsonObject, Module } from "../../src/sdk/types.ts";
import { MemoryStore } from "../../src/store/memory.ts";
import { CALLER } from "./runs.ts";

export { CALLER } from "./runs.ts";

/** Options of {@link agentsKit}. */
export interface AgentsKitOptions {
  limits?: Partial<PolicyLimits>;
  /** Replacements of built-in modules, by id. */
  modules?: Record<string, Module["mount"]>;
  /** Awaited before a sub-agent's plan is ready, like a download. */
  fetching?: Promise<void>;
  /** Wraps the in-memory store. */
  store?: (memory: MemoryStore) => Store;
  /** Shares time and store with another kit. */
  beside?: AgentsKit;
}

/** A run service and its observers. */
export interface AgentsKit {
  readonly runs: RunService;
  readonly clock: PlanClock;
  readonly memory: MemoryStore;
  /** What the runs have written to the process log. */
  readonly logs: { event: string }[];
  start(plan: JsonObject, more?: JsonObject): Promise<RunHandle>;
  /** Runs a plan to its end. */
  run(plan: JsonObject, more?: JsonObject): Promise<{ run: Run; entries: Entry[] }>;
  entries(run_id: string): Promise<Entry[]>;
  /** Resolves to an entry once it is in the log. */
  until(run_id: string, holds: (entry: Entry) => boolean): Promise<Entry>;
}

/**
 * A clock that stands still while a plan is prepared: its hash is computed in another thread, in real time.
 */
class PlanClock extends FakeClock {
  readonly #preparing = new Set<Promise<unknown>>();

  /** Resolves to the result of `work`; the clock does not advance before. */
  async standStill<T>(work: Promise<T>): Promise<T> {
    this.#preparing.add(work);
    try {
      return await work;
    } finally {
      this.#preparing.delete(work);
    }
  }

  override async advance(ms: number): Promise<void> {
    await Promise.allSettled(this.#preparing);
    await super.advance(ms);
  }
}

/** Creates a run service over an in-memory store. */
export function agentsKit(options: AgentsKitOptions = {}): AgentsKit {
  const clock = options.beside?.clock ?? new PlanClock();
  const memory = options.beside?.memory ?? new MemoryStore({ now: () => clock.now() });
  const suffix = options.beside ? "b" : "";
  const policy = defaultPolicy();
  Object.assign(policy.limits, options.limits);
  const loading = new LazyLoader({ cache_dir: null });
  const plans = new Plans({
    policy,
    named: new NamedPlans([]),
    modules: createModuleTable(),
    env: () => undefined,
    loading,
    sandboxing: new LazySandbox({ policy, log() {} }),
    sources: new SourceOverrides([], "none"),
  });
  const counts = new Map<string, number>();
  const logs: AgentsKit["logs"] = [];
  const runs = new RunService({
    store: options.store?.(memory) ?? memory,
    clock,
    limitsOf: (caller) => plans.limitsOf(caller),
    newId(prefix) {
      const count = (counts.get(prefix) ?? 0) + 1;
      counts.set(prefix, count);
      return `${prefix}_${count}${suffix}`;
    },
    ready: async (request, caller, base_url) =>
      withModules(await clock.standStill(plans.ready(request, caller, base_url)), clock, options),
    secrets: () => new Redactor(),
    log: (_level, event) => void logs.push({ event }),
  });
  const entries = (run_id: string) =>
    runs.events(CALLER, run_id, { after: 0, limit: Number.MAX_SAFE_INTEGER });
  const start = (plan: JsonObject, more: JsonObject = {}) =>
    runs.create({ prompt: "go", plan, ...more }, CALLER);
  return {
    runs,
    clock,
    memory,
    logs,
    start,
    entries,
    async run(plan, more) {
      const run = await (await start(plan, more)).settled("end");
      return { run, entries: await entries(run.id) };
    },
    async until(run_id, holds) {
      for await (const page of runs.follow(CALLER, run_id, {})) {
        const found = page.find(holds);
        if (found) return found;
      }
      throw new Error("the entry never came");
    },
  };
}

function withModules(ready: RunnablePlan, clock: PlanClock, options: AgentsKitOptions): RunnablePlan {
  const { modules = {}, fetching } = options;
  const { agents } = ready;
  return {
    ...ready,
    registerSecrets: (sink) => ready.registerSecrets(sink), // a method of a class, which the copy has not
    async open(spec, secrets, warn) {
      const opened = await ready.open(spec, secrets, warn);
      const mount = modules[spec.module];
      return mount ? { ...opened, module: { mount } } : opened;
    },
    ...(agents
      ? {
        agents: {
          ...agents,
          async child(written) {
            await fetching;
            return withModules(await clock.standStill(agents.child(written)), clock, options);
          },
        },
      }
      : {}),
  };
}

/** Returns the spec of a scripted provider. */
export function script(...responses: (JsonObject | string)[]): JsonObject {
  return { module: "provider-mock", config: { responses } };
}

/** Returns a script entry that calls `task`. */
export function tasks(...inputs: JsonObject[]): JsonObject {
  return { tool_calls: inputs.map((input) => ({ name: "task", arguments: input })) };
}

/** Returns a script entry that calls `calculator`. */
export function sum(expression = "1+1"): JsonObject {
  return { tool_calls: [{ name: "calculator", arguments: { expression } }] };
}

/** Returns a plan whose main session follows a script and may spawn these agents. */
export function planOf(
  responses: (JsonObject | string)[],
  agents: Record<string, JsonObject> = {},
  more: JsonObject = {},
): JsonObject {
  return {
    session: { orchestrator: "loop-streaming", context: "context-simple" },
    providers: [script(...responses)],
    tools: ["tool-task", "tool-calculator"],
    agents,
    ...more,
  };
}

/** Returns the recorded results of the calls of `task`, in order. */
export function resultsOf(entries: readonly Entry[]): TaskResult[] {
  return entries.filter(({ event, data }) => event === "tool:post" && data.tool_name === "task")
    .map(({ data }) => data.result as unknown as TaskResult);
}

/** A result of `task`. */
export interface TaskResult {
  success: boolean;
  output: JsonObject & { response?: string; stop_reason?: string };
  error: { type: string; message: string; session_id?: string } | null;
}

/** Returns the names of the entries that are not deltas. */
export function names(entries: readonly Entry[]): string[] {
  return entries.map(({ event }) => event).filter((event) => event !== "content_block:delta");
}

/** Returns the entries of one session. */
export function sessionOf(entries: readonly Entry[], session_id: string): Entry[] {
  return entries.filter((entry) => entry.session_id === session_id);
}
