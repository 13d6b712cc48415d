import { assertEquals, assertThrows } from "../../assert.ts";
import { createRateLimiter } from "../../../src/server/middleware/limit_caller.ts";
import { callerBounds } from "../../../src/server/mod.ts";
import { DOCUMENT_LIMITS } from "../../../src/plan/parse/document_limits.ts";
import { defaultPolicy } from "../../../src/policy/settings.ts";
import { problemOf, testApp } from "../../support/http.ts";
import { FakeClock } from "../../../src/testing/clocks.ts";

Deno.test("createRateLimiter() allows a full bucket at once, then one request per refilled token", async () => {
  const clock = new FakeClock();
  const take = createRateLimiter("requests", clock);
  for (let count = 0; count < 60; count++) take("a", 60);
  const error = assertThrows(() => take("a", 60)) as Error & { facts: unknown };
  assertEquals(error.facts, { retry_after_s: 1 });
  take("b", 60);
  await clock.advance(1000);
  take("a", 60);
  assertThrows(() => take("a", 60));
});

Deno.test("createRateLimiter() reports the time to the next token, and is unlimited at 0", () => {
  const take = createRateLimiter("requests", new FakeClock());
  take("a", 1);
  assertEquals((assertThrows(() => take("a", 1)) as Error & { facts: unknown }).facts, { retry_after_s: 60 });
  for (let count = 0; count < 1000; count++) take("c", 0);
});

Deno.test("a caller above its rate gets 429 with Retry-After; runs have their own limit", async () => {
  const { send } = testApp({
    bounds: () => ({ requests_per_minute: 3, runs_per_minute: 1, max_body_bytes: 100 }),
  });
  const run = () => send("POST /v1/runs", { body: { prompt: "answer" } });
  assertEquals((await run()).status, 200);
  const second = await run();
  assertEquals([await problemOf(second), second.headers.get("retry-after")], ["429 rate_limited", "60"]);
  assertEquals((await send("GET /v1/runs")).status, 200);
  assertEquals(await problemOf(await send("GET /v1/runs")), "429 rate_limited");
  assertEquals((await send("GET /v1/runs", { headers: { authorization: "Bearer k2" } })).status, 200);
  assertEquals((await send("GET /healthz")).status, 200);
});

Deno.test("the body limit is that of the caller", async () => {
  const { send } = testApp({
    bounds: ({ name }) => ({
      requests_per_minute: 0,
      runs_per_minute: 0,
      max_body_bytes: name === "key:k1" ? 30 : 1000,
    }),
  });
  const body = { prompt: `answer ${"x".repeat(100)}` };
  assertEquals(await problemOf(await send("POST /v1/runs", { body })), "413 body_too_large");
  const other = await send("POST /v1/runs", { body, headers: { authorization: "Bearer k2" } });
  assertEquals(other.status, 200);
});

Deno.test("callerBounds() returns the limits of a key's own policy", () => {
  const policy = defaultPolicy();
  policy.policies.small = {
    limits: { max_streams_per_key: 3, max_body_bytes: 10, max_page_limit: 5, max_plan_nodes: 9 },
    rates: { runs_per_minute: 1 },
  };
  const boundsOf = callerBounds(policy);
  const caller = { name: "key:a", namespace: "a", origin: "caller" } as const;
  assertEquals(boundsOf(caller), {
    ...policy.rates,
    max_streams: 2_000,
    max_streams_per_key: 500,
    max_body_bytes: policy.limits.max_body_bytes,
    max_page_limit: 1000,
    plan: { ...DOCUMENT_LIMITS },
  });
  assertEquals(boundsOf({ ...caller, policy: "small" }), {
    requests_per_minute: 600,
    runs_per_minute: 1,
    max_streams: 2_000,
    max_streams_per_key: 3,
    max_body_bytes: 10,
    max_page_limit: 5,
    plan: { ...DOCUMENT_LIMITS, max_nodes: 9 },
  });
});
