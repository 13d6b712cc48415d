/** Replay of recovered runs: killed after each of their entries, recovered, replayed. */
import { assertEquals } from "../assert.ts";
import { someOf } from "../support/cases.ts";
import { replayed } from "../support/runs.ts";
import { killAndResume } from "./killed.ts";
import { play, SCENARIOS } from "./scenarios.ts";

for (const [name, scenario] of Object.entries(SCENARIOS)) {
  if (scenario.before) continue; // the second run is killed: see resume_test.ts
  Deno.test(`replay() of a run that was killed after any of its entries is equal: ${name}`, async () => {
    const { entries } = await play(scenario);
    const accepted = entries.findIndex(({ event }) => event === "session:start");
    const kills = Array.from({ length: entries.length - accepted }, (_, index) => accepted + index);
    for (const last of someOf(kills, 5)) {
      const { next, run } = await killAndResume(scenario, last, scenario.step_ms);
      assertEquals([last, await replayed(next, run.id)], [last, { equal: true }]);
    }
  });
}
