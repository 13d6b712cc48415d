/** Plays a scenario: an in-memory plan, a prompt, and what a client or person does meanwhile. */
import * as providerMock from "../../modules/provider-mock/mod.ts";
import type { Entry } from "../../src/kernel/host.ts";
import type { Run, RunRequest } from "../../src/runs/types.ts";
import type { JsonObject, Module } from "../../src/sdk/types.ts";
import type { TestModule } from "../support/sessions.ts";
import { CALLER, type Service, service, type TestPlan } from "../support/runs.ts";

/** One scenario. */
export interface Scenario {
  plan: TestPlan;
  request?: Partial<RunRequest>;
  /** An earlier run of the same session. */
  before?: Partial<RunRequest>;
  /** Called with each entry once it can be read; acts for a person or another program. */
  react?: (entry: Entry, outside: Outside) => Promise<unknown> | void;
  /** Milliseconds by which the clock advances at a time. */
  step_ms?: number;
}

/** Actions of a client or person. */
export interface Outside {
  runs: Service["runs"];
  run_id: string;
  decide(entry: Entry, decision: string): Promise<unknown>;
}

/** A scenario that has ended. */
export interface Played {
  service: Service;
  run: Run;
  entries: Entry[];
}

/** Returns a built-in module with this config. */
export function builtin(module: Module, config: JsonObject = {}): TestModule {
  return { ...module, id: module.module!.id, config };
}

/** Returns a scripted provider. */
export function mock(...responses: (JsonObject | string)[]): TestModule {
  return builtin(providerMock, { chunk_chars: 8, responses });
}

/** Runs a scenario to its end. */
export async function play(scenario: Scenario, existing?: Service): Promise<Played> {
  const made = existing ?? service({ plans: { plan: scenario.plan } });
  let session_id: string | undefined;
  if (scenario.before) session_id = (await made.finish("plan", scenario.before)).session_id;
  const handle = await made.post("plan", { ...scenario.request, ...(session_id ? { session_id } : {}) });
  const run = await runToEnd(made, handle.id, scenario);
  return { service: made, run, entries: await made.entries(run.id) };
}

/** Reacts to entries and advances time until the run has ended. */
export async function runToEnd(
  { runs, clock }: Service,
  run_id: string,
  { react, step_ms = 100 }: Scenario,
  after = 0,
): Promise<Run> {
  let done = false;
  const outside: Outside = {
    runs,
    run_id,
    decide: ({ data }, decision) => runs.decide(CALLER, run_id, String(data.approval_id), { decision }),
  };
  const following = (async () => {
    for await (const page of runs.follow(CALLER, run_id, { after })) {
      for (const entry of page) await react?.(entry, outside);
    }
  })();
  const handle = await runs.handle(CALLER, run_id);
  const ended = handle.settled("end").finally(() => done = true);
  for (let steps = 0; !done && steps < 3_000; steps++) await clock.advance(step_ms);
  if (!done) throw new Error(`run ${run_id} does not end`);
  await following;
  return await ended;
}
