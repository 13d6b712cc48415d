import { assert, assertEquals, assertRejects } from "../assert.ts";
import { later, systemClock } from "../../src/process/system_clock.ts";
import { AsyncLocalStorage } from "node:async_hooks";

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

function wait(ms: number): Promise<void> {
  return new Promise((resolve) => void later(ms, resolve));
}

Deno.test("later() calls back in the order of the times, and of the calls for the same time", async () => {
  const called: number[] = [];
  const started = performance.now();
  for (const ms of [300, 100, 200, 0, 250, 50, 150]) later(ms, () => called.push(ms));
  await wait(300);
  assertEquals([called, performance.now() - started >= 300], [[0, 50, 100, 150, 200, 250, 300], true]);
});

Deno.test("later() calls back once for each of many waits, and not for those that were cancelled", async () => {
  const called: number[] = [];
  const expected: number[] = [];
  const cancels = Array.from({ length: 500 }, (_, index) => {
    if (index % 3 !== 0) expected.push(index);
    return later((index * 7919) % 23, () => called.push(index));
  });
  for (let index = 0; index < cancels.length; index += 3) cancels[index]!();
  await wait(25);
  for (const cancel of cancels) cancel(); // has no effect any more
  assertEquals(called.sort((a, b) => a - b), expected);
});

Deno.test("later() ends a short wait that starts while a long one runs", async () => {
  const cancel = later(60_000, () => {});
  await wait(1);
  cancel();
});

Deno.test("later() calls back for a wait that another callback starts or that is due with it", async () => {
  const called: string[] = [];
  const cancel = later(30, () => called.push("cancelled")); // later than the others also when this test is interrupted
  later(1, () => {
    cancel();
    called.push("first");
    later(0, () => called.push("third"));
  });
  later(1, () => called.push("second"));
  await wait(60);
  assertEquals(called, ["first", "second", "third"]);
});

Deno.test("later() calls back outside of the async context of the call that started the timer", async () => {
  const context = new AsyncLocalStorage<string>();
  const seen: unknown[] = [];
  const cancel = context.run("another module", () => later(1, () => {}));
  later(2, () => seen.push(context.getStore()));
  await wait(3);
  cancel();
  assertEquals(seen, [undefined]);
});

Deno.test("later() is on time for a wait that is older than a long callback", async () => {
  const called: string[] = [];
  const started = performance.now();
  later(1, () => {
    while (performance.now() - started < 100);
    later(60, () => called.push("younger"));
  });
  later(110, () => called.push("older")); // counted from the end of the callback it would end after the younger one
  await wait(300);
  assertEquals(called, ["older", "younger"]);
});

Deno.test("later() starts no timer with a negative delay when a callback of several that are late adds a wait", async () => {
  const delays: unknown[] = [];
  const original = globalThis.setTimeout;
  globalThis.setTimeout = ((callback: () => void, ms: number) => {
    delays.push(ms);
    return original(callback, ms);
  }) as typeof setTimeout;
  try {
    const done = Promise.withResolvers<void>();
    later(1, () => later(20, done.resolve));
    later(2, () => {});
    const started = performance.now();
    while (performance.now() - started < 20);
    await done.promise;
  } finally {
    globalThis.setTimeout = original;
  }
  assertEquals(delays.filter((ms) => !(Number(ms) >= 0)), []);
});

Deno.test("later() uses the timer of a cancelled wait for the next one", async () => {
  const original = globalThis.setTimeout;
  let timers = 0;
  globalThis.setTimeout = ((callback: () => void, ms: number) => {
    timers++;
    return original(callback, ms);
  }) as typeof setTimeout;
  try {
    for (let times = 0; times < 10; times++) later(30_000, () => {})();
    await wait(1);
  } finally {
    globalThis.setTimeout = original;
  }
  assert(timers <= 2, `started ${timers} timers`);
});

Deno.test("later() keeps the process alive until the last wait ends or is cancelled", async () => {
  const url = new URL("../../src/process/system_clock.ts", import.meta.url);
  const program = `import { later } from "${url}";
    later(5, () => {})();
    later(10, () => { console.log("called"); later(60_000, () => {})(); });`;
  const deno = new Deno.Command(Deno.execPath(), { args: ["eval", "--no-check", program], stderr: "null" });
  assertEquals(new TextDecoder().decode((await deno.output()).stdout), "called\n");
});
