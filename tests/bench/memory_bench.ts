/**
 * Memory: heap of 1,000 iterations during a run, and of its log afterwards. Then many runs with a small
 * store: growth after the store is full is a leak. The figure is the slope over the second half.
 *
 *   deno run -A --v8-flags=--expose-gc tests/bench/memory_bench.ts [runs]
 */
import type { Module } from "../../src/sdk/types.ts";
import { type Cell, median, print, report, tableOf } from "./figures.ts";
import { memoryNow } from "./heap.ts";
import { scriptedProvider } from "./modules/scripted.ts";
import { openScripted, runScripted } from "./scripted_runs.ts";

const ITERATIONS = 1_000;
const LONG = { turns: ITERATIONS - 1 };
/** Few enough that the memory store does not become full. */
const LONG_RUNS = 3;
/** Iterations of each of the many runs. */
const SHORT = 5;
/** Size of the store for the many runs; it is full long before half of them have ended. */
const STORE_LIMITS = { max_entries: 500, max_records: 20 };
/** Number of memory samples. */
const SAMPLES = 20;

const count = Number(Deno.args[0] ?? 2_000);
const between = Math.ceil(count / SAMPLES);

const one = await longRun();
const many = await manyRuns();

print("Memory in MB, after garbage collection");
print(tableOf(["a run of 1,000 iterations", "MB", "bytes/iteration"], [
  ["heap: last call minus first call", one.running_mb, one.running_mb * 1e6 / ITERATIONS],
  ["heap after the run: its log and records", one.after_mb, one.after_mb * 1e6 / ITERATIONS],
]));
print();
print(tableOf(
  [`${count} runs of ${SHORT} iterations`, "first half", "second half", "KB/run in the second", "target"],
  ([["heap", many.heap], ["resident", many.resident]] as const).map(([name, mb]): Cell[] => {
    const [start = NaN, half = NaN, end = NaN] = [mb[0], mb[mb.length >> 1], mb.at(-1)];
    return [name, half - start, end - half, perRun(mb), name === "heap" ? "≤ 0.5" : ""];
  }),
));
report("memory", {
  per_1000_iterations: one,
  runs: count,
  iterations: SHORT,
  kept: STORE_LIMITS,
  growth_kb_per_run: {
    heap: perRun(many.heap),
    resident: perRun(many.resident),
  },
});

/** Resolves to the heap's growth in MB: from the first to the last call of the model, and after a run. */
async function longRun(): Promise<{ running_mb: number; after_mb: number }> {
  let alive: number[] = [];
  const probed: Module = {
    async mount(coordinator, config) {
      const provider = scriptedProvider(config);
      const complete = provider.complete.bind(provider);
      let call = 0;
      provider.complete = (request, options) => {
        if (call === 0 || call === LONG.turns) alive.push(memoryNow().heap_mb);
        call++;
        return complete(request, options);
      };
      await coordinator.mount("providers", provider);
    },
  };
  const runtime = openScripted({ modules: { "provider-probed": probed } });
  const providers = [{ module: "provider-probed", config: LONG }];
  const running: number[] = [];
  const ended: number[] = [];
  for (let run = -1; run < LONG_RUNS; run++) { // the first run allocates what is created once
    alive = [];
    await runScripted(runtime, LONG, { providers });
    await nextTask();
    ended.push(memoryNow().heap_mb);
    const [first = NaN, last = NaN] = alive;
    if (run >= 0) running.push(last - first);
  }
  await runtime.close();
  const after = ended.slice(1).map((mb, run) => mb - (ended[run] ?? NaN));
  return { running_mb: median(running), after_mb: median(after) };
}

/** Resolves to heap and resident memory at each sample. */
async function manyRuns(): Promise<{ heap: number[]; resident: number[] }> {
  const runtime = openScripted({ store: STORE_LIMITS });
  const [heap, resident]: [number[], number[]] = [[], []];
  for (let index = 0; index < count; index++) {
    await runScripted(runtime, { turns: SHORT - 1 });
    if ((index + 1) % between !== 0) continue;
    await nextTask();
    const { heap_mb, resident_mb } = memoryNow();
    heap.push(heap_mb);
    resident.push(resident_mb);
  }
  await runtime.close();
  return { heap, resident };
}

/** Lets work after an answer end. */
function nextTask(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve));
}

/** Returns the growth in KB per run over the second half of the samples. */
function perRun(values: readonly number[]): number {
  return slope(values.slice(values.length >> 1)) * 1_000 / between;
}

/** Returns the slope of the least-squares line through the values. */
function slope(values: readonly number[]): number {
  const middle = (values.length - 1) / 2;
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  let [above, below] = [0, 0];
  for (const [index, value] of values.entries()) {
    above += (index - middle) * (value - mean);
    below += (index - middle) ** 2;
  }
  return above / below;
}
