import fc from "fast-check";
import { timeIn, withinOwnTime } from "../../src/process/own_time.ts";
import { LateError } from "../../src/process/system_clock.ts";
import { assert, assertEquals, assertRejects } from "../assert.ts";
import { propertyOptions } from "../support/cases.ts";

/**
 * A process on a machine that gives it `share` of a processor; its work takes `work_ms` of processor time, or
 * waits for something that never happens.
 */
function processOf({ share, work_ms }: { share: number; work_ms: number | "idle" }) {
  const state = { passed_ms: 0 };
  const worked = () => work_ms === "idle" ? 0 : Math.min(work_ms, state.passed_ms * share);
  return {
    state,
    processorTime: () => Promise.resolve(1_000 + Math.floor(worked() / 10) * 10), // it has worked before, and counts in ticks
    wait<T>(ms: number, work: Promise<T>): Promise<T> {
      state.passed_ms += ms;
      return work_ms !== "idle" && worked() >= work_ms ? work : Promise.reject(new LateError());
    },
  };
}

Deno.test("withinOwnTime() waits for work within the limit however little of a processor it gets", async () => {
  const limit_ms = 10_000;
  await fc.assert(
    fc.asyncProperty(
      fc.double({ min: 0.012, max: 1, noNaN: true }),
      fc.integer({ min: 0, max: 9_000 }),
      async (share, work_ms) => {
        const { processorTime, wait } = processOf({ share, work_ms });
        assertEquals(
          await withinOwnTime(limit_ms, Promise.resolve("done"), processorTime, wait),
          "done",
        );
      },
    ),
    propertyOptions(100, 500, 5_000),
  );
});

Deno.test("withinOwnTime() ends work above the limit, and a process that is idle, in bounded time", async () => {
  for (const share of [1, 0.5, 0.1, 0.02]) {
    for (const work_ms of [11_500, 1e9, "idle"] as const) {
      const { state, processorTime, wait } = processOf({ share, work_ms });
      await assertRejects(() => withinOwnTime(10_000, new Promise(() => {}), processorTime, wait), LateError);
      const most_ms = work_ms === "idle" ? 10_500 : 13_000 / share;
      assert(state.passed_ms >= 10_000 && state.passed_ms <= most_ms, `${state.passed_ms} ms`);
    }
  }
});

Deno.test("withinOwnTime() counts all time where the processor time is unknown, and passes an error on", async () => {
  const { state, wait } = processOf({ share: 0.1, work_ms: 1e9 });
  const unknown = () => Promise.resolve(undefined);
  await assertRejects(() => withinOwnTime(10_000, new Promise(() => {}), unknown, wait), LateError);
  assert(state.passed_ms <= 10_500);
  const failing = Promise.reject(new RangeError("no"));
  await assertRejects(() => withinOwnTime(10_000, failing, unknown), RangeError);
});

Deno.test("timeIn() reads what Linux writes and what POSIX describes", () => {
  const fields = `S 1 2 3 0 -1 4194560 100 0 0 0 250 75 0 0 20 0 1 0`;
  assertEquals(
    [`42 (deno) ${fields}`, `42 (a) b (c d) ${fields}`, " 01:02:03\n", "2-00:00:01", "0:01.50", "", "x"].map(
      timeIn,
    ),
    [3_250, 3_250, 3_723_000, 172_801_000, 1_500, undefined, undefined],
  );
});
