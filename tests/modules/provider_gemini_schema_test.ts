/** Schemas as the Gemini API takes them. */
import type { JsonObject } from "preamp";
import { withoutReferences } from "../../modules/provider-gemini/schema.ts";
import { assertEquals } from "../assert.ts";

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
