/** A thousand servers that share a store and fail at random: see `../support/simulation.ts`. */
import { assert } from "../assert.ts";
import { propertyOptions } from "../support/cases.ts";
import { LONGEST_TAKEOVER_MS, simulate } from "../support/simulation.ts";

Deno.test("a thousand servers that fail at random have one owner a run, keep the order of sessions and lose nothing", async () => {
  const report = await simulate({
    seed: propertyOptions(1, 1, 1).seed,
    servers: 1_000,
    sessions: 250,
    runs: 2,
    trouble_s: 20,
    rate: 0.04,
    call_s: 4,
  });
  assert(report.runs >= 500 && report.taken_over >= 20, JSON.stringify(report));
  assert(report.longest_takeover_ms <= LONGEST_TAKEOVER_MS, JSON.stringify(report));
});
