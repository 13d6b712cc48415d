/** Schemas as the Gemini API takes them. */
import type { JsonObject } from "preamp";
import { withoutReferences } from "../../modules/provider-gemini/schema.ts";
import { assert, assertEquals } from "../assert.ts";

const TEXT = { type: "string" };

Deno.test("withoutReferences() puts the content of references in their place, with the keywords beside them", () => {
  assertEquals(
    withoutReferences({
      $schema: "https://json-schema.org/draft/2020-12/schema",
      type: "object",
      properties: {
        from: { $ref: "#/$defs/place", description: "Where it begins." },
        old: { anyOf: [{ $ref: "#/definitions/a~1b" }, { type: "null" }] },
        again: { items: { $ref: "#/properties/from" } },
        $ref: TEXT,
      },
      $defs: { place: { type: "object", properties: { name: { $ref: "#/$defs/name" } } }, name: TEXT },
      definitions: { "a/b": TEXT },
    }),
    {
      type: "object",
      properties: {
        from: { type: "object", properties: { name: TEXT }, description: "Where it begins." },
        old: { anyOf: [TEXT, { type: "null" }] },
        again: { items: { type: "object", properties: { name: TEXT }, description: "Where it begins." } },
        $ref: TEXT,
      },
    },
  );
});

Deno.test("withoutReferences() keeps a reference within its own content, without other keywords", () => {
  const next = { $ref: "#/$defs/node", description: "The next one." };
  const node = { type: "object", properties: { next } };
  const bare = { type: "object", properties: { next: { $ref: "#/$defs/node" } } };
  assertEquals(
    withoutReferences({ type: "object", properties: { first: next }, $defs: { node } }),
    {
      type: "object",
      properties: { first: { ...bare, description: "The next one." } },
      $defs: { node: bare },
    },
  );
});

Deno.test("withoutReferences() keeps the references of a schema whose content would multiply", () => {
  const $defs: JsonObject = { level0: TEXT };
  for (let level = 1; level <= 30; level++) {
    const below = { $ref: `#/$defs/level${level - 1}`, description: "below" };
    $defs[`level${level}`] = { type: "object", properties: { a: below, b: below } };
  }
  const schema = withoutReferences({
    type: "object",
    properties: { top: { $ref: "#/$defs/level30" } },
    $defs,
  });
  assertEquals((schema.$defs as JsonObject).level1, {
    type: "object",
    properties: { a: { $ref: "#/$defs/level0" }, b: { $ref: "#/$defs/level0" } },
  });
});

Deno.test("withoutReferences() leaves out required names without a property", () => {
  assertEquals(
    withoutReferences({
      type: "object",
      properties: { list: { type: "array", items: { type: "object", required: ["id"] } }, key: TEXT },
      required: ["key", "unknown"],
    }),
    {
      type: "object",
      properties: { list: { type: "array", items: { type: "object" } }, key: TEXT },
      required: ["key"],
    },
  );
});

Deno.test("withoutReferences() finds what references of all forms refer to", () => {
  const place = { type: "object", properties: { x: TEXT } };
  const schema = {
    type: "object",
    properties: {
      first: { anyOf: [place, { type: "null" }] },
      step: { $ref: "#/properties/first/anyOf/0" },
      encoded: { $ref: "#/$defs/List%3CPlace%3E" },
      percent: { $ref: "#/definitions/100%" },
      any: { $ref: "#/$defs/any", description: "Anything." },
    },
    $defs: { "List<Place>": TEXT, any: true },
    definitions: { "100%": TEXT },
  };
  assertEquals(withoutReferences(schema), {
    type: "object",
    properties: {
      first: { anyOf: [place, { type: "null" }] },
      step: place,
      encoded: TEXT,
      percent: TEXT,
      any: { description: "Anything." },
    },
  });
});

for (const $ref of ["#node", "#/$defs/missing", "#/$defs/never", "#", "https://example.com/schema"]) {
  Deno.test(`withoutReferences() keeps a reference to an unknown place, and all that it may refer to: ${$ref}`, () => {
    const $defs = { node: { $anchor: "node", ...TEXT }, never: false };
    assertEquals(
      withoutReferences({ properties: { a: { $ref, description: "Left out." }, b: TEXT }, $defs }),
      { properties: { a: { $ref }, b: TEXT }, $defs },
    );
  });
}

Deno.test("withoutReferences() keeps data, and properties that have names of keywords", () => {
  const data = { required: ["z"], $ref: "#/$defs/a", $schema: "x" };
  const schema = {
    type: "object",
    properties: { key: { const: data, default: data, enum: [data], examples: [data] } },
  };
  assertEquals(withoutReferences(schema), schema);
  const named = { const: { $ref: "#/$defs/a" }, default: { $ref: "#/$defs/a" }, required: TEXT };
  assertEquals(withoutReferences({ properties: named, required: ["default"], $defs: { a: TEXT } }), {
    type: "object",
    properties: { const: TEXT, default: TEXT, required: TEXT },
    required: ["default"],
  });
});

Deno.test("withoutReferences() requires a property in allOf where it is", () => {
  assertEquals(
    withoutReferences({
      type: "object",
      properties: { own: TEXT },
      allOf: [{ $ref: "#/$defs/part" }, { properties: { b: TEXT } }, true],
      required: ["own", "a", "b", "unknown"],
      $defs: { part: { properties: { a: TEXT, c: TEXT }, required: ["c"] } },
    }),
    {
      type: "object",
      properties: { own: TEXT },
      allOf: [
        { type: "object", properties: { a: TEXT, c: TEXT }, required: ["c", "a"] },
        { type: "object", properties: { b: TEXT }, required: ["b"] },
        true,
      ],
      required: ["own"],
    },
  );
});

Deno.test("withoutReferences() gives alternatives the properties of their object that they require", () => {
  const properties = { name: TEXT, kind: { $ref: "#/$defs/kind" }, other: TEXT };
  const kind = { enum: ["a"] };
  const schema = {
    type: "object",
    properties,
    anyOf: [
      { required: ["name"] },
      { oneOf: [{ required: ["kind", "unknown"] }, { $ref: "#/$defs/both" }] },
      { properties: { name: { const: "x" } }, required: ["name"] },
      { properties: { nested: { required: ["name"] } } },
    ],
    $defs: { kind, both: { required: ["name", "kind"] } },
  };
  assertEquals(withoutReferences(schema), {
    type: "object",
    properties: { ...properties, kind },
    anyOf: [
      { type: "object", properties: { name: TEXT }, required: ["name"] },
      {
        oneOf: [
          { type: "object", properties: { kind }, required: ["kind"] },
          { type: "object", properties: { name: TEXT, kind }, required: ["name", "kind"] },
        ],
      },
      { type: "object", properties: { name: { const: "x" } }, required: ["name"] },
      { properties: { nested: {} } },
    ],
  });
});

Deno.test("withoutReferences() makes schemas with many alternatives little larger", () => {
  const size = (value: JsonObject) => JSON.stringify(value).length;
  const names = Array.from({ length: 40 }, (_, index) => `property_${index}`);
  const described = { type: "string", description: "what it is ".repeat(20) };
  const properties = Object.fromEntries(names.map((name) => [name, described]));
  const required = [...names, "unknown"];
  const anyOf = Array.from({ length: 300 }, () => ({ required }));
  const schema = { type: "object", properties, anyOf };
  const { anyOf: kept, ...rest } = withoutReferences(schema);
  assertEquals(rest, { type: "object", properties });
  assert(size({ kept }) < 15_000);
  const nested = { anyOf: [{ required, anyOf: [{ required, properties: { own: schema } }] }] };
  assert(size(withoutReferences({ ...schema, ...nested })) < 2 * size(schema));
});

Deno.test("withoutReferences() cleans a large schema with few references", () => {
  const item = { type: "object", properties: { a: { $ref: "#/$defs/text" } }, required: ["b"] };
  const properties = Object.fromEntries(Array.from({ length: 4000 }, (_, index) => [`p${index}`, item]));
  const cleaned = withoutReferences({ type: "object", properties, $defs: { text: TEXT } });
  assertEquals((cleaned.properties as JsonObject).p3999, { type: "object", properties: { a: TEXT } });
});

Deno.test("withoutReferences() requires names beside anyOf where they are properties, at any depth", () => {
  assertEquals(
    withoutReferences({
      type: "object",
      required: ["a", "b"],
      anyOf: [{ properties: { a: TEXT } }, { oneOf: [{ properties: { b: TEXT } }, { type: "null" }] }],
    }),
    {
      type: "object",
      anyOf: [
        { type: "object", properties: { a: TEXT }, required: ["a"] },
        { oneOf: [{ type: "object", properties: { b: TEXT }, required: ["b"] }, { type: "null" }] },
      ],
    },
  );
});

for (
  const top of [{ type: "object", properties: { a: { $ref: "#/$defs/key5000" } } }, {
    $ref: "#/$defs/key5000",
  }]
) {
  Deno.test(`withoutReferences() keeps a chain of thousands of references: ${Object.keys(top)}`, () => {
    const $defs: JsonObject = { key0: TEXT };
    for (let count = 1; count <= 5000; count++) {
      $defs[`key${count}`] = { items: { $ref: `#/$defs/key${count - 1}` } };
    }
    assertEquals(withoutReferences({ ...top, $defs }), { ...top, $defs });
  });
}
