import { LLMError } from "../../src/sdk/llm_errors.ts";
import { RetryConfig, retryDelay, retryDelays, type RetryNotice, withRetry } from "../../src/sdk/retry.ts";
import { FakeClock } from "../../src/testing/clocks.ts";
import { assert, assertEquals, assertRejects, assertThrows } from "../assert.ts";

const limited = (retry_after?: number) =>
  new LLMError("RateLimitError", "slow down", retry_after === undefined ? {} : { retry_after });

Deno.test("withRetry() waits within [0.5, 1.5) of 1 s and 2 s by default", async () => {
  for (const [random, expected] of [[0, [0.5, 1]], [0.5, [1, 2]], [0.999, [1.499, 2.998]]] as const) {
    const clock = new FakeClock();
    const delays: number[] = [];
    const run = withRetry((attempt) => attempt < 3 ? Promise.reject(limited()) : Promise.resolve("done"), {
      clock,
      random: () => random,
      onRetry: ({ delay }) => delays.push(delay),
    });
    while (await clock.advanceToNext());
    assertEquals(await run, "done");
    assertEquals(delays.map((delay) => Math.round(delay * 1000) / 1000), [...expected]);
  }
});

Deno.test("retryDelay() is raised to retry_after, before the jitter", () => {
  const config = RetryConfig();
  assertEquals(retryDelay(1, limited(10), config, () => 0.5), 10);
  assertEquals(retryDelay(1, limited(10), config, () => 0), 5);
  assertEquals(retryDelay(1, limited(10), RetryConfig({ honor_retry_after: false }), () => 0.5), 1);
  assertEquals(retryDelay(5, limited(10), config, () => 0.5), 16);
});

Deno.test("retryDelay() caps, then multiplies past the cap, then takes the floor", () => {
  const config = RetryConfig({ jitter: false });
  assertEquals(retryDelay(20, limited(), config), 60);
  assertEquals(retryDelay(20, new LLMError("RateLimitError", "", { delay_multiplier: 3 }), config), 180);
  assertEquals(
    retryDelay(20, new LLMError("RateLimitError", "", { delay_multiplier: 3, retry_after: 200 }), config),
    200,
  );
  assertEquals(retryDelay(1, "not an error", config), 1);
});

Deno.test("retryDelays() is the ladder without jitter", () => {
  assertEquals(retryDelays(), [1, 2, 4]);
  assertEquals(retryDelays({ max_retries: 5, max_delay: 5 }), [1, 2, 4, 5, 5]);
  assertEquals(retryDelays({ max_retries: 0 }), []);
});

Deno.test("withRetry() gives up after max_retries with the last failure, and reports each wait", async () => {
  const clock = new FakeClock();
  const notices: RetryNotice[] = [];
  let calls = 0;
  const run = withRetry(() => Promise.reject(new LLMError("NetworkError", `down ${++calls}`)), {
    clock,
    config: { max_retries: 2, jitter: false },
    onRetry: (notice) => notices.push(notice),
  });
  const ended = assertRejects(() => run, LLMError, "down 3");
  while (await clock.advanceToNext());
  await ended;
  assertEquals(clock.monotonic(), 3000);
  assertEquals(notices, [
    { attempt: 1, max_retries: 2, delay: 1, error_type: "NetworkError", error_message: "down 1" },
    { attempt: 2, max_retries: 2, delay: 2, error_type: "NetworkError", error_message: "down 2" },
  ]);
});

Deno.test("withRetry() does not retry a failure that is not retryable", async () => {
  let calls = 0;
  const call = () => {
    calls++;
    throw new LLMError("AuthenticationError", "no key");
  };
  await assertRejects(() => withRetry(call, { clock: new FakeClock() }), LLMError, "no key");
  await assertRejects(
    () => withRetry(() => Promise.reject(new Error("bug")), { clock: new FakeClock() }),
    Error,
    "bug",
  );
  assertEquals(calls, 1);
});

Deno.test("withRetry() ends a wait when its signal aborts", async () => {
  const clock = new FakeClock();
  const stop = new AbortController();
  let calls = 0;
  const run = withRetry(() => (calls++, Promise.reject(limited())), { clock, signal: stop.signal });
  const ended = assertRejects(() => run, Error, "enough");
  await clock.advance(0);
  assertEquals(clock.pending, 1);
  stop.abort(new Error("enough"));
  await ended;
  assertEquals([calls, clock.pending], [1, 0]);
});

Deno.test("withRetry() makes no call after its signal has aborted", async () => {
  let called = false;
  const signal = AbortSignal.abort(new Error("enough"));
  await assertRejects(
    () => withRetry(() => called = true, { clock: new FakeClock(), signal }),
    Error,
    "enough",
  );
  assert(!called);
});

Deno.test("RetryConfig() refuses numbers that make no sense", () => {
  assertThrows(() => RetryConfig({ max_retries: -1 }), TypeError, "max_retries");
  assertThrows(() => RetryConfig({ backoff: 0.5 }), TypeError, "backoff must be a number of at least 1");
  assertThrows(() => RetryConfig({ initial_delay: NaN }), TypeError, "initial_delay");
});
