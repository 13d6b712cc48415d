import { assert, assertEquals, assertMatch } from "../assert.ts";
import { systemClock } from "../../src/process/system_clock.ts";
import type { JsonObject } from "../../src/sdk/json.ts";
import { formatLogLine, formatLogRecord, type LogRecord } from "../../src/server/access_log.ts";
import { escapeAndTruncate } from "../../src/text/escape.ts";
import { problemResponse, toProblem } from "../../src/server/problems.ts";
import { ERRORS } from "../../src/sdk/error_codes.ts";
import { type ErrorCode, PreampError } from "../../src/sdk/errors.ts";
import { bodyOf, problemOf, testApp } from "./client.ts";

const CODES = Object.keys(ERRORS) as ErrorCode[]; // the table's keys are the codes

for (const code of CODES) {
  Deno.test(`toProblem() returns status and title of ${code}`, async () => {
    const response = problemResponse(toProblem(new PreampError(code, "Cannot x: y: received z")), "req_1");
    const body = await bodyOf(response, "Problem");
    assertMatch(code, /^[a-z][a-z0-9_]*$/);
    assertEquals([response.status, body.status, body.title], [
      ERRORS[code].status,
      ERRORS[code].status,
      ERRORS[code].title,
    ]);
    assertEquals([body.type, body.error.code, body.error.request_id], [
      `urn:preamp:problem:${code}`,
      code,
      "req_1",
    ]);
    assertEquals(body.detail, body.error.message);
    const retry = response.headers.get("retry-after");
    assertEquals(retry, response.status === 429 || response.status === 503 ? "1" : null);
  });
}

Deno.test("toProblem() distinguishes errors by code, not by class", () => {
  const copy = Object.assign(new Error("Cannot x"), {
    code: "not_found",
    details: [{ path: "a", message: "b" }],
  });
  assertEquals([toProblem(copy).status, toProblem(copy).details.length], [404, 1]);
});

for (
  const error of [
    new Error("secret"),
    Object.assign(new Error("secret"), { code: "ENOENT" }),
    Object.assign(new Error("secret"), { code: "toString" }),
    Object.assign(new Error("secret"), { code: "__proto__" }),
    new PreampError("internal", "secret", { details: [{ path: "secret", message: "secret" }] }),
    "secret",
    undefined,
    null,
    { code: 404, message: "secret" },
  ]
) {
  Deno.test(`toProblem() hides ${JSON.stringify(error)} ${(error as Error)?.message ?? ""} behind internal`, () => {
    const problem = toProblem(error);
    assertEquals([problem.status, problem.code], [500, "internal"]);
    assert(!JSON.stringify(problem).includes("secret"));
  });
}

Deno.test("toProblem() reads Retry-After from the facts", () => {
  const error = new PreampError("too_many_runs", "Cannot x", { facts: { retry_after_s: 2.1 } });
  assertEquals(toProblem(error).retry_after_s, 3);
});

Deno.test("toProblem() limits messages to 2 KiB of printable text", () => {
  const hostile = `\u001b[31mred\r\nid: 7\u202e\ud800${"é".repeat(5000)}`;
  const { message, details } = toProblem(
    new PreampError("plan_invalid", hostile, {
      details: [{ path: hostile, message: hostile, hint: hostile }],
    }),
  );
  for (const text of [message, details[0]!.path, details[0]!.message, details[0]!.hint!]) {
    assert(new TextEncoder().encode(text).byteLength <= 2048);
    assert(!/[\p{Cc}\p{Cf}\p{Cs}]/u.test(text), JSON.stringify(text.slice(0, 80)));
    assertMatch(text, /^\\u001b\[31mred id: 7\\u202e\\ud800é+…$/);
  }
});

Deno.test("escapeAndTruncate() returns printable text unchanged", () => {
  assertEquals(escapeAndTruncate("6 × 7 is 42 😀", 100), "6 × 7 is 42 😀");
  assertEquals(escapeAndTruncate("ééé", 6), "ééé");
  assertEquals(escapeAndTruncate("éééé", 6), "é…");
});

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

Deno.test("formatLogLine() returns a line of JSON for any value", () => {
  const cyclic: JsonObject = { level: "info", ts: "t", message: "m" };
  cyclic.self = cyclic;
  const wide = Object.fromEntries(
    Array.from({ length: 500 }, (_, index) => [`field ${index}`, "漢".repeat(50)]),
  );
  const deep = JSON.parse("[".repeat(900) + "]".repeat(900));
  const facts = {
    n: 10n,
    deep,
    wide,
    hostile: {
      toJSON: () => {
        throw new Error("no");
      },
    },
  };
  for (const fields of [cyclic, { ...facts, level: "info" }, { many: Array(50).fill(wide) }]) {
    const line = formatLogLine(fields as JsonObject);
    assert(!line.includes("\n") && new TextEncoder().encode(line).length < 16 * 1024);
    assertEquals(typeof JSON.parse(line), "object");
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

Deno.test("every request is logged once, without query, body or key", async () => {
  const { send, logged } = testApp();
  await (await send("POST /v1/runs?prompt=answer+secret", { body: `{"session":{}}` })).body?.cancel();
  await problemOf(await send("GET /v1/runs/x", { headers: { authorization: "Bearer secret" } }));
  assertEquals(logged.map(({ method, path, status, caller, code }) => [method, path, status, caller, code]), [
    ["POST", "/v1/runs", 200, "key:k1", undefined],
    ["GET", "/v1/runs/x", 401, null, "unauthorized"],
  ]);
  assert(!JSON.stringify(logged).includes("secret"));
});
