/**
 * Memory: heap of 1,000 iterations during a run, and of its log afterwards. Then many runs with a small
 * store: growth after the store is full is a leak. The figure is the slope over the second half.
 *
 *   deno run -A --v8-flags=--expose-gc tests/bench/memory_bench.ts [runs]
 */
import { type Cell, print, report, tableOf } from "./figures.ts";
import { memoryNow } from "./heap.ts";
import { measureLoopMemory } from "./loop_figures.ts";
import { PROMPT, scriptOf } from "./loop_scripts.ts";
import { openRuns } from "./measured_runs.ts";
import { openPreampLoop } from "./preamp_loop.ts";

const ITERATIONS = 1_000;
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

async function longRun() {
  await using preamp = await openPreampLoop();
  return await measureLoopMemory(preamp.loop, preamp.clock, ITERATIONS);
}

/** Resolves to heap and resident memory at each sample. */
async function manyRuns(): Promise<{ heap: number[]; resident: number[] }> {
  await using runs = await openRuns({ store: STORE_LIMITS });
  const config = scriptOf(SHORT);
  const [heap, resident]: [number[], number[]] = [[], []];
  for (let index = 0; index < count; index++) {
    const { status, turn_count } = await runs.run(PROMPT, config);
    if (status !== "completed" || turn_count !== SHORT) {
      throw new Error(`Cannot measure: the run must complete: received ${status} after ${turn_count}`);
    }
    if ((index + 1) % between !== 0) continue;
    await new Promise((resolve) => setTimeout(resolve)); // lets work after the answer end
    const { heap_mb, resident_mb } = memoryNow();
    heap.push(heap_mb);
    resident.push(resident_mb);
  }
  return { heap, resident };
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
