import { exampleInput } from "preamp/testing";
import fc from "fast-check";
import { schemaProblems } from "../../src/sdk/loop/tool_input_validation.ts";
import { assertEquals } from "../assert.ts";
import type { JsonObject } from "preamp";

async function madeOf(field: JsonObject): Promise<unknown> {
  const schema = { type: "object", properties: { field }, required: ["field"] };
  const made = await exampleInput(schema);
  return "input" in made ? made.input.field : made;
}

Deno.test("exampleInput() makes a value of each kind of schema", async () => {
  const cases: [schema: JsonObject, value: unknown][] = [
    [{ type: "string" }, "text"],
    [{ type: "string", minLength: 6 }, "textaa"],
    [{ type: "string", maxLength: 2 }, "te"],
    [{ type: "string", format: "uri" }, "https://example.com/"],
    [{ type: "string", format: "date-time" }, "2026-01-01T00:00:00Z"],
    [{ type: "string", pattern: "^[A-Z]{3}-\\d{2,4}$" }, "AAA-00"],
    [{ type: "string", pattern: "^(?:red|green)$" }, "red"],
    [{ type: "integer" }, 1],
    [{ type: "integer", minimum: 5, maximum: 9 }, 5],
    [{ type: "integer", maximum: -3 }, -3],
    [{ type: "number", exclusiveMinimum: 0, exclusiveMaximum: 1 }, 0.5],
    [{ type: "integer", minimum: 7, multipleOf: 5 }, 10],
    [{ type: "boolean" }, true],
    [{ type: ["null", "integer"] }, 1],
    [{ const: 7 }, 7],
    [{ enum: ["b", "a"] }, "b"],
    [{ type: "string", default: "x" }, "x"],
    [{ type: "string", examples: ["y"] }, "y"],
    [{ type: "array", items: { type: "integer" }, minItems: 2, uniqueItems: true }, [1, 2]],
    [{ type: "object", properties: { a: { type: "string" }, b: {} }, required: ["a"] }, { a: "text" }],
    [{ anyOf: [{ type: "null" }, { type: "integer", minimum: 3 }] }, 3],
    [{ allOf: [{ type: "integer", minimum: 3 }, { minimum: 5 }] }, 5],
    [{}, "text"],
  ];
  for (const [schema, value] of cases) assertEquals(await madeOf(schema), value, JSON.stringify(schema));
});

Deno.test("exampleInput() fills optional properties when asked, and follows references", async () => {
  const schema = {
    type: "object",
    $defs: { node: { type: "object", properties: { id: { type: "integer" } }, required: ["id"] } },
    properties: {
      url: { type: "string" },
      node: { $ref: "#/$defs/node" },
      list: { type: "array", items: {} },
    },
    required: ["node"],
    additionalProperties: false,
  };
  assertEquals(await exampleInput(schema), { input: { node: { id: 1 } } });
  assertEquals(await exampleInput(schema, { full: true }), {
    input: { node: { id: 1 }, url: "https://example.com/", list: ["list"].map(() => "text") },
  });
});

Deno.test("exampleInput() returns the reason when it cannot make an input", async () => {
  const impossible: JsonObject[] = [
    { type: "string", pattern: "^(?=.*x)(?!.*x)$" },
    { type: "integer", minimum: 5, maximum: 4 },
    { $ref: "https://example.com/schema" },
    { not: {} },
  ];
  for (const field of impossible) {
    const made = await madeOf(field) as { problem?: unknown };
    assertEquals(typeof made.problem, "string", JSON.stringify(field));
  }
  assertEquals(await exampleInput({ type: "array" }), { problem: "its schema does not describe an object" });
  assertEquals("problem" in await exampleInput({ $ref: "#" }), true);
});

Deno.test("exampleInput() makes only inputs that fit, whatever the schema", async () => {
  const leaf = fc.oneof(
    fc.record({ type: fc.constant("integer"), minimum: fc.integer(), maximum: fc.integer() }),
    fc.record({ type: fc.constant("string"), minLength: fc.nat(20), maxLength: fc.nat(20) }),
    fc.record({ enum: fc.array(fc.jsonValue(), { minLength: 1, maxLength: 3 }) }),
  );
  const schemas = fc.dictionary(fc.string({ minLength: 1 }), leaf, { maxKeys: 4 });
  await fc.assert(
    fc.asyncProperty(schemas, fc.boolean(), async (properties, full) => {
      const schema = { type: "object", properties, required: Object.keys(properties) };
      const made = await exampleInput(schema, { full });
      if ("input" in made) assertEquals(await schemaProblems(schema, made.input, "input"), []);
    }),
    { numRuns: 200 },
  );
});
