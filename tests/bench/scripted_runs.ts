/**
 * Complete runs of the scenarios of `run_scenarios.ts`, with a memory store and limits that no scenario
 * reaches.
 */
import { createRuntime } from "../../src/app/runtime.ts";
import { defaultPolicy } from "../../src/policy/settings.ts";
import type { Caller, Run, RunHandle } from "../../src/runs/types.ts";
import type { JsonObject } from "../../src/sdk/types.ts";
import { MemoryStore } from "../../src/store/memory.ts";
import { type Script, SCRIPTED_MODULES } from "./modules/scripted.ts";
import { PROMPT } from "./run_scenarios.ts";

/** The caller of every run. */
export const CALLER: Caller = { name: "library", namespace: "bench", origin: "operator" };

/** A runtime with the scripted modules. */
export type ScriptedRuntime = ReturnType<typeof openScripted>;

/** Opens a runtime whose modules are the scripted ones. */
export function openScripted(secrets: string[] = []) {
  const policy = defaultPolicy();
  const large = { max_iterations: 10_000, max_tool_calls: 100_000, max_total_tokens: 1_000_000_000 };
  return createRuntime({
    policy: { ...policy, limits: { ...policy.limits, ...large } },
    store: new MemoryStore({ max_entries: 50_000, max_records: 1_000 }),
    modules: SCRIPTED_MODULES,
    secrets,
  });
}

/** Starts a run of a script. */
export function startScripted(
  { runs }: ScriptedRuntime,
  script: Script,
  hooks: JsonObject[] = [],
): Promise<RunHandle> {
  const plan = {
    session: { orchestrator: "loop-basic", context: "context-simple" },
    providers: [{ module: "provider-scripted", config: { ...script } }],
    ...(script.turns ? { tools: ["tool-noop"] } : {}),
    hooks,
  };
  return runs.create({ prompt: PROMPT, plan }, CALLER);
}

/** Throws unless a run of this script completed. */
export function checkScripted(run: Run, script: Script): void {
  if (run.status === "completed" && run.turn_count === (script.turns ?? 0) + 1) return;
  throw new Error(`Cannot measure: the run must complete: received ${JSON.stringify(run)}`);
}
