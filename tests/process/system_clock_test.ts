import { assert, assertEquals, assertRejects } from "../assert.ts";
import { systemClock } from "../../src/process/system_clock.ts";

Deno.test("after() resolves at once for a delay that is not above 0", async () => {
  for (const ms of [0, -1, NaN]) await systemClock().after(ms);
});

Deno.test("after() rejects with the signal's reason and clears its timer", async () => {
  const aborted = AbortSignal.abort(new RangeError("before"));
  await assertRejects(() => systemClock().after(60_000, aborted), RangeError);
  const controller = new AbortController();
  const waiting = systemClock().after(60_000, controller.signal);
  controller.abort(new RangeError("during"));
  await assertRejects(() => waiting, RangeError);
});

Deno.test("later() calls back once, and not after it was cancelled", async () => {
  const calls: string[] = [];
  const cancel = systemClock().later(0, () => calls.push("cancelled"));
  const cancel_long = systemClock().later(1e12, () => calls.push("long"));
  cancel();
  await new Promise<void>((resolve) => void systemClock().later(1, resolve));
  cancel_long();
  assertEquals(calls, []);
});

Deno.test("tick() calls back once", async () => {
  const started = systemClock().monotonic();
  await new Promise<void>((resolve) => systemClock().tick(2, resolve));
  assert(systemClock().monotonic() - started >= 1);
});
