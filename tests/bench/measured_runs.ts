/** Whole runs in this process: the runtime over a store in memory, with limits no bench reaches. */
import { createRuntime } from "../../src/app/runtime.ts";
import type { Entry } from "../../src/kernel/host.ts";
import { defaultPolicy } from "../../src/policy/policy.ts";
import type { Caller, Run } from "../../src/runs/types.ts";
import type { JsonObject } from "../../src/sdk/types.ts";

/** A runtime that a bench may run in. */
export interface MeasuredRuns extends AsyncDisposable {
  /** Runs one prompt to its end with `loop-basic`, the calculator and provider-mock under this config. */
  run(prompt: string, provider_config: JsonObject): Promise<Run>;
  /** Every entry of a run's log. */
  entries(run_id: string): Promise<Entry[]>;
}

const CALLER: Caller = { name: "library", namespace: "bench", origin: "operator" };

/** Opens a runtime and loads the modules, so that no measured run does. */
export async function openRuns(): Promise<MeasuredRuns> {
  const policy = defaultPolicy();
  const limits = {
    ...policy.limits,
    max_iterations: 10_000,
    max_tool_calls: 10_000,
    max_total_tokens: 1_000_000_000,
  };
  const runtime = createRuntime({ policy: { ...policy, limits } });

  async function run(prompt: string, config: JsonObject): Promise<Run> {
    const plan = {
      session: { orchestrator: "loop-basic", context: "context-simple" },
      providers: [{ module: "provider-mock", config }],
      tools: ["tool-calculator"],
    };
    const handle = await runtime.runs.create({ prompt, plan }, CALLER);
    return await handle.settled("end");
  }

  async function entries(run_id: string): Promise<Entry[]> {
    const all: Entry[] = [];
    for await (const page of runtime.runs.follow(CALLER, run_id, {})) all.push(...page);
    return all;
  }

  await run("Hello", { response: "Hello." });
  return { run, entries, [Symbol.asyncDispose]: () => runtime.close() };
}
