import fc from "fast-check";
import { readJsonTree, treeData } from "../../../src/server/body/document.ts";
import { parsePlainJson } from "../../../src/server/body/json.ts";
import { DOCUMENT_LIMITS } from "../../../src/plan/parse/document_limits.ts";
import { assert, assertEquals } from "../../assert.ts";
import { bodyOf, problemOf, testApp } from "../../support/http.ts";

/** Returns the data of the parser that reports every problem; undefined for text that it refuses. */
function carefulData(text: string): unknown {
  try {
    return treeData(readJsonTree(text, "the text", DOCUMENT_LIMITS), text, "the text", DOCUMENT_LIMITS);
  } catch {
    return undefined;
  }
}

const plain = (text: string) => parsePlainJson(text, DOCUMENT_LIMITS);

Deno.test("parsePlainJson() returns what the careful parser returns", () => {
  const key = fc.constantFrom("a", "b", "a:", '"', '\\"', "\\", "__proto__", "constructor", "\ud800");
  const scalar = fc.oneof(key, fc.double(), fc.constantFrom("1e999", "-0", null, true));
  const { value } = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 4 },
      scalar.map((one) => typeof one === "number" ? `${one}` : JSON.stringify(one)),
      tie("list"),
      tie("map"),
    ),
    list: fc.array(tie("value"), { maxLength: 4 }).map((items) => `[${items.join(" ,\n")}]`),
    map: fc.array(fc.tuple(key, tie("value")), { maxLength: 4 }).map((entries) =>
      `{${entries.map(([name, item]) => `${JSON.stringify(name)} : ${item}`).join(",")}}`
    ),
  }));
  const documents = fc.oneof(fc.json({ maxDepth: 5 }), value as fc.Arbitrary<string>, fc.string());
  fc.assert(
    fc.property(documents, (text) => {
      const expected = carefulData(text);
      const found = plain(text);
      const left_to_the_other = found === undefined && text.includes("\\"); // an escape in a key
      if (!left_to_the_other) assertEquals([text, found], [text, expected]);
    }),
    { numRuns: 1_000 },
  );
});

Deno.test("parsePlainJson() does not take an escaped quote for an escaped backslash, as JSON.parse of V8 15.0 does", () => {
  const [backslash, quote] = ['{"a":1,"\\\\":2}', '{"a":1,"\\"":2}'];
  for (const text of [backslash, quote, backslash, quote]) {
    assertEquals(plain(text) ?? carefulData(text), { a: 1, [text === quote ? '"' : "\\"]: 2 });
  }
});

Deno.test("parsePlainJson() accepts any format and size within the limits", () => {
  const data = {
    prompt: 'a "b": c\\',
    plan: { tools: ["tool-todo"] },
    metadata: { n: -0, big: 12345678901234567890 },
  };
  for (const indent of [undefined, 2]) {
    assertEquals(plain(JSON.stringify(data, null, indent)), JSON.parse(JSON.stringify(data)));
  }
  const large = { text: '\\"'.repeat(100_000) };
  assertEquals(plain(JSON.stringify(large)), large);
});

Deno.test("parsePlainJson() returns undefined for text that the careful parser must report", () => {
  const left = [
    '{"a":1,"a":2}',
    '{"a":{"b":1, "b" :2}}',
    '{"__proto__":{}}',
    '{"a":{"constructor":1}}',
    '{"\\u005f_proto__":1}',
    '{"a":"\\ud800"}',
    '{"a":"\\uD800"}',
    '{"\\udfff":1}',
    "[1e999]",
    '{"a":1}]',
    '{"a":',
    "",
    `${"[".repeat(65)}1${"]".repeat(65)}`,
    `${"[".repeat(100_000)}`,
    JSON.stringify(new Array(20_001).fill(1)),
  ];
  for (const text of left) assertEquals([text.slice(0, 40), plain(text)], [text.slice(0, 40), undefined]);
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
