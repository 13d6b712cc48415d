/** Preamp's loop for measurements: a complete run with guards, events, hooks and log, in a memory store. */
import { systemClock } from "../../src/process/system_clock.ts";
import type { Run } from "../../src/runs/types.ts";
import type { MeasuredLoop } from "./loop_figures.ts";
import { ProbeClock } from "./loop_scripts.ts";
import { type MeasuredOptions, openRuns } from "./measured_runs.ts";

/** The loop and the clock of its provider; disposing closes the runtime. */
export interface PreampLoop extends AsyncDisposable {
  readonly loop: MeasuredLoop;
  readonly clock: ProbeClock;
}

/** Opens the loop. */
export async function openPreampLoop(store?: MeasuredOptions["store"]): Promise<PreampLoop> {
  const clock = new ProbeClock(systemClock());
  const runs = await openRuns({ clock, ...(store ? { store } : {}) });
  return {
    clock,
    loop: {
      async run(prompt, config) {
        const run = completed(await runs.run(prompt, config));
        return { iterations: run.turn_count, text: run.output_text };
      },
      async stream(prompt, config) {
        const { run, deltas } = await runs.stream(prompt, config);
        return { deltas, text: completed(run).output_text };
      },
    },
    [Symbol.asyncDispose]: () => runs[Symbol.asyncDispose](),
  };
}

function completed(run: Run): Run {
  if (run.status === "completed") return run;
  throw new Error(
    `Cannot measure: the run must complete: received ${run.status} ${JSON.stringify(run.error)}`,
  );
}
