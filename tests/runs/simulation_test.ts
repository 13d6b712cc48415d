/** Some servers that share a store and fail at random: see `../support/simulation.ts`. */
import { assert } from "../assert.ts";
import { propertyOptions } from "../support/cases.ts";
import { callsPerSecond, LONGEST_TAKEOVER_MS, simulate } from "../support/simulation.ts";

const { numRuns, seed } = propertyOptions(3, 10, 100);

for (let index = 0; index < numRuns; index++) {
  Deno.test(`twelve servers that fail at random have one owner a run, keep the order of sessions and lose nothing: seed ${seed + index}`, async () => {
    const report = await simulate({
      seed: seed + index,
      servers: 12,
      sessions: 20,
      runs: 3,
      trouble_s: 30,
      rate: 0.08,
      call_s: 8,
    });
    assert(report.runs >= 60, JSON.stringify(report));
    assert(report.longest_takeover_ms <= LONGEST_TAKEOVER_MS, JSON.stringify(report));
  });
}

Deno.test("calls of the store grow with the servers, and not with the runs that wait for their model", async () => {
  const few = await callsPerSecond(6, 15);
  const runs = await callsPerSecond(6, 30);
  const both = await callsPerSecond(12, 30);
  assert(runs <= 1.1 * few, `${few} calls a second with 15 runs, ${runs} with 30`);
  assert(both <= 2.2 * few, `${few} calls a second of 6 servers, ${both} of 12`);
});
