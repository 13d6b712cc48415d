import { setImmediate } from "node:timers";
import { nodeCrypto } from "../../src/sdk/digest.ts";
import { FakeClock, realClock, turn, waitFor, withinTime } from "../../src/testing/clocks.ts";
import { assert, assertEquals, assertRejects } from "../assert.ts";

Deno.test("advance() ends waits in order of their times, then of their start", async () => {
  const clock = new FakeClock();
  const ended: string[] = [];
  const wait = (name: string, ms: number) =>
    clock.after(ms).then(() => ended.push(`${name}@${clock.monotonic()}`));
  void wait("c", 30);
  void wait("a", 10);
  void wait("b", 10);
  await clock.advance(20);
  assertEquals(ended, ["a@10", "b@10"]);
  assertEquals([clock.monotonic(), clock.pending], [20, 1]);
  await clock.advance(10);
  assertEquals(ended.at(-1), "c@30");
});

Deno.test("advance() runs waits that earlier ones start, in the same move", async () => {
  const clock = new FakeClock();
  const times: number[] = [];
  const loop = async () => {
    for (let round = 0; round < 5; round++) {
      await clock.after(10);
      for (let hop = 0; hop < 50; hop++) await null;
      times.push(clock.monotonic());
    }
  };
  void loop();
  await clock.advance(35);
  assertEquals(times, [10, 20, 30]);
});

Deno.test("now() moves with the clock from its start", async () => {
  const clock = new FakeClock(1000);
  await clock.advance(5);
  assertEquals([clock.now(), clock.monotonic()], [1005, 5]);
  assertEquals(new Date(new FakeClock().now()).toISOString(), "2026-01-01T00:00:00.000Z");
});

Deno.test("after() rejects when its signal aborts, and removes its timer", async () => {
  const clock = new FakeClock();
  const stop = new AbortController();
  const waiting = assertRejects(() => clock.after(10, stop.signal), Error, "stop");
  assertEquals(clock.pending, 1);
  stop.abort(new Error("stop"));
  await waiting;
  assertEquals(clock.pending, 0);
  await assertRejects(() => clock.after(10, stop.signal), Error, "stop");
});

Deno.test("after() of no time resolves without a move", async () => {
  const clock = new FakeClock();
  await clock.after(0);
  await clock.after(-1);
  assertEquals(clock.pending, 0);
});

Deno.test("advanceToNext() advances to the next wait and returns false without one", async () => {
  const clock = new FakeClock();
  void clock.after(700);
  assert(await clock.advanceToNext());
  assertEquals(clock.monotonic(), 700);
  assert(!(await clock.advanceToNext()));
});

Deno.test("advance() refuses to go backwards", async () => {
  await assertRejects(() => new FakeClock().advance(-1), RangeError, "must not go backwards");
});

Deno.test("waitFor() looks until the condition holds or the time is over", async () => {
  const clock = new FakeClock();
  let looks = 0;
  const found = waitFor(() => ++looks === 4, { clock });
  const lost = waitFor(() => false, { clock, timeout_ms: 50 });
  await clock.advance(100);
  assertEquals([await found, await lost, looks], [true, false, 4]);
  assert(await waitFor(() => Promise.resolve(true)));
});

Deno.test("withinTime() resolves to the result, or rejects with the message after the timeout", async () => {
  const clock = new FakeClock();
  assertEquals(await withinTime(Promise.resolve(1), 10, "late", clock), 1);
  assertEquals(await withinTime(Promise.resolve(1), 0, "late", clock), 1);
  await turn();
  assertEquals(clock.pending, 0);
  const late = assertRejects(() => withinTime(new Promise(() => {}), 10, "late", clock), Error, "late");
  await clock.advance(10);
  await late;
});

Deno.test("realClock waits in real time and can be stopped", async () => {
  await realClock.after(1);
  const stop = new AbortController();
  const waiting = assertRejects(() => realClock.after(60_000, stop.signal), Error, "stop");
  stop.abort(new Error("stop"));
  await waiting;
});

Deno.test("later() calls back when its time comes, and not after it was stopped", async () => {
  const clock = new FakeClock();
  const called: string[] = [];
  clock.later(10, () => called.push(`first@${clock.monotonic()}`));
  clock.later(10, () => called.push("stopped"))();
  clock.later(0, () => called.push(`at once@${clock.monotonic()}`));
  await clock.advance(10);
  assertEquals([called, clock.pending], [["at once@0", "first@10"], 0]);
});

Deno.test("advance() lets all work run that can, also where a module of Node was loaded by its name", async () => {
  nodeCrypto();
  const clock = new FakeClock();
  const ended: number[] = [];
  void (async () => {
    for (let step = 0; step < 1_000; step++) await null;
    await new Promise((resolve) => setImmediate(resolve));
    await clock.after(10);
    ended.push(clock.monotonic());
  })();
  await clock.advance(20);
  assertEquals(ended, [10]);
});
