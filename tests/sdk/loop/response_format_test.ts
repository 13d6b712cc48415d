import * as fc from "fast-check";
import { assert, assertEquals } from "../../assert.ts";
import type { JsonObject } from "../../../src/sdk/json.ts";
import { formattedAnswer } from "../../../src/sdk/loop/response_format.ts";

async function problems(schema: JsonObject, answer: unknown): Promise<readonly string[]> {
  return (await formattedAnswer({ type: "json_schema", schema }, JSON.stringify(answer))).problems;
}

const BACKTRACKING = `${"a".repeat(60)}!`;

Deno.test("formattedAnswer() evaluates no regular expression of a schema, and does not compare all pairs", async () => {
  const slow: [JsonObject, unknown][] = [
    [{ type: "string", pattern: "^(a+)+$" }, BACKTRACKING],
    [{ properties: { x: { pattern: "^(a+)+$" } } }, { x: BACKTRACKING }],
    [{ $ref: "#/$defs/x", $defs: { x: { items: { pattern: "^(a+)+$" } } } }, [BACKTRACKING]],
    [{ patternProperties: { "^(a+)+$": {} }, additionalProperties: false }, { [BACKTRACKING]: 1 }],
    [{ type: "string", format: "url" }, `http://${"a".repeat(60)}_`],
    [{ uniqueItems: true }, Array.from({ length: 20_000 }, (_, index) => [index])],
    [{ dependencies: { k: { propertyNames: { pattern: "^(a+)+$" } } } }, { k: 1, [BACKTRACKING]: 1 }],
  ];
  for (const [schema, answer] of slow) {
    assertEquals(await problems(schema, answer), [], JSON.stringify(schema));
  }
});

Deno.test("formattedAnswer() checks the other keywords of such a schema", async () => {
  const schema = {
    type: "object",
    properties: { id: { type: "string", pattern: "^x", minLength: 3 }, pattern: { type: "number" } },
    required: ["id"],
    additionalProperties: false,
    examples: [{ id: "x-1", $anchor: "x" }],
  };
  assertEquals(await problems(schema, { id: "abc", pattern: 1 }), []);
  for (const answer of [{ id: "ab" }, { id: "abc", pattern: "" }, {}, { id: "abc", more: 1 }]) {
    assert((await problems(schema, answer)).length > 0, JSON.stringify(answer));
  }
});

Deno.test("formattedAnswer() refuses no answer because it does not evaluate a regular expression", async () => {
  const letter = { type: "string", pattern: "^[a-z]$" };
  const digit = { type: "string", pattern: "^[0-9]$" };
  const accepting: [JsonObject, unknown][] = [
    [{ oneOf: [letter, digit] }, "a"],
    [{ not: letter }, "1"],
    [{ if: letter, then: false }, "1"],
    [{ contains: letter, maxContains: 1 }, ["a", "1"]],
    [{ patternProperties: { a: {} }, unevaluatedProperties: false }, { a: 1 }],
    [{ $id: "#/$defs/a", pattern: "a", not: { $ref: "#/$defs/a" } }, "1"],
    [{ $defs: { a: {} }, x: { $anchor: "/$defs/a", pattern: "a" }, not: { $ref: "#/$defs/a" } }, "1"],
    [{ $defs: { a: { pattern: "a" } }, not: { $ref: "#/$defs/a\u0001" } }, "1"],
  ];
  for (const [schema, answer] of accepting) {
    assertEquals(await problems(schema, answer), [], JSON.stringify(schema));
  }
});

Deno.test("formattedAnswer() checks every keyword of a schema without them", async () => {
  assert(
    (await problems({ properties: { pattern: { not: { type: "string" } } } }, { pattern: "a" })).length > 0,
  );
  assert((await problems({ oneOf: [{ type: "number" }, { minimum: 0 }] }, 1)).length > 0);
});

Deno.test("formattedAnswer() refuses no answer because a schema refers to a part that it does not check", async () => {
  const schema = {
    oneOf: [{ type: "object", properties: { k: { type: "string", pattern: "^a" } } }, { type: "null" }],
    $defs: { again: { $ref: "#/oneOf/0/properties/k" } },
    properties: { other: { $ref: "#/$defs/again" } },
  };
  const format = { type: "json_schema", schema } as const;
  assertEquals((await formattedAnswer(format, '{"k":"a","other":"a"}')).problems, []);
  assertEquals((await formattedAnswer(format, "{")).problems.length, 1);
});

const NUMBER = {
  type: "json_schema",
  schema: { type: "object", properties: { n: { type: "integer" } }, required: ["n"] },
} as const;

Deno.test("formattedAnswer() accepts JSON in a fence, after thinking and after a byte order mark, in any combination", async () => {
  const values = fc.oneof(fc.constant('{"n": 4}'), fc.constant('{"n":4,"code":"```js\\n</think>```"}'));
  const fences: ((json: string) => string)[] = [
    (json) => json,
    (json) => `\`\`\`json\n${json}\n\`\`\``,
    (json) => `\`\`\`\n${json}\n\`\`\`\n`,
    (json) => `~~~JSON\n${json}\n~~~`,
    (json) => `\`\`\`json ${json} \`\`\``,
    (json) => `\`\`\`${json}\`\`\``,
    (json) => `Here it is:\n\n  \`\`\`json\n${json}\n  \`\`\`\nThat is all.`,
    (json) => `\`\`\`json\n${json}`,
  ];
  const thinking = fc.constantFrom(
    "",
    "<think>a { b</think>",
    "<think>\n```json\n{}\n```\n</think>\n",
    "Hm.</think>",
  );
  const marks = fc.constantFrom("", "\ufeff", "\n");
  const given = fc.tuple(marks, thinking, marks, fc.constantFrom(...fences), values);
  await fc.assert(fc.asyncProperty(given, async ([mark, thought, inner, fence, json]) => {
    const text = mark + thought + inner + fence(json);
    const { answer, problems } = await formattedAnswer(NUMBER, text);
    assertEquals([problems, JSON.parse(answer)], [[], JSON.parse(json)], text);
  }));
});

Deno.test("formattedAnswer() returns an answer that is JSON as it is, and any other with what is wrong", async () => {
  const json = { type: "json" } as const;
  for (const text of ['"```json\\n1\\n```"', " 4\n", '{"a":"</think>"}']) {
    assertEquals(await formattedAnswer(json, text), { answer: text, problems: [] });
  }
  const wrong: [text: string, problem: RegExp][] = [
    ["The answer is 4.", /^the answer is not JSON: /],
    ['Sure: {"n":4}', /^the answer is not JSON: /],
    ["```json\n{}\n```", /"n"/],
    ['```json\n{"n":"4"}\n```', /^n: /],
    ["", /^the answer is not JSON: /],
  ];
  for (const [text, problem] of wrong) {
    const { answer, problems } = await formattedAnswer(NUMBER, text);
    assertEquals(
      [answer, problems.length > 0 && problem.test(problems[0]!)],
      [text, true],
      `${text}: ${problems}`,
    );
  }
});
