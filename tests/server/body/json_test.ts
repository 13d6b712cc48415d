import fc from "fast-check";
import { parseJsonData, parseSimpleJson } from "../../../src/server/body/json.ts";
import { assert, assertEquals } from "../../assert.ts";
import { bodyOf, problemOf, testApp } from "../../support/http.ts";

Deno.test("parseSimpleJson() returns the data of the full parser for text of JSON.stringify", () => {
  fc.assert(fc.property(fc.json({ maxDepth: 5 }), (text) => {
    const data = parseSimpleJson(text);
    if (data !== undefined) assertEquals(data, parseJsonData(text, "the text"));
  }));
  const text = JSON.stringify({
    prompt: "Hello",
    plan: { tools: ["tool-todo"] },
    metadata: { n: 1.5, on: true },
  });
  assertEquals(parseSimpleJson(text), JSON.parse(text));
});

Deno.test("parseSimpleJson() returns undefined for text that the full parser must check", () => {
  const left = [
    '{"a":1,"a":2}',
    '{"__proto__":{}}',
    '{"a":{"constructor":1}}',
    '{"\\u005f_proto__":1}',
    '{"a":"\\ud800"}',
    '{"\\udfff":1}',
    "[1e999]",
    "[-0]",
    "[12345678901234567890]",
    '{ "a": 1 }',
    '{"a":1}]',
    '{"a":',
    "",
    `${"[".repeat(65)}1${"]".repeat(65)}`,
    `${"[".repeat(100_000)}`,
    JSON.stringify(new Array(20_001).fill(1)),
  ];
  for (const text of left.slice(0, -2)) assertEquals([text, parseSimpleJson(text)], [text, undefined]);
  for (const text of left.slice(-2)) assertEquals(parseSimpleJson(text), undefined);
});

const BOMB = `[${"1,".repeat(25_000)}1]`;
for (
  const [body, expected] of [
    [`{"prompt":"x","metadata":{"plan":${BOMB}}}`, "400 request_invalid"],
    [`{"prompt":"\\"plan","plan":{"tools":${BOMB}}}`, "422 plan_limit_exceeded"],
    [`{"session":{},"tools":${BOMB}}`, "422 plan_limit_exceeded"],
    [BOMB, "400 request_invalid"],
  ] as const
) {
  Deno.test(`POST /v1/runs answers ${expected} to too many values in ${body.slice(0, 30)}`, async () => {
    const { send } = testApp();
    assertEquals(await problemOf(await send("POST /v1/runs?prompt=x", { body })), expected);
  });
}

for (
  const [name, body, where] of [
    ["broken JSON", '{"prompt": "x",\n  oops}', [2, 3]],
    ["two documents", '{"prompt":"x"} {}', [1, 16]],
    ["a duplicate key", '{"prompt":"x","prompt":"y"}', [1, 15]],
    ["a __proto__ key", '{"prompt":"x","metadata":{"__proto__":{"a":1}}}', [1, 27]],
    ["an escaped __proto__ key", '{"prompt":"x","\\u005f_proto__":1}', [1, 15]],
    ["a constructor key", '{"prompt":"x","metadata":{"constructor":1}}', [1, 27]],
    ["half of a surrogate pair", '{"prompt":"\\ud800"}', [1, 11]],
    ["a number without end", '{"prompt":"x","metadata":{"n":1e999}}', [1, 31]],
    ["an empty body", "", [1, 1]],
  ] as const
) {
  Deno.test(`POST /v1/runs refuses ${name} with line and column`, async () => {
    const { send, created } = testApp();
    const { error } = await bodyOf(await send("POST /v1/runs", { body }), "Problem");
    assertEquals(error.code, "request_invalid");
    assertEquals([error.details[0].line, error.details[0].column], where);
    assertEquals(created.length, 0);
  });
}

Deno.test("POST /v1/runs answers errors inside plan with a plan's codes", async () => {
  const { send } = testApp();
  const doubled = '{"prompt":"x","plan":{"tools":[],"tools":[]}}';
  assertEquals(await problemOf(await send("POST /v1/runs", { body: doubled })), "400 plan_invalid");
  const deep = `{"prompt":"x","plan":{"a":${"[".repeat(100)}${"]".repeat(100)}}}`;
  assertEquals(await problemOf(await send("POST /v1/runs", { body: deep })), "422 plan_limit_exceeded");
});

Deno.test("POST /v1/runs refuses deep nesting quickly, and does not change prototypes", async () => {
  const { send } = testApp();
  for (const levels of [100, 1000, 30_000]) {
    const body = `{"prompt":"x","metadata":{"a":${"[".repeat(levels)}${"]".repeat(levels)}}}`;
    assertEquals(await problemOf(await send("POST /v1/runs", { body })), "400 request_invalid");
  }
  assertEquals(
    await problemOf(await send("POST /v1/runs", { body: "[".repeat(60_000) })),
    "400 request_invalid",
  );
  await send("POST /v1/runs", {
    body: '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}',
  });
  assert(!("polluted" in {}));
});
