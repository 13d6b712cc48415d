/** Which schemas of strangers the host evaluates. */
import { isPlainSchema } from "../../../src/sandbox/guest/guest_proxies.ts";
import { assertEquals } from "../../assert.ts";

Deno.test("isPlainSchema() takes objects, lists and bounds, as deep as they go", () => {
  const schema = {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    type: "object",
    properties: {
      pattern: { type: "string", minLength: 1, description: "a property may have any name" },
      list: { type: "array", items: { type: "object", properties: { n: { enum: [1, 2] } } }, maxItems: 3 },
      open: { type: "object", additionalProperties: { type: "number" } },
    },
    required: ["pattern"],
    additionalProperties: false,
  };
  assertEquals(isPlainSchema(schema), true);
});

Deno.test("isPlainSchema() leaves whatever can take for ever to the guest, wherever it stands", () => {
  const hostile: Record<string, unknown> = {
    pattern: "(a+)+$",
    patternProperties: { "(a+)+$": {} },
    format: "regex",
    $ref: "#",
    $dynamicRef: "#a",
    $defs: { a: {} },
    anyOf: [{}],
    allOf: [{}],
    oneOf: [{}],
    not: {},
    if: {},
    uniqueItems: true,
    contains: {},
    unevaluatedProperties: false,
    propertyNames: { pattern: "(a+)+$" },
    $id: "https://a.example/",
    unknown: 1,
  };
  for (const [keyword, value] of Object.entries(hostile)) {
    const one = { [keyword]: value };
    for (const schema of [one, { properties: { a: one } }, { items: one }, { additionalProperties: one }]) {
      assertEquals(isPlainSchema(schema), false, JSON.stringify(schema));
    }
  }
});

Deno.test("isPlainSchema() refuses invalid and endless schemas", () => {
  for (const schema of [null, "object", [], { items: [{}] }, { properties: { a: 1 } }]) {
    assertEquals(isPlainSchema(schema), false, JSON.stringify(schema));
  }
  const many = Object.fromEntries(Array.from({ length: 501 }, (_, index) => [`p${index}`, {}]));
  assertEquals(isPlainSchema({ properties: many }), false);
  assertEquals(isPlainSchema({ enum: Object.keys(many) }), false);
});
