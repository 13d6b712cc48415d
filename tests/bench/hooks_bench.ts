/**
 * Hooks: one iteration of `loop-basic` (as in loop_bench.ts) without hooks, with the built-in hooks, and with
 * one and ten handlers for each event; compared with the hand-written loop and with the iteration without
 * hooks.
 *
 *   deno run -A tests/bench/hooks_bench.ts [rounds]
 */
import type { JsonObject } from "../../src/sdk/types.ts";
import { runBare } from "./bare_loop.ts";
import { type Cell, print, report, tableOf } from "./figures.ts";
import { PROMPT, scriptOf } from "./loop_scripts.ts";
import { openRuns } from "./measured_runs.ts";
import { middle, ratio, takeTurns } from "./rounds.ts";

const ITERATIONS = 200;
const FLOOR_TIMES = 10;

const rounds = Number(Deno.args[0] ?? 9);

const HOOK_URL = import.meta.resolve("./modules/hook_bench.ts");
const handlers = (count: number) => ({ module: "hook-bench", source: HOOK_URL, config: { handlers: count } });
const approval = {
  module: "hooks-approval",
  config: { rules: [{ tool: "calc*", action: "allow" }, { tool: "*", action: "ask" }] },
};
const logging = { module: "hooks-logging", config: { stderr: false, deltas: true } };
const SETTINGS: Readonly<Record<string, JsonObject[]>> = {
  "no hook": [],
  "hooks-approval": [approval],
  "hooks-timing": [{ module: "hooks-timing" }],
  "hooks-logging": [logging],
  "1 handler on each event": [handlers(1)],
  "10 handlers on each event": [handlers(10)],
};

await using runs = await openRuns();
const config = scriptOf(ITERATIONS);
const taken = await takeTurns(rounds, {
  floor: async () => {
    for (let time = 0; time < FLOOR_TIMES; time++) await runBare(PROMPT, config);
  },
  ...Object.fromEntries(Object.entries(SETTINGS).map(([name, hooks]) => [name, () => checkedRun(hooks)])),
} as Record<string, () => Promise<void>>);

const [floor = [], first = []] = [taken.floor, taken["no hook"]];
const figures = Object.keys(SETTINGS).map((name) => {
  const own = taken[name] ?? [];
  return {
    name,
    us: middle(own) * 1_000 / ITERATIONS,
    ratio: ratio(own, floor) * FLOOR_TIMES,
    to_none: ratio(own, first),
    wall_to_none: ratio(own, first, "wall_ms"),
  };
});
print(`Hooks, runs of ${ITERATIONS} iterations, processor time, median of ${rounds} rounds`);
print(tableOf(
  ["", "µs/iteration", "to the hand-written loop", "to no hook", "elapsed to no hook"],
  figures.map((
    { name, us, ratio, to_none, wall_to_none },
  ): Cell[] => [name, us, ratio, to_none, wall_to_none]),
));
report("hooks", { rounds, iterations: ITERATIONS, figures });

async function checkedRun(hooks: JsonObject[]): Promise<void> {
  const run = await runs.run(PROMPT, config, { hooks });
  const mounted = hooks.every(({ module }) => run.isolation[String(module)] === "inline");
  if (run.status === "completed" && run.turn_count === ITERATIONS && mounted) return;
  throw new Error(`Cannot measure: the run must complete with its hooks: received ${JSON.stringify(run)}`);
}
