/**
 * Complete runs of the scenarios of `run_scenarios.ts`, with a memory store and limits that no scenario
 * reaches.
 */
import { createRuntime } from "../../src/app/runtime.ts";
import { defaultPolicy } from "../../src/policy/settings.ts";
import type { Caller, Run, RunHandle } from "../../src/runs/types.ts";
import type { JsonObject, Module } from "../../src/sdk/types.ts";
import { MemoryStore, type MemoryStoreOptions } from "../../src/store/memory.ts";
import { type Script, SCRIPTED_MODULES } from "./modules/scripted.ts";
import { PROMPT } from "./run_scenarios.ts";

/** The caller of every run. */
export const CALLER: Caller = { name: "library", namespace: "bench", origin: "operator" };

/** A runtime with the scripted modules. */
export type ScriptedRuntime = ReturnType<typeof openScripted>;

/** Options of `openScripted`. */
export interface ScriptedOptions {
  secrets?: string[];
  /** Further modules by id. */
  modules?: Readonly<Record<string, Module>>;
  store?: MemoryStoreOptions;
  /** Tier of modules from files. Default: `inline`. */
  tier?: "inline" | "process";
}

/** Opens a runtime whose modules are the scripted ones, the built-in ones and those of files. */
export function openScripted(
  { secrets = [], modules, store, tier = "inline" }: ScriptedOptions = {},
) {
  const policy = defaultPolicy();
  if (tier === "inline") policy.modules.inline = [import.meta.resolve("./")];
  const large = { max_iterations: 10_000, max_tool_calls: 100_000, max_total_tokens: 1_000_000_000 };
  return createRuntime({
    policy: { ...policy, limits: { ...policy.limits, ...large } },
    store: new MemoryStore(store ?? { max_entries: 50_000, max_records: 1_000 }),
    modules: { ...SCRIPTED_MODULES, ...modules },
    secrets,
  });
}

/** Starts a run of a script. Keys of `changes` replace those of the plan. */
export function startScripted(
  { runs }: ScriptedRuntime,
  script: Script,
  changes: JsonObject = {},
): Promise<RunHandle> {
  const plan = {
    session: { orchestrator: "loop-basic", context: "context-simple" },
    providers: [{ module: "provider-scripted", config: { ...script } }],
    ...(script.turns ? { tools: ["tool-noop"] } : {}),
    ...changes,
  };
  return runs.create({ prompt: PROMPT, plan }, CALLER);
}

/** Runs a script to its end. @throws {Error} unless the run completed with all its turns. */
export async function runScripted(
  runtime: ScriptedRuntime,
  script: Script,
  changes?: JsonObject,
): Promise<Run> {
  const handle = await startScripted(runtime, script, changes);
  const run = await handle.settled("end");
  checkScripted(run, script);
  return run;
}

/** Throws unless a run of this script completed. */
export function checkScripted(run: Run, script: Script): void {
  if (run.status === "completed" && run.turn_count === (script.turns ?? 0) + 1) return;
  throw new Error(`Cannot measure: the run must complete: received ${JSON.stringify(run)}`);
}
