import { assert, assertEquals } from "../../assert.ts";
import type { JsonObject } from "../../../src/sdk/json.ts";
import { formatProblems } from "../../../src/sdk/loop/response_format.ts";

function problems(schema: JsonObject, answer: unknown): Promise<string[]> {
  return formatProblems({ type: "json_schema", schema }, JSON.stringify(answer));
}

const BACKTRACKING = `${"a".repeat(60)}!`;

Deno.test("formatProblems() evaluates no regular expression of a schema, and does not compare all pairs", async () => {
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

Deno.test("formatProblems() checks the other keywords of such a schema", async () => {
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

Deno.test("formatProblems() refuses no answer because it does not evaluate a regular expression", async () => {
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

Deno.test("formatProblems() checks every keyword of a schema without them", async () => {
  assert(
    (await problems({ properties: { pattern: { not: { type: "string" } } } }, { pattern: "a" })).length > 0,
  );
  assert((await problems({ oneOf: [{ type: "number" }, { minimum: 0 }] }, 1)).length > 0);
});

Deno.test("formatProblems() refuses no answer because a schema refers to a part that it does not check", async () => {
  const schema = {
    oneOf: [{ type: "object", properties: { k: { type: "string", pattern: "^a" } } }, { type: "null" }],
    $defs: { again: { $ref: "#/oneOf/0/properties/k" } },
    properties: { other: { $ref: "#/$defs/again" } },
  };
  const format = { type: "json_schema", schema } as const;
  assertEquals(await formatProblems(format, '{"k":"a","other":"a"}'), []);
  assertEquals((await formatProblems(format, "{")).length, 1);
});
