/**
 * The loop: one iteration of `loop-basic` in a complete run (guards, events, hooks, log, memory store),
 * compared with a hand-written loop over the same provider and tool, in runs of 1, 50 and 1,000 iterations.
 * Also compares the first with the last hundred iterations of the longest run, and measures a thousand deltas
 * of `loop-streaming`, read from the log.
 *
 *   deno run -A tests/bench/loop_bench.ts [rounds]
 */
import { print, report, tableOf } from "./figures.ts";
import { measureLoop } from "./loop_figures.ts";
import { openPreampLoop } from "./preamp_loop.ts";

const rounds = Number(Deno.args[0] ?? 9);

await using preamp = await openPreampLoop();
const figures = await measureLoop(preamp.loop, { rounds, clock: preamp.clock });
const { per_iteration, deltas, ends } = figures;

print(`Loop, processor time, median of ${rounds} rounds`);
print(tableOf(["", "hand-written µs", "preamp µs", "ratio", "ratio of elapsed time", "target"], [
  ...Object.entries(per_iteration).map(([iterations, { floor_us, us, ratio, wall_ratio }]) => [
    `an iteration of ${iterations}`,
    floor_us,
    us,
    ratio,
    wall_ratio,
    iterations === "1000" ? "≤ 12" : "",
  ]),
  ["a delta of 1000", deltas.floor_us, deltas.us, deltas.ratio, deltas.wall_ratio, "≤ 4"],
]));
print();
print(tableOf(["1,000 iterations", "µs/iteration", "ratio", "ratio of elapsed time", "target"], [
  ["first 100", ends.first_us, 1, 1, ""],
  ["last 100", ends.last_us, ends.ratio, ends.wall_ratio, "≤ 1.2"],
]));
report("loop", { rounds, ...figures });
