import { assertEquals, assertRejects } from "../assert.ts";
import { later, withDeadline } from "../../src/kernel/timeouts.ts";
import { FakeClock } from "../../src/sdk/testing/fake_clock.ts";

/** A clock with `later`, which records its calls. */
function clockWithLater(): { clock: FakeClock & { later: typeof wait }; log: string[] } {
  const log: string[] = [];
  const wait = (ms: number, then: () => void) => {
    log.push(`later ${ms}`);
    if (ms < 100) then();
    return () => void log.push("called off");
  };
  return { clock: Object.assign(new FakeClock(), { later: wait }), log };
}

Deno.test("later() calls back after the time, and not when it was stopped", async () => {
  const clock = new FakeClock();
  const called: string[] = [];
  later(clock, 10, () => called.push("first"));
  const stop = later(clock, 10, () => called.push("second"));
  stop();
  await clock.advance(10);
  assertEquals([called, clock.pending], [["first"], 0]);
});

Deno.test("later() uses clock.later when the clock has it", () => {
  const { clock, log } = clockWithLater();
  later(clock, 500, () => {})();
  assertEquals([log, clock.pending], [["later 500", "called off"], 0]);
});

Deno.test("withDeadline() stops its timer when the promise settles, and rejects after the time", async () => {
  const { clock, log } = clockWithLater();
  const slow = Promise.withResolvers<string>();
  const waited = withDeadline(slow.promise, 500, clock, () => new Error("too late"));
  for (let turn = 0; turn < 10; turn++) await null;
  slow.resolve("done");
  assertEquals([await waited, log], ["done", ["later 500", "called off"]]);
  await assertRejects(
    () => withDeadline(new Promise(() => {}), 50, clock, () => new Error("too late")),
    Error,
    "too late",
  );
});
