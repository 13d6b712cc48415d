/**
 * Memory: what 1,000 iterations of a run take while it runs and what its log takes after; then many runs over a store that
 * keeps little, so that what still grows once the store is full is a leak. Measured: the slope over the second half.
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
/** Iterations of each of many runs. */
const SHORT = 5;
/** What the store of many runs keeps: full long before the first half of them is over. */
const KEPT = { max_entries: 500, max_records: 20 };
/** Memory is looked at this many times. */
const LOOKS = 20;

const count = Number(Deno.args[0] ?? 2_000);
const between = Math.ceil(count / LOOKS);

const one = await longRun();
const many = await manyRuns();

print("Memory in MB, after garbage collection");
print(tableOf(["a run of 1,000 iterations", "MB", "bytes/iteration"], [
  ["heap at its last call, over its first", one.running_mb, one.running_mb * 1e6 / ITERATIONS],
  ["heap after it: its log and records", one.after_mb, one.after_mb * 1e6 / ITERATIONS],
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
  kept: KEPT,
  growth_kb_per_run: {
    heap: perRun(many.heap),
    resident: perRun(many.resident),
  },
});

async function longRun() {
  await using preamp = await openPreampLoop();
  return await measureLoopMemory(preamp.loop, preamp.clock, ITERATIONS);
}

/** Heap and resident memory, at each look. */
async function manyRuns(): Promise<{ heap: number[]; resident: number[] }> {
  await using runs = await openRuns({ store: KEPT });
  const config = scriptOf(SHORT);
  const [heap, resident]: [number[], number[]] = [[], []];
  for (let index = 0; index < count; index++) {
    const { status, turn_count } = await runs.run(PROMPT, config);
    if (status !== "completed" || turn_count !== SHORT) {
      throw new Error(`Cannot measure: the run must complete: received ${status} after ${turn_count}`);
    }
    if ((index + 1) % between !== 0) continue;
    await new Promise((resolve) => setTimeout(resolve)); // what ends after the answer
    const { heap_mb, resident_mb } = memoryNow();
    heap.push(heap_mb);
    resident.push(resident_mb);
  }
  return { heap, resident };
}

/** Returns KB per run, over the second half of the looks. */
function perRun(values: readonly number[]): number {
  return slope(values.slice(values.length >> 1)) * 1_000 / between;
}

/** Returns the slope of the line through the values by least squares, per value. */
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
