import { assertEquals, assertRejects } from "../assert.ts";
import { withDeadline } from "../../src/kernel/timeouts.ts";
import { StepAbort } from "../../src/kernel/timeouts.ts";
import { FakeClock } from "../../src/testing/clocks.ts";

Deno.test("withDeadline() stops its timer when the promise settles, and rejects after the time", async () => {
  const clock = new FakeClock();
  const slow = Promise.withResolvers<string>();
  const waited = withDeadline(slow.promise, 500, clock, () => new Error("too late"));
  assertEquals(clock.pending, 1);
  slow.resolve("done");
  assertEquals([await waited, clock.pending], ["done", 0]);
  const late = withDeadline(new Promise(() => {}), 50, clock, () => new Error("too late"));
  const rejected = assertRejects(() => late, Error, "too late");
  await clock.advance(50);
  await rejected;
});

Deno.test("StepAbort.abort() counts once: what waits later ends for the reason of the first abort", () => {
  const step = new StepAbort();
  const reasons: unknown[] = [];
  step.add((reason) => reasons.push(reason));
  step.abort("limit");
  step.abort("cancelled");
  step.add((reason) => reasons.push(reason));
  assertEquals([...reasons, step.signal.reason], ["limit", "limit", "limit"]);
});
