/** Complete runs in this process, with a memory store and limits that no bench reaches. */
import { createRuntime } from "../../src/app/runtime.ts";
import type { Entry } from "../../src/kernel/host.ts";
import { defaultPolicy } from "../../src/policy/settings.ts";
import type { Caller, Run } from "../../src/runs/types.ts";
import type { HostClock } from "../../src/kernel/host.ts";
import type { JsonObject } from "../../src/sdk/types.ts";
import { MemoryStore, type MemoryStoreOptions } from "../../src/store/memory.ts";

/** A runtime for a bench. */
export interface MeasuredRuns extends AsyncDisposable {
  /**
   * Runs one prompt with `loop-basic`, the calculator and provider-mock with this config. Keys of `plan`
   * replace those of the plan.
   */
  run(prompt: string, provider_config: JsonObject, plan?: JsonObject): Promise<Run>;
  /**
   * Does the same with `loop-streaming` while a reader follows the log. Resolves to the run and the number of
   * deltas read.
   */
  stream(prompt: string, provider_config: JsonObject): Promise<{ run: Run; deltas: number }>;
  /** Resolves to all entries of a run's log. */
  entries(run_id: string): Promise<Entry[]>;
}

const CALLER: Caller = { name: "library", namespace: "bench", origin: "operator" };

/** Options of `openRuns`. */
export interface MeasuredOptions {
  clock?: HostClock;
  /** Options of the memory store. */
  store?: MemoryStoreOptions;
  /** Tier of modules from files. Default: `inline`. */
  tier?: "inline" | "worker" | "process";
}

/** Opens a runtime and loads the modules, so that measured runs do not include loading. */
export async function openRuns(
  { clock, store, tier = "inline" }: MeasuredOptions = {},
): Promise<MeasuredRuns> {
  const policy = defaultPolicy();
  if (tier === "inline") policy.modules.inline = [import.meta.resolve("./")];
  else policy.isolation.urls_from_operator = tier;
  const limits = {
    ...policy.limits,
    max_iterations: 10_000,
    max_tool_calls: 10_000,
    max_total_tokens: 1_000_000_000,
  };
  const runtime = createRuntime({
    policy: { ...policy, limits },
    store: new MemoryStore(store),
    ...(clock ? { clock } : {}),
  });

  async function run(prompt: string, config: JsonObject, changes: JsonObject = {}): Promise<Run> {
    const plan = { ...planOf("loop-basic", config), ...changes };
    const handle = await runtime.runs.create({ prompt, plan }, CALLER);
    return await handle.settled("end");
  }

  async function stream(prompt: string, config: JsonObject): Promise<{ run: Run; deltas: number }> {
    const handle = await runtime.runs.create({ prompt, plan: planOf("loop-streaming", config) }, CALLER);
    let deltas = 0;
    for await (const page of runtime.runs.follow(CALLER, handle.id, {})) {
      for (const { event } of page) if (event === "content_block:delta") deltas++;
    }
    return { run: await handle.settled("end"), deltas };
  }

  async function entries(run_id: string): Promise<Entry[]> {
    const all: Entry[] = [];
    for await (const page of runtime.runs.follow(CALLER, run_id, {})) all.push(...page);
    return all;
  }

  await run("Hello", { response: "Hello." });
  return { run, stream, entries, [Symbol.asyncDispose]: () => runtime.close() };
}

function planOf(orchestrator: string, provider_config: JsonObject): JsonObject {
  return {
    session: { orchestrator, context: "context-simple" },
    providers: [{ module: "provider-mock", config: provider_config }],
    tools: ["tool-calculator"],
  };
}
