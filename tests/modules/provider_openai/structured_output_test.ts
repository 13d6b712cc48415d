/** Response formats of both APIs: strict schemas, JSON mode, and what is reported as not enforced. */
import { assertEquals } from "../../assert.ts";
import type { JsonObject, ResponseFormat } from "preamp";
import { strictSchema } from "../../../modules/ai-sdk/strict_schema.ts";
import { QUESTION, requestOf } from "./bodies.ts";

const SCHEMA = {
  type: "object",
  title: "Sum of two",
  properties: {
    sum: { type: "integer", minimum: 0 },
    notes: { type: "array", items: { type: "string", minLength: 1 } },
  },
  required: ["sum", "notes"],
};
const STRICT = {
  type: "object",
  title: "Sum of two",
  properties: { sum: { type: "integer", minimum: 0 }, notes: { type: "array", items: { type: "string" } } },
  required: ["sum", "notes"],
  additionalProperties: false,
};

/** Returns the last system message of a Responses body. */
function systemOf({ input }: JsonObject): unknown {
  return (input as JsonObject[]).findLast(({ role }) => role === "developer" || role === "system")?.content;
}

async function both(response_format: ResponseFormat) {
  const { body, degradation } = await requestOf(QUESTION, { response_format });
  const chat = await requestOf(QUESTION, { response_format }, { api: "chat" });
  assertEquals(chat.degradation, degradation);
  return {
    text: body.text,
    response_format: chat.body.response_format,
    instruction: systemOf(body),
    degradation,
  };
}

Deno.test("a schema that OpenAI can enforce is strict", async () => {
  assertEquals(await both({ type: "json_schema", schema: SCHEMA }), {
    text: { format: { type: "json_schema", name: "Sum_of_two", schema: STRICT, strict: true } },
    response_format: {
      type: "json_schema",
      json_schema: { name: "Sum_of_two", schema: STRICT, strict: true },
    },
    instruction: undefined,
    degradation: undefined,
  });
});

Deno.test("a schema with an optional property is not strict, and that is reported", async () => {
  const { title: _, ...untitled } = SCHEMA;
  const schema = { ...untitled, required: ["sum"] };
  const { text, degradation } = await both({ type: "json_schema", schema });
  assertEquals(text, { format: { type: "json_schema", name: "answer", schema, strict: false } });
  assertEquals(degradation, {
    requested: "response_format json_schema, strict",
    actual: "not strict",
    reason: 'strict output needs every property in required: the schema has the optional "notes"',
  });
  assertEquals((await both({ type: "json_schema", schema, strict: false })).degradation, undefined);
});

Deno.test("a schema of no object is described in words, and that is reported", async () => {
  const schema = { type: "array", items: { type: "string" } };
  assertEquals(await both({ type: "json_schema", schema }), {
    text: undefined,
    response_format: undefined,
    instruction: "Answer with JSON alone: no other text, no code fence. It must match this JSON Schema:\n" +
      '{"type":"array","items":{"type":"string"}}',
    degradation: {
      requested: "response_format json_schema",
      actual: "instruction",
      reason: "the schema must be that of an object",
    },
  });
});

Deno.test("JSON mode mentions JSON, which OpenAI requires", async () => {
  const { text, response_format, instruction } = await both({ type: "json" });
  assertEquals([text, response_format], [{ format: { type: "json_object" } }, { type: "json_object" }]);
  assertEquals(instruction, "Answer with JSON alone: no other text, no code fence.");
  const call = { response_format: { type: "json" } as const };
  assertEquals(
    (await requestOf([{ role: "user", content: "As json, please" }], call)).body.instructions,
    undefined,
  );
  assertEquals((await both({ type: "text" })).text, undefined);
});

Deno.test("strictSchema() keeps what OpenAI enforces, at every depth", () => {
  const node = {
    type: "object",
    properties: {
      next: { anyOf: [{ $ref: "#/$defs/node" }, { type: "null" }] },
      kind: { enum: ["a"], default: "a" },
    },
    required: ["next", "kind"],
  };
  assertEquals(strictSchema({ $ref: "#/$defs/node", $defs: { node } }), {
    schema: {
      $ref: "#/$defs/node",
      $defs: {
        node: {
          type: "object",
          properties: { next: node.properties.next, kind: { enum: ["a"] } },
          required: ["next", "kind"],
          additionalProperties: false,
        },
      },
    },
  });
});

Deno.test("strictSchema() says what cannot be enforced, and where", () => {
  const inner = (value: JsonObject | boolean) => ({
    type: "object",
    properties: { a: value },
    required: ["a"],
  });
  for (
    const [schema, problem] of [
      [inner({ allOf: [] }), "strict output does not support allOf at the schema.a"],
      [inner({ type: "object" }), "strict output does not allow additionalProperties at the schema.a"],
      [
        { ...inner({ type: "string" }), additionalProperties: true },
        "strict output does not allow additionalProperties at the schema",
      ],
      [
        inner({ type: "array", items: { oneOf: [] } }),
        "strict output does not support oneOf at the schema.a.items",
      ],
      [inner(true), "strict output needs a schema object at the schema.a"],
    ] as const
  ) {
    assertEquals(strictSchema(schema as JsonObject), { problem });
  }
});
