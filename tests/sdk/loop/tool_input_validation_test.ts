import process from "node:process";
import { Validator } from "@cfworker/json-schema";
import { assertEquals } from "../../assert.ts";
import { isValidBySimpleSchema } from "../../../src/sdk/loop/simple_schema.ts";
import { schemaProblems } from "../../../src/sdk/loop/tool_input_validation.ts";
import type { JsonObject } from "../../../src/sdk/types.ts";

/** Returns numbers from 0 up to `below`, the same ones in each run. */
function numbers(): (below: number) => number {
  let state = 42;
  return (below) => {
    state = (state * 1_664_525 + 1_013_904_223) % 2 ** 32;
    return Math.floor(state / 2 ** 32 * below);
  };
}

const SCALARS = ["", "a", "b", 0, 1, 1.5, -3, true, false, null];
const NAMES = ["a", "b", "toString", "constructor"];
const TYPES = ["string", "number", "integer", "boolean", "null", "array", "object", "text"];

function valueOf(pick: (below: number) => number, depth = 0): unknown {
  const kind = depth < 3 ? pick(4) : 0;
  if (kind === 1) return Array.from({ length: pick(3) }, () => valueOf(pick, depth + 1));
  if (kind < 2) return SCALARS[pick(SCALARS.length)];
  const names = NAMES.filter(() => pick(2) === 0);
  return Object.fromEntries(names.map((name) => [name, valueOf(pick, depth + 1)]));
}

function schemaOf(pick: (below: number) => number, depth = 0): JsonObject {
  const schema: JsonObject = {};
  const type = () => TYPES[pick(TYPES.length)];
  if (pick(4) > 0) schema.type = pick(3) > 0 ? type() : [type(), type()];
  if (pick(6) === 0) schema.enum = [SCALARS[pick(SCALARS.length)], SCALARS[pick(SCALARS.length)]];
  if (pick(3) === 0) schema.description = "some words";
  if (pick(20) === 0) schema.minLength = 1;
  if (depth === 3) return schema;
  if (pick(2) === 0) schema.items = schemaOf(pick, depth + 1);
  if (pick(3) > 0) {
    const names = NAMES.filter(() => pick(2) === 0);
    schema.properties = Object.fromEntries(names.map((name) => [name, schemaOf(pick, depth + 1)]));
  }
  if (pick(3) === 0) schema.required = NAMES.filter(() => pick(3) === 0);
  if (pick(3) === 0) schema.additionalProperties = pick(2) === 0;
  return schema;
}

Deno.test("isValidBySimpleSchema() never accepts a value that the validator refuses", () => {
  const pick = numbers();
  const counts = { accepted: 0, left_to_validator: 0, wrong: [] as unknown[] };
  for (let round = 0; round < 20_000; round++) {
    const [schema, value] = [schemaOf(pick), valueOf(pick)];
    if (!isValidBySimpleSchema(schema, value)) counts.left_to_validator++;
    else if (new Validator(structuredClone(schema), "2020-12").validate(value).valid) counts.accepted++;
    else counts.wrong.push({ schema, value });
  }
  assertEquals(counts.wrong, []);
  assertEquals([counts.accepted > 1_000, counts.left_to_validator > 1_000], [true, true]);
});

Deno.test("isValidBySimpleSchema() accepts what a usual tool's schema accepts, so that no validator is needed", () => {
  const schema = {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    type: "object",
    properties: {
      path: { type: "string", description: "Where to write" },
      mode: { enum: ["append", "replace"] },
      lines: { type: ["array", "null"], items: { type: "integer" } },
    },
    required: ["path"],
    additionalProperties: false,
  };
  const inputs = [
    { path: "a" },
    { path: "a", mode: "append", lines: [1, 2] },
    { path: "a", lines: null },
    { path: "a", mode: "other" },
    { path: "a", lines: [1.5] },
    { mode: "append" },
    { path: "a", more: 1 },
    { path: undefined },
  ];
  assertEquals(
    inputs.map((input) => isValidBySimpleSchema(schema, input)),
    [true, true, true, false, false, false, false, false],
  );
});

Deno.test("isValidBySimpleSchema() reads a schema that contains itself only as deep as the value, at most 64 levels", () => {
  const schema: JsonObject = { type: "array" };
  schema.items = schema;
  const values = [[], [[]], [[1]]];
  assertEquals(values.map((value) => isValidBySimpleSchema(schema, value)), [true, true, false]);
  const endless: unknown[] = [];
  endless.push(endless);
  assertEquals(isValidBySimpleSchema(schema, endless), false);
});

Deno.test("schemaProblems() leaves schemas with other keywords to the validator", async () => {
  const a_number = { $ref: "#/$defs/a", $defs: { a: { type: "number" } } };
  const schemas: JsonObject[] = [
    { type: "string", minLength: 2 },
    { properties: { a: { type: "string", pattern: "^b" } } },
    { properties: { a: false } },
    a_number,
    { enum: [{ b: 1 }] },
    { additionalProperties: { type: "number" } },
    { items: { const: 1 } },
    { ...a_number, x: {}, __absolute_ref__: "https://github.com/cfworker#/x" }, // a key of the validator's own
  ];
  const values = ["a", { a: "a" }, { a: 1 }, "a", { b: 2 }, { a: "a" }, [2], "a"];
  const found = await Promise.all(
    schemas.map((schema, index) => schemaProblems(schema, values[index], "input")),
  );
  assertEquals(found.map((problems) => problems.length > 0), schemas.map(() => true));
});

Deno.test("schemaProblems() ends a validation that takes too many steps", async () => {
  const doubled = (keyword: string) => {
    const $defs: JsonObject = { a0: { type: "string" } };
    for (let at = 1; at <= 40; at++) {
      const before = { $ref: `#/$defs/a${at - 1}` };
      $defs[`a${at}`] = { [keyword]: [before, before] };
    }
    return { $ref: "#/$defs/a40", $defs };
  };
  const choices = Array.from({ length: 2_000 }, (_, index) => [index]);
  const strings = choices.map(() => "49999");
  const slow: [JsonObject, unknown][] = [
    [doubled("allOf"), "a"],
    [doubled("anyOf"), 1],
    [{ items: { enum: choices } }, choices],
    [{ items: { allOf: choices.map(() => ({})) } }, choices],
    [{ items: { enum: ["a".repeat(100_000)] } }, choices], // each error repeats it
    [{ items: { const: "a".repeat(100_000) } }, choices],
    [{ items: { type: "string", enum: Array.from({ length: 50_000 }, (_, n) => `${n}`) } }, strings],
    [{ items: { type: Array.from({ length: 50_000 }, () => "string") } }, strings],
  ];
  for (const [schema, value] of slow) {
    assertEquals(await schemaProblems(schema, value, "input"), [
      "the schema cannot be used: it takes more than 100000 steps",
    ]);
  }
});

Deno.test("schemaProblems() ends a validation whose steps take too long, such as with many properties", async () => {
  const schema = { allOf: Array.from({ length: 10 }, () => ({ additionalProperties: false })) };
  assertEquals((await schemaProblems(schema, {}, "input")).length, 0);
  const { now } = performance;
  const { threadCpuUsage } = process;
  let calls = 0;
  let work_us = 0;
  performance.now = () => calls++ * 1_000;
  process.threadCpuUsage = () => ({ user: work_us += 1e6, system: 0 });
  try {
    assertEquals(await schemaProblems(schema, {}, "input"), [
      "the schema cannot be used: it takes more than 2000 ms",
    ]);
    process.threadCpuUsage = () => ({ user: 0, system: 0 }); // other processes have the processors
    assertEquals(await schemaProblems(schema, {}, "input"), []);
  } finally {
    performance.now = now;
    process.threadCpuUsage = threadCpuUsage;
  }
});

Deno.test("schemaProblems() validates a tree with a schema that refers to itself", async () => {
  const schema = { type: "object", properties: { parts: { type: "array", items: { $ref: "#" } } } };
  assertEquals(await schemaProblems(schema, { parts: [{ parts: [{}] }] }, "input"), []);
  assertEquals((await schemaProblems(schema, { parts: [{ parts: [1] }] }, "input")).length, 1);
});

Deno.test("schemaProblems() validates a thousand rows with a long list of choices", async () => {
  const codes = Array.from({ length: 249 }, (_, index) => `c${index}`);
  const row = { type: "object", properties: { code: { enum: codes }, n: { type: "integer" } } };
  const schema = { type: "array", items: { $ref: "#/$defs/row" }, $defs: { row } };
  const rows = codes.flatMap((code) => Array.from({ length: 4 }, (_, n) => ({ code, n })));
  assertEquals(await schemaProblems(schema, rows, "input"), []);
});

Deno.test("schemaProblems() reads type, enum and required with null as absent", async () => {
  const properties = { q: { type: null, enum: null }, n: { type: "integer" } };
  const schema = { type: "object", properties, required: null };
  for (const value of [{ q: "x" }, { q: 1, n: 2 }, {}]) {
    assertEquals(await schemaProblems(schema, value, "input"), []);
  }
  assertEquals((await schemaProblems(schema, { n: "x" }, "input")).length, 1);
  const data = { properties: { f: { const: { type: null } }, g: { enum: [{ required: null }] } } };
  assertEquals(await schemaProblems(data, { f: { type: null }, g: { required: null } }, "input"), []);
  assertEquals((await schemaProblems(data, { f: {}, g: {} }, "input")).length, 2);
});
