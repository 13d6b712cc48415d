import { objectSchema } from "../../../src/sdk/provider/object_schema.ts";
import { assert, assertEquals } from "../../assert.ts";

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

Deno.test("objectSchema() keeps what the object itself says, and requires of alternatives only what it has", () => {
  const properties = { title: TEXT, text: TEXT };
  const own = { type: "object", properties, additionalProperties: false };
  const anyOf = [{ required: ["title", "other"] }, {
    required: ["text"],
    properties: { text: { const: "x" } },
  }];
  const map = { additionalProperties: TEXT, required: ["title", "any"] };
  assertEquals(objectSchema({ ...own, ...map, anyOf }), { ...own, ...map });
  assertEquals(objectSchema({ ...own, anyOf: [{ required: ["any", "title"] }] }), {
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

Deno.test("objectSchema() offers a property of several parts of allOf as all of them together", () => {
  const [low, high] = [{ minimum: 1 }, { maximum: 9 }];
  const [a, b] = [low, high].map((n) => ({ properties: { n } }));
  assertEquals(objectSchema({ allOf: [a, b] }).properties, { n: { allOf: [low, high] } });
  assertEquals(objectSchema({ anyOf: [a, b] }).properties, { n: { anyOf: [low, high] } });
});

Deno.test("objectSchema() reads a bounded number of parts, and none within itself", () => {
  let reads = 0;
  const node = (name: string, anyOf: unknown[]) => ({
    get properties() {
      reads++;
      return { [name]: TEXT };
    },
    anyOf,
  });
  const loop = { a: node("x", Array(500).fill({ $ref: "#/$defs/a" })) };
  assertEquals(objectSchema({ $ref: "#/$defs/a", $defs: loop }).properties, { x: TEXT });
  assert(reads <= 10, `${reads} reads`);
  reads = 0;
  const all = Array.from({ length: 30 }, (_, index) => ({ $ref: `#/$defs/k${index}` }));
  const $defs = Object.fromEntries(all.map((_, index) => [`k${index}`, node("y", all)]));
  assertEquals(objectSchema({ anyOf: all, properties: { x: TEXT }, $defs }).properties, { y: TEXT, x: TEXT });
  assert(reads <= 5000, `${reads} reads`);
});

Deno.test("objectSchema() ends at references within each other, and adds no properties", () => {
  const $defs = { loop: { anyOf: [{ $ref: "#/$defs/loop" }, { $ref: "#/$defs/loop" }] } };
  assertEquals(objectSchema({ $ref: "#/$defs/loop", $defs }), { type: "object", $defs });
  assertEquals(objectSchema({ $ref: "#/$defs/missing", not: {}, enum: [], $schema: "x" }), {
    type: "object",
  });
});
