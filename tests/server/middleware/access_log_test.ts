import { assert, assertEquals } from "../../assert.ts";
import { systemClock } from "../../../src/process/system_clock.ts";
import { formatLogRecord, type LogRecord } from "../../../src/server/middleware/access_log.ts";
import { PLAN, problemOf, testApp } from "../../support/http.ts";

function record(fields: Partial<LogRecord>): LogRecord {
  return {
    level: "info",
    ts: "2026-11-21T10:00:00.000Z",
    message: "request",
    request_id: "req_1",
    method: "GET",
    path: "/",
    status: 200,
    ms: 1,
    caller: null,
    ...fields,
  };
}

Deno.test("formatLogRecord() returns one line of JSON without raw control characters", () => {
  const path = '/x\n{"level":"info"}\r\u001b[2J\u202e\u2028\u0085\u{e0001}\ud800"';
  const line = formatLogRecord(record({ path }));
  assertEquals(JSON.parse(line).path, path);
  assert(!/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u.test(line));
});

Deno.test("formatLogRecord() limits a line to 16 KiB of valid JSON", () => {
  for (const letter of ["\u001b", "x", "\u6f22", "\ud800", "\u{1f600}", '"']) {
    const long = letter.repeat(20_000);
    const line = formatLogRecord(
      record({ path: long, error: { name: "Error", message: long, stack: long } }),
    );
    assert(new TextEncoder().encode(line).length < 16 * 1024, letter);
    assertEquals([JSON.parse(line).request_id, JSON.parse(line).truncated], ["req_1", true]);
  }
});

Deno.test("a request's milliseconds are logged with three decimals", async () => {
  let now = 0.1;
  const logged: LogRecord[] = [];
  const { app } = testApp({
    clock: { ...systemClock(), monotonic: () => now += 0.123456789 },
    log: (record) => logged.push(record),
  });
  await app.fetch(new Request("http://localhost/healthz"));
  assertEquals(logged[0]?.ms, 0.123);
});

Deno.test("a request that is about a run is logged with the run's id, and its status where the response states it", async () => {
  const { send, logged } = testApp();
  const run = await (await send("POST /v1/runs?prompt=hi", { body: PLAN })).json();
  await (await send(`GET /v1/runs/${run.id}`)).body?.cancel();
  await (await send("GET /v1/modules")).body?.cancel();
  await (await send(`GET /v1/runs/${run.id}/approvals`)).body?.cancel();
  await (await send(`POST /v1/runs/${run.id}/steer`, { body: { text: "x" } })).body?.cancel();
  assertEquals(logged.map(({ status, run_id, run_status }) => [status, run_id, run_status]), [
    [200, run.id, "completed"],
    [200, run.id, undefined],
    [200, undefined, undefined],
    [200, run.id, undefined],
    [409, run.id, undefined],
  ]);
});

Deno.test("every request is logged once, without query, body or key", async () => {
  const { send, logged } = testApp();
  await (await send("POST /v1/runs?prompt=answer+secret", { body: PLAN })).body?.cancel();
  await problemOf(await send("GET /v1/runs/x", { headers: { authorization: "Bearer secret" } }));
  assertEquals(logged.map(({ method, path, status, caller, code }) => [method, path, status, caller, code]), [
    ["POST", "/v1/runs", 200, "key:k1", undefined],
    ["GET", "/v1/runs/x", 401, null, "unauthorized"],
  ]);
  assert(!JSON.stringify(logged).includes("secret"));
});
