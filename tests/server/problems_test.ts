import { assert, assertEquals, assertMatch } from "../assert.ts";
import { problemAnswer, toProblem } from "../../src/server/problems.ts";
import { type ErrorCode, ERRORS, PreampError } from "../../src/sdk/errors.ts";
import { bodyOf } from "../support/http.ts";

const CODES = Object.keys(ERRORS) as ErrorCode[]; // the table's keys are the codes

for (const code of CODES) {
  Deno.test(`toProblem() returns status and title of ${code}`, async () => {
    const { body: text, ...init } = problemAnswer(
      toProblem(new PreampError(code, "Cannot x: y: received z")),
      "req_1",
    );
    const response = new Response(text, init);
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
    assertEquals(retry, [429, 503, 507].includes(response.status) ? "1" : null);
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
