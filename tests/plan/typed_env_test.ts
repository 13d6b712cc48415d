import { assertEquals } from "../assert.ts";
import { typeVariables } from "../../src/plan/check/check_config.ts";
import type { JsonObject } from "../../src/sdk/json.ts";

/** Returns the typed value of a `${VAR}` in a field with this schema. */
function typed(text: string, schema: JsonObject): unknown {
  return typeVariables({ field: text }, { field: "${VAR}" }, { properties: { field: schema } }).field;
}

Deno.test("typeVariables() converts the text of a variable to the type of its schema", () => {
  const cases: [text: string, schema: JsonObject, value: unknown][] = [
    ["5", { type: "integer" }, 5],
    [" -1 ", { type: "integer" }, -1],
    ["0.5", { type: "number" }, 0.5],
    ["1e3", { type: "number" }, 1000],
    ["true", { type: "boolean" }, true],
    ["FALSE", { type: "boolean" }, false],
    ["5", { type: ["integer", "null"] }, 5],
    ["", { type: ["integer", "null"] }, null],
    ["null", { type: ["integer", "null"] }, null],
    ["true", { anyOf: [{ type: ["boolean", "null"] }, { type: "array", items: { type: "string" } }] }, true],
    ["2", { enum: [1, 2, 3] }, 2],
  ];
  for (const [text, schema, value] of cases) assertEquals(typed(text, schema), value, JSON.stringify(schema));
});

Deno.test("typeVariables() keeps text where text is allowed or does not fit", () => {
  const cases: [text: string, schema: JsonObject][] = [
    ["5", { type: "string" }],
    ["5", { type: ["string", "integer"] }],
    ["true", { anyOf: [{ type: "boolean" }, { type: "string" }] }],
    ["5", { enum: ["5", 5] }],
    ["5", {}],
    ["five", { type: "integer" }],
    ["0x10", { type: "integer" }],
    ["Infinity", { type: "number" }],
    ["", { type: "integer" }],
    ["yes", { type: "boolean" }],
    ["[1]", { type: "array" }],
  ];
  for (const [text, schema] of cases) assertEquals(typed(text, schema), text, JSON.stringify(schema));
});

Deno.test("typeVariables() converts inside lists, objects and anyOf, and does not change literals", () => {
  const item = { type: "object", properties: { size: { type: "integer" } } };
  const schema = {
    properties: {
      items: { type: "array", items: { anyOf: [{ type: "string" }, item] } },
      sizes: { type: "array", items: { type: "number" } },
    },
  };
  const written = { items: ["a", { size: "${A}" }, { size: "7" }], sizes: ["${A}", "8"], other: "${A}" };
  const expanded = { items: ["a", { size: "5" }, { size: "7" }], sizes: ["5", "8"], other: "5" };
  assertEquals(typeVariables(expanded, written, schema), {
    items: ["a", { size: 5 }, { size: "7" }],
    sizes: [5, "8"],
    other: "5",
  });
});

Deno.test("typeVariables() keeps a literal ${", () => {
  const schema = { properties: { n: { type: "integer" } } };
  assertEquals(typeVariables({ n: "5" }, { n: "$${N}" }, schema), { n: "5" });
});
