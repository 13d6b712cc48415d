import { objectSchema } from "../../../src/sdk/provider/object_schema.ts";
import { assertEquals } from "../../assert.ts";

const TEXT = { type: "string" };

/** Returns the schema of a branch of a union. */
function branch(kind: string, ...names: string[]) {
  const properties = { kind: { const: kind }, ...Object.fromEntries(names.map((name) => [name, TEXT])) };
  return { type: "object", properties, required: ["kind", ...names] };
}

Deno.test("objectSchema() offers the properties of all alternatives, and requires what each of them requires", () => {
  const joined = {
    type: "object",
    properties: { kind: { anyOf: [{ const: "a" }, { const: "b" }] }, path: TEXT, text: TEXT },
    required: ["kind", "path"],
  };
  const [a, b] = [branch("a", "path"), branch("b", "path", "text")];
  assertEquals(objectSchema({ oneOf: [a, b] }), joined);
  assertEquals(objectSchema({ anyOf: [a, { oneOf: [b] }] }), joined);
  assertEquals(objectSchema({ anyOf: [{ $ref: "#/$defs/a" }, b], $defs: { a } }), {
    ...joined,
    $defs: { a },
  });
  assertEquals(objectSchema({ anyOf: [a, { type: "null" }] }).required, undefined);
});

Deno.test("objectSchema() keeps what the object itself says, and requires only its own properties", () => {
  const properties = { title: TEXT, text: TEXT };
  const own = { type: "object", properties, additionalProperties: false };
  const anyOf = [{ required: ["title"] }, { required: ["text"], properties: { text: { const: "x" } } }];
  assertEquals(objectSchema({ ...own, required: ["title", "unknown"], anyOf }), {
    ...own,
    required: ["title"],
  });
  assertEquals(objectSchema({ ...own, anyOf }), own);
});

Deno.test("objectSchema() requires all that allOf and a reference at the top require", () => {
  const [a, b] = [branch("a"), { properties: { n: TEXT }, required: ["n"] }];
  const both = { type: "object", properties: { kind: { const: "a" }, n: TEXT }, required: ["kind", "n"] };
  assertEquals(objectSchema({ allOf: [a, b] }), both);
  assertEquals(objectSchema({ $ref: "#/definitions/a", allOf: [b], definitions: { a } }), {
    ...both,
    definitions: { a },
    required: ["n", "kind"],
  });
});

Deno.test("objectSchema() ends at references within each other, and adds no properties", () => {
  const $defs = { loop: { anyOf: [{ $ref: "#/$defs/loop" }, { $ref: "#/$defs/loop" }] } };
  assertEquals(objectSchema({ $ref: "#/$defs/loop", $defs }), { type: "object", $defs });
  assertEquals(objectSchema({ $ref: "#/$defs/missing", not: {}, enum: [], $schema: "x" }), {
    type: "object",
  });
});
