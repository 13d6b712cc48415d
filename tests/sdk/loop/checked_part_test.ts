/**
 * The checked part of random schemas: it accepts what the schema accepts and has no slow keyword.
 * `PROPERTY_SEED=1 PROPERTY_RUNS=50000 deno test …` tries others.
 */
import { ignoredKeyword, schemaArrayKeyword, schemaKeyword, schemaMapKeyword } from "@cfworker/json-schema";
import fc from "fast-check";
import { assert, assertEquals, assertStrictEquals } from "../../assert.ts";
import type { JsonObject } from "../../../src/sdk/json.ts";
import { checkedPart } from "../../../src/sdk/loop/checked_part.ts";
import { schemaProblems } from "../../../src/sdk/loop/tool_input_validation.ts";
import { busyTime } from "../../support/busy_time.ts";
import { propertyOptions } from "../../support/cases.ts";

const name = fc.constantFrom("a", "b", "pattern", "not");
const small = fc.nat(2);

const { value } = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 3, depthSize: "small" },
    fc.constantFrom<unknown>("a", "b", "aa", "", 1, 0, -1, true, null),
    fc.array(tie("value"), { maxLength: 3 }),
    fc.dictionary(name, tie("value"), { maxKeys: 3 }),
  ),
}));

/** URI that the validator gives a schema. */
const BASE = "https://github.com/cfworker";

const REFERENCES = [
  ..."# #/$defs/a #/$defs/b #/properties/a #/items #/allOf/0 #/anyOf/0 #/oneOf/0".split(" "),
  ..."#/not #/if #/contains #/properties/a/not #/additionalProperties #/patternProperties/%5Ea".split(" "),
  ..."#/dependencies #/dependencies/a #/examples #/default #/x #x".split(" "),
];

const { schema } = fc.letrec<{ schema: unknown; keywords: JsonObject; list: unknown[]; map: JsonObject }>(
  (tie) => {
    const part = tie("schema");
    const [list, map] = [tie("list"), tie("map")];
    return {
      list: fc.array(part, { minLength: 1, maxLength: 3 }),
      map: fc.dictionary(name, part, { maxKeys: 3 }),
      keywords: fc.oneof(
        fc.record({ type: fc.constantFrom("string", "object", "array", "number", "boolean") }),
        fc.record({ pattern: fc.constantFrom("^a", "b$", ".") }),
        fc.record({ uniqueItems: fc.constant(true) }),
        fc.record({ format: fc.constant("email") }),
        fc.record({
          patternProperties: fc.dictionary(fc.constantFrom("^a", "^b", "."), part, { maxKeys: 2 }),
        }),
        ...["properties", "dependentSchemas", "dependencies", "examples"].map((key) =>
          fc.record({ [key]: map })
        ),
        ...["allOf", "anyOf", "oneOf", "prefixItems", "items"].map((key) => fc.record({ [key]: list })),
        ...["additionalProperties", "unevaluatedProperties", "propertyNames", "not"].map((key) =>
          fc.record({ [key]: part })
        ),
        // keywords that the validator reads as no others do
        ...["dependencies", "examples", "default", "x"].map((key) => fc.record({ [key]: part })),
        fc.record({ $anchor: fc.constantFrom("x", "/$defs/a", "/properties/a") }),
        ...["$id", "id"].map((key) => fc.record({ [key]: fc.constantFrom("y", "#/$defs/a", "#/items") })),
        fc.record({ __absolute_ref__: fc.constantFrom(...REFERENCES).map((place) => BASE + place) }),
        ...["items", "additionalItems", "unevaluatedItems"].map((key) => fc.record({ [key]: part })),
        fc.record({ contains: part, maxContains: small }),
        fc.record({ contains: part, minContains: small }),
        fc.record({ if: part, then: part }),
        fc.record({ if: part, then: part, else: part }),
        fc.record({ $ref: fc.constantFrom(...REFERENCES) }),
        fc.record({ dependentRequired: fc.dictionary(name, fc.array(name, { maxLength: 1 })) }),
        fc.record({ required: fc.array(name, { maxLength: 2 }) }),
        fc.record({ const: value }),
        fc.record({ enum: fc.array(value, { minLength: 1, maxLength: 3 }) }),
        fc.record({ minimum: fc.integer({ min: -1, max: 1 }) }),
        fc.record({ minLength: small }),
        fc.record({ maxItems: small }),
      ),
      schema: fc.oneof(
        { maxDepth: 4, depthSize: "small" },
        fc.boolean(),
        fc.array(tie("keywords"), { minLength: 1, maxLength: 4 }).map(merged),
      ),
    };
  },
);

function merged(objects: readonly unknown[]): JsonObject {
  return Object.assign({}, ...objects);
}

const whole_schema = fc.tuple(fc.array(schema, { minLength: 1, maxLength: 3 }), schema, schema).map((
  [parts, a, b],
): JsonObject => merged([...parts, { $defs: { a, b } }]));

const SLOW = /"(?:pattern|patternProperties|format|uniqueItems|dependencies)":/;

/** Resolves to whether `check` evaluates a regular expression of a schema: only these have the flag u. */
async function evaluatesPattern(check: () => Promise<unknown>): Promise<boolean> {
  const { test } = RegExp.prototype;
  let evaluates = false;
  RegExp.prototype.test = function (text): boolean {
    evaluates ||= this.unicode;
    return test.call(this, text);
  };
  try {
    await check();
  } finally {
    RegExp.prototype.test = test;
  }
  return evaluates;
}

Deno.test("checkedPart() accepts what the schema accepts, evaluates no pattern, and is the schema itself without slow keywords", async () => {
  const accepts = async (part: JsonObject, item: unknown) =>
    (await schemaProblems(part, item, "value")).length === 0;
  await fc.assert(
    fc.asyncProperty(whole_schema, fc.array(value, { minLength: 5, maxLength: 5 }), async (whole, values) => {
      const part = checkedPart(whole);
      if (!SLOW.test(JSON.stringify(whole))) assertStrictEquals(part, whole);
      for (const item of values) {
        if (await accepts(whole, item)) assert(await accepts(part, item), JSON.stringify({ part, item }));
        assert(!await evaluatesPattern(() => accepts(part, item)), JSON.stringify({ part, item }));
      }
    }),
    propertyOptions(300, 2_000, 100_000),
  );
});

const SLOW_PART = { type: "string", pattern: "^a" };

const KEYWORDS = Object.keys({
  ...ignoredKeyword,
  ...schemaArrayKeyword,
  ...schemaKeyword,
  ...schemaMapKeyword,
});

/** Returns schemas that refer to a pattern at each keyword, in each form of value and with each id. */
function* patternsAtKeywords(): Generator<JsonObject> {
  const ids = [{}, { $anchor: "/$defs/a" }, { $id: "#/$defs/a" }, { id: "#/$defs/a" }, { $id: "y" }];
  const hidden = ids.map((id) => ({ ...id, pattern: "^a", propertyNames: { pattern: "^a" } }));
  const values = hidden.flatMap((at) => [at, [at], { k: at }, { length: 1, 0: at }, { default: at }]);
  for (const key of [...KEYWORDS, "dependencies", "examples", "x"]) {
    const places = ["", "/0", "/k", "/default"].map((inner) => `#/${key}${inner}`);
    const references = [
      ...places.map(($ref) => ({ $ref })),
      ...[...places, "y"].map((place) => ({ $ref: "#/$defs/a", __absolute_ref__: BASE + place })),
    ];
    for (const reference of references) {
      for (const value of values) yield { $defs: { a: {} }, ...reference, [key]: value };
    }
  }
}

Deno.test("checkedPart() evaluates no pattern, wherever it is and whatever refers to it", async () => {
  for (const schema of patternsAtKeywords()) {
    const part = checkedPart(schema);
    const evaluates = await evaluatesPattern(async () => {
      for (const item of ["a", { k: "a", default: "a" }, ["a"]]) await schemaProblems(part, item, "value");
    });
    assert(!evaluates, JSON.stringify({ schema, part }));
  }
});

Deno.test("checkedPart() keeps keywords that depend on no slow one", () => {
  const fast = {
    not: { required: ["x"] },
    if: { properties: { kind: { const: 1 } } },
    then: { required: ["y"] },
    oneOf: [{ type: "object" }, { $ref: "#/$defs/fast" }],
    contains: { type: "number" },
    maxContains: 2,
    unevaluatedProperties: false,
    $defs: { fast: { type: "null" } },
  };
  const properties = (schema: unknown) => ({ name: schema, again: { $ref: "#/properties/name" } });
  assertEquals(
    checkedPart({ ...fast, properties: properties(SLOW_PART) }),
    { ...fast, properties: properties({ type: "string" }) },
  );
});

Deno.test("checkedPart() leaves out keywords that depend on a slow one, also by references in a circle", () => {
  const $defs = {
    a: { properties: { next: { $ref: "#/$defs/b" } } },
    b: { items: { $ref: "#/$defs/a" }, anyOf: [SLOW_PART, {}] },
  };
  const part = { $defs: { ...$defs, b: { ...$defs.b, anyOf: [{ type: "string" }, {}] } } };
  const a = { $ref: "#/$defs/a" };
  assertEquals(checkedPart({ $defs, not: a }), part);
  assertEquals(checkedPart({ $defs, contains: a, maxContains: 1 }), { ...part, contains: a });
  assertEquals(checkedPart({ $defs, oneOf: [a, { type: "null" }] }), {
    ...part,
    allOf: [{ anyOf: [a, { type: "null" }] }],
  });
});

Deno.test("checkedPart() takes as evaluated what a left out keyword may evaluate", () => {
  const evaluated = { additionalProperties: true, items: true, additionalItems: true };
  const closed = { unevaluatedProperties: false, unevaluatedItems: false };
  assertEquals(checkedPart({ patternProperties: { "^a": {} }, additionalProperties: false, ...closed }), {
    additionalProperties: true,
    ...closed,
  });
  assertEquals(checkedPart({ if: SLOW_PART, ...closed }), { ...evaluated, ...closed });
  assertEquals(checkedPart({ pattern: "a", $ref: "#/not/x", ...closed }), { ...evaluated, ...closed });
});

Deno.test("checkedPart() accepts what a reference evaluates before a choice of which one must accept", async () => {
  const schema = {
    $ref: "#/$defs/names",
    oneOf: [{ unevaluatedProperties: false }, { required: ["other"] }],
    $defs: { names: { patternProperties: { "^x": {} } } },
  };
  assertEquals(await schemaProblems(schema, { other: 1 }, "value"), []);
  assertEquals(await schemaProblems(checkedPart(schema), { other: 1 }, "value"), []);
});

Deno.test("checkedPart() checks nothing of a schema with a slow keyword and an id inside", () => {
  assertEquals(checkedPart({ ...SLOW_PART, $defs: { a: { $id: "https://example.com/a" } } }), {});
});

Deno.test("checkedPart() takes time in proportion to the schema's size", async () => {
  const size = 20_000;
  const $defs: JsonObject = { d0: SLOW_PART };
  for (let i = 1; i < size; i++) $defs[`d${size - i}`] = { not: { $ref: `#/$defs/d${size - i - 1}` } };
  const schema = { $defs, allOf: Array.from({ length: size }, () => ({ $ref: "#/$defs/d9" })) };
  const { value, busy_ms } = await busyTime(() => Promise.resolve(checkedPart(schema)));
  assert(busy_ms < 3_000, `it took ${busy_ms} ms`);
  assertEquals((value.$defs as JsonObject).d9, {});
});
