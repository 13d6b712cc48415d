import fc from "fast-check";
import { readToolInput } from "../../../src/sdk/loop/tool_input_reading.ts";
import { inputProblems, schemaProblems } from "../../../src/sdk/loop/tool_input_validation.ts";
import type { JsonObject } from "../../../src/sdk/types.ts";
import { assert, assertEquals } from "../../assert.ts";

const object = (properties: JsonObject, more: JsonObject = {}) => ({ type: "object", properties, ...more });

/** Reads a value of a property with a schema; undefined: it is left out. */
function read(schema: JsonObject, value: unknown, more: JsonObject = {}): unknown {
  return readToolInput(object({ it: schema }, more), { it: value }).it;
}

const LIST = { type: "array", items: object({ n: { type: "integer" }, on: { type: "boolean" } }) };
const REFERENCE = { anyOf: [{ $ref: "#/$defs/point" }, { type: "null" }] };
const DEFS = { $defs: { point: object({ x: { type: "number" }, next: { $ref: "#/$defs/point" } }) } };

Deno.test("readToolInput() reads a text as the value that the schema must mean", () => {
  const cases: [schema: JsonObject, text: unknown, value: unknown][] = [
    [{ type: "integer" }, "20", 20],
    [{ type: "integer" }, " -3 ", -3],
    [{ type: "number" }, "1.5e3", 1500],
    [{ type: "boolean" }, "true", true],
    [{ type: "boolean" }, "False", false],
    [{ type: ["integer", "null"] }, "null", null],
    [{ enum: [1, 2] }, "2", 2],
    [{ const: true }, "true", true],
    [LIST, '[{"n":"1","on":"true"},{"n":2}]', [{ n: 1, on: true }, { n: 2 }]],
    [LIST, [{ n: "1" }, '{"n":2,"on":null}'], [{ n: 1 }, { n: 2 }]],
    [object({}), '{"a":1}', { a: 1 }],
    [{ anyOf: [{ type: "integer" }, { type: "null" }] }, "7", 7],
    [{ allOf: [{ type: "number" }, { minimum: 1 }] }, "7", 7],
    [REFERENCE, '{"x":"1","next":{"x":"2"}}', { x: 1, next: { x: 2 } }],
    [{ type: "object", additionalProperties: { type: "integer" } }, { a: "1" }, { a: 1 }],
    [{ type: "array", prefixItems: [{ type: "integer" }], items: { type: "boolean" } }, ["1", "true"], [
      1,
      true,
    ]],
  ];
  for (const [schema, text, value] of cases) {
    assertEquals(read(schema, text, DEFS), value, JSON.stringify(text));
  }
});

Deno.test("readToolInput() leaves what has another meaning, or none, to validation", () => {
  const cases: [schema: JsonObject, value: unknown][] = [
    [{ type: "string" }, "20"],
    [{ type: "string" }, 20],
    [{ type: ["string", "integer"] }, "20"],
    [{ anyOf: [{ type: "integer" }, { type: "string" }] }, "20"],
    [{ enum: ["1", 1] }, "1"],
    [{}, "20"],
    [{ $ref: "https://example.com/schema" }, "20"],
    [{ type: "integer" }, "1.5"],
    [{ type: "integer" }, "12345678901234567890"],
    [{ type: "number" }, "1,000"],
    [{ type: "number" }, "0x10"],
    [{ type: "number" }, "1e999"],
    [{ type: "number" }, ""],
    [{ type: "number" }, true],
    [{ type: "boolean" }, "yes"],
    [{ type: "boolean" }, 1],
    [LIST, "{}"],
    [LIST, "[broken"],
    [LIST, { n: 1 }],
    [{ anyOf: [object({ a: { type: "integer" } }), object({ a: { type: "string" } })] }, { a: "1" }],
  ];
  for (const [schema, value] of cases) {
    assertEquals(read(schema, value), value, JSON.stringify([schema, value]));
  }
});

Deno.test("readToolInput() leaves out a property that is null where it may be absent", () => {
  const has = (schema: JsonObject, more: JsonObject = {}) =>
    Object.hasOwn(readToolInput(object({ it: schema }, more), { it: null }), "it");
  assertEquals(has({ type: "string" }), false);
  assertEquals(has({ enum: ["a"] }), false);
  assertEquals(has({ type: "string" }, { required: ["it"] }), true);
  assertEquals(has({ type: ["string", "null"] }), true);
  assertEquals(has({ anyOf: [{ type: "string" }, { type: "null" }] }), true);
  assertEquals(has({}), true);
  assertEquals(readToolInput(object({}), { other: null }), { other: null });
  assertEquals(readToolInput({ type: "array" }, { it: null }), { it: null });
});

Deno.test("readToolInput() ends for schemas that refer to each other", () => {
  const loop = { $defs: { a: { $ref: "#/$defs/b" }, b: { $ref: "#/$defs/a" } } };
  const input = { it: "1" };
  assertEquals(readToolInput(object({ it: { $ref: "#/$defs/a" } }, loop), input), input);
  const wide = { $defs: { a: { anyOf: Array.from({ length: 9 }, () => ({ $ref: "#/$defs/a" })) } } };
  assertEquals(readToolInput(object({ it: { $ref: "#/$defs/a" } }, wide), input), input);
});

Deno.test("inputProblems() judges an input as the tool gets it", async () => {
  const input_schema = object({ n: { type: "integer" }, to: { type: "string" } }, { required: ["n"] });
  assertEquals(await inputProblems({ input_schema }, { n: "1", to: null }), []);
  assertEquals((await inputProblems({ input_schema }, { n: null })).length, 1);
});

/** A schema without texts, and a value that fits it. */
const { typed } = fc.letrec<{ typed: { schema: JsonObject; value: unknown } }>((tie) => ({
  typed: fc.oneof(
    { depthSize: "small" },
    fc.integer().map((value) => ({ schema: { type: "integer" }, value })),
    fc.double({ min: -9e15, max: 9e15, noNaN: true }).map((value) => ({
      schema: { type: "number" },
      value,
    })),
    fc.boolean().map((value) => ({ schema: { type: ["boolean", "null"] }, value })),
    tie("typed").map(({ schema, value }) => ({
      schema: { type: "array", items: schema },
      value: [value, value],
    })),
    fc.dictionary(fc.constantFrom("a", "b", "__proto__", "constructor"), tie("typed")).map((fields) => ({
      schema: object(Object.fromEntries(Object.entries(fields).map(([name, { schema }]) => [name, schema]))),
      value: Object.fromEntries(Object.entries(fields).map(([name, { value }]) => [name, value])),
    })),
  ),
}));

Deno.test("readToolInput() reads any value from its JSON text, and does not change what fits", () =>
  fc.assert(fc.asyncProperty(typed, async ({ schema, value }) => {
    const whole = object({ it: schema });
    const input = { it: value };
    if ((await schemaProblems(whole, input, "input")).length > 0) return; // such as a number that is too large
    assert(readToolInput(whole, input) === input);
    const [text, again] = [{ it: JSON.stringify(value) }, { it: JSON.parse(JSON.stringify(value)) }];
    assertEquals(readToolInput(whole, text), again);
    assertEquals(readToolInput(whole, { ...input, more: null }), { ...input, more: null });
  })));
