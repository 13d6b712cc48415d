/**
 * A whole run (plan check, session, guards, events, log, memory store) beside a bare loop over the same model
 * and tool, which do nothing: one completion, a tool turn in runs of 50 and 1,000, a parallel call, a
 * streamed delta; without hooks, with one hook on every event, and with ten registered secrets.
 *
 *   deno run -A tests/bench/run_bench.ts [rounds]
 */
import { CANONICAL_EVENTS } from "../../src/sdk/event_table.ts";
import type { JsonObject } from "../../src/sdk/types.ts";
import { print, report, tableOf } from "./figures.ts";
import { middle, ratio, takeTurns } from "./rounds.ts";
import { FLOOR_TIMES, repeat, runBare, SCENARIOS } from "./run_scenarios.ts";
import { openScripted, runScripted } from "./scripted_runs.ts";

/** Milliseconds of runs before the first measurement: V8 optimises the code of a run for several seconds. */
const WARM_UP_MS = 4_000;

const EVERY = { module: "hooks-every", config: { events: [...CANONICAL_EVENTS] } };
const SECRETS = Array.from({ length: 10 }, (_, index) => `secret-value-number-${index}`);

const rounds = Number(Deno.args[0] ?? 7);
const only = Deno.args[1]?.split(",");

const settings: Readonly<Record<string, { hooks: JsonObject[]; secrets: string[] }>> = {
  "no hook": { hooks: [], secrets: [] },
  "a hook on every event": { hooks: [EVERY], secrets: [] },
  "10 secrets": { hooks: [], secrets: SECRETS },
};

const rows = [];
for (const [name, { script, unit, units, runs, target_us }] of Object.entries(SCENARIOS)) {
  if (only && !only.includes(name)) continue;
  for (const [setting, { hooks, secrets }] of Object.entries(settings)) {
    if (only?.includes("bare") && setting !== "no hook") continue;
    const runtime = openScripted({ secrets });
    const run = () => runScripted(runtime, script, { hooks });
    for (const start = performance.now(); performance.now() - start < WARM_UP_MS;) await run();
    const { floor, ours } = await takeTurns(rounds, {
      floor: () => repeat(runs * FLOOR_TIMES, () => runBare(script)),
      ours: () => repeat(runs, run),
    });
    await runtime.close();
    const us = (taken: typeof ours, measure: "cpu_ms" | "wall_ms") =>
      middle(taken, measure) * 1_000 / runs / units;
    rows.push({
      unit,
      setting,
      us: us(ours, "wall_ms"),
      cpu_us: us(ours, "cpu_ms"),
      bare_us: us(floor, "wall_ms") / FLOOR_TIMES,
      ratio: ratio(ours, floor, "wall_ms") * FLOOR_TIMES,
      target_us: setting === "a hook on every event" ? 3 * target_us : target_us,
    });
  }
}
print(`A run beside a bare loop, median of ${rounds} rounds`);
print(tableOf(
  ["", "", "bare loop µs", "preamp µs", "processor µs", "ratio", "target µs"],
  rows.map((
    row,
  ) => [row.unit, row.setting, row.bare_us, row.us, row.cpu_us, row.ratio, `≤ ${row.target_us}`]),
));
report("run", { rounds, rows });
