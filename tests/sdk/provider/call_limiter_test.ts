/** Calls that wait for others with the same key. */
import { FakeClock } from "preamp/testing";
import { sharedLimiter } from "../../../src/sdk/provider/call_limiter.ts";
import { assertEquals, assertRejects } from "../../assert.ts";

Deno.test("a call whose wait cannot be reported gives up its place and the signal", async () => {
  const limiter = sharedLimiter("a call whose wait cannot be reported");
  const limits = { max_concurrent: 1, min_delay_ms: 0 };
  const clock = new FakeClock();
  const { signal } = new AbortController();
  let listeners = 0;
  const { addEventListener, removeEventListener } = signal;
  signal.addEventListener = (...args: unknown[]) => {
    listeners++;
    Reflect.apply(addEventListener, signal, args);
  };
  signal.removeEventListener = (...args: unknown[]) => {
    listeners--;
    Reflect.apply(removeEventListener, signal, args);
  };
  const events = { onQueued: () => {}, onDelay: () => {} };
  const leave = await limiter.enter(limits, clock, signal, events);
  const failing = { ...events, onQueued: () => Promise.reject(new Error("a hook failed")) };
  await assertRejects(() => limiter.enter(limits, clock, signal, failing), Error, "a hook failed");
  await Promise.resolve();
  assertEquals(listeners, 0);
  leave();
  const leaveNext = await limiter.enter(limits, clock, signal, events);
  leaveNext();
  assertEquals(limiter.idle, true);
});
