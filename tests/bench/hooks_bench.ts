/**
 * Hooks: one iteration of `loop-basic` (as in run_bench.ts) without hooks, with the built-in hooks, and with
 * one and ten handlers for each event; compared with the bare loop and with the iteration without
 * hooks.
 *
 *   deno run -A tests/bench/hooks_bench.ts [rounds]
 */
import type { JsonObject } from "../../src/sdk/types.ts";
import { type Cell, print, report, tableOf } from "./figures.ts";
import { middle, ratio, takeTurns } from "./rounds.ts";
import { FLOOR_TIMES, repeat, runBare } from "./run_scenarios.ts";
import { openScripted, runScripted } from "./scripted_runs.ts";

const ITERATIONS = 200;
const SCRIPT = { turns: ITERATIONS - 1 };

const rounds = Number(Deno.args[0] ?? 9);

const HOOK_URL = import.meta.resolve("./modules/hook_bench.ts");
const handlers = (count: number) => ({ module: "hook-bench", source: HOOK_URL, config: { handlers: count } });
const approval = {
  module: "hooks-approval",
  config: { rules: [{ tool: "no*", action: "allow" }, { tool: "*", action: "ask" }] },
};
const log_folder = await Deno.makeTempDir();
const logging = {
  module: "hooks-logging",
  config: { path: `${log_folder}/log.jsonl`, deltas: true },
  permissions: { write: [log_folder] },
};
const SETTINGS: Readonly<Record<string, JsonObject[]>> = {
  "no hook": [],
  "hooks-approval": [approval],
  "hooks-timing": [{ module: "hooks-timing" }],
  "hooks-logging": [logging],
  "1 handler on each event": [handlers(1)],
  "10 handlers on each event": [handlers(10)],
};

const runtime = openScripted();
const taken = await takeTurns(rounds, {
  floor: () => repeat(FLOOR_TIMES, () => runBare(SCRIPT)),
  ...Object.fromEntries(Object.entries(SETTINGS).map(([name, hooks]) => [name, () => checkedRun(hooks)])),
} as Record<string, () => Promise<void>>);
await runtime.close();
await Deno.remove(log_folder, { recursive: true });

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
  ["", "µs/iteration", "to the bare loop", "to no hook", "elapsed to no hook"],
  figures.map((
    { name, us, ratio, to_none, wall_to_none },
  ): Cell[] => [name, us, ratio, to_none, wall_to_none]),
));
report("hooks", { rounds, iterations: ITERATIONS, figures });

async function checkedRun(hooks: JsonObject[]): Promise<void> {
  const run = await runScripted(runtime, SCRIPT, { hooks });
  if (hooks.every(({ module }) => run.isolation[String(module)] === "inline")) return;
  throw new Error(`Cannot measure: the run must have its hooks: received ${JSON.stringify(run)}`);
}
