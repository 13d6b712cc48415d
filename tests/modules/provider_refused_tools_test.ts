/** Servers that refuse the definition of one tool: it is reduced, then left out, and the others stay. */
import * as fc from "fast-check";
import { isObject, type JsonObject, textOf } from "preamp";
import { TestCoordinator } from "preamp/testing";
import { simpleSchema } from "../../modules/ai-sdk/simple_schema.ts";
import { assert, assertEquals } from "../assert.ts";
import { CHAT } from "./provider_openai/vendors.ts";
import { type FakeServer, fakeServer } from "./providers/fake_server.ts";
import { configOn, VENDORS } from "./providers/fake_vendor.ts";
import type { Vendor } from "./providers/faults.ts";

const ODD = {
  type: "object",
  properties: {
    items: { type: "array" },
    at: { anyOf: [{ type: "string", format: "date-time" }, { type: "null" }] },
  },
  required: ["items"],
};
const TOOLS = ["first", "odd", "items"].map((name) => ({
  name,
  description: `The tool ${name}`,
  parameters: name === "odd" ? ODD : { type: "object", properties: { key: { type: "string" } } },
}));

/** A tool of a request, in the form of any API. */
interface SentTool {
  readonly name: string;
  readonly schema: JsonObject;
}

function toolsIn({ tools }: JsonObject): SentTool[] {
  const list = (tools ?? []) as JsonObject[];
  return list.flatMap((tool) => (tool.functionDeclarations as JsonObject[] | undefined) ?? [tool]).map(
    (tool) => {
      const { name, parameters, parametersJsonSchema, input_schema } = (tool.function ?? tool) as JsonObject;
      return {
        name: String(name),
        schema: (parameters ?? parametersJsonSchema ?? input_schema) as JsonObject,
      };
    },
  );
}

/** Words of servers about the tool `odd` at a place of the request. */
const REFUSALS: Readonly<Record<string, (place: number) => { message: string; param?: string }>> = {
  "its name": () => ({
    message:
      "Invalid schema for function 'odd': In context=('properties', 'items'), array schema missing items.",
    param: "tools[9].function.parameters",
  }),
  "its place among the tools": (place) => ({
    message:
      `tools.${place}.custom.input_schema: JSON schema is invalid. It must match JSON Schema draft 2020-12`,
  }),
  "its place in a parameter": (place) => ({
    message: "Invalid value",
    param: `tools[${place}].function.parameters`,
  }),
  "its place among declarations": (place) => ({
    message:
      `* GenerateContentRequest.tools[0].function_declarations[${place}].parameters.items: missing field.`,
  }),
};

/** Starts a server that refuses `odd` as long as `isRefused` returns true. */
function serverOf(vendor: Vendor, form: string, isRefused: (tool: SentTool) => boolean): FakeServer {
  return fakeServer(({ body }) => {
    const tools = toolsIn(body);
    const place = tools.findIndex((tool) => tool.name === "odd" && isRefused(tool));
    if (place === -1) return Response.json(vendor.whole({ text: ["ok"] }));
    const error = { type: "invalid_request_error", ...REFUSALS[form]!(place) };
    return Response.json({ type: "error", error }, { status: 400 });
  });
}

const isOdd = ({ schema }: SentTool) => JSON.stringify(schema).includes("anyOf");

for (const vendor of [...Object.values(VENDORS), CHAT]) {
  if (vendor.name === "ollama") continue; // its server checks no schemas
  for (const form of Object.keys(REFUSALS)) {
    if (form.includes("declarations") !== (vendor.name === "gemini") && form !== "its name") continue;
    Deno.test(`${vendor.api ?? vendor.name}: a tool that is refused by ${form} is reduced or left out`, async () => {
      for (
        const [isRefused, names, warning] of [
          [
            isOdd,
            ["first", "odd", "items"],
            /^The schema of the tool odd is reduced, because .* refuses it: /,
          ],
          [() => true, ["first", "items"], /^The tool odd is left out, because .* refuses it: /],
        ] as const
      ) {
        await using server = serverOf(vendor, form, isRefused);
        const coordinator = new TestCoordinator();
        await vendor.module.mount(coordinator, { ...configOn(server.url, vendor), max_retries: 0 });
        const provider = coordinator.providers[vendor.name]!; // mounted above
        const request = { messages: [{ role: "user" as const, content: "Hi" }], tools: TOOLS };
        const answer = await provider.complete({ ...request, tool_choice: "auto" });
        assertEquals(textOf(answer.content), "ok");
        assert(answer.degradation!.requested.includes("tool odd"));
        assertEquals(toolsIn(server.requests.at(-1)!.body).map(({ name }) => name), [...names]);
        const count = server.requests.length;
        await provider.complete(request);
        assertEquals([toolsIn(server.requests.at(-1)!.body).length, server.requests.length], [
          names.length,
          count + 1,
        ]);
        const warnings = coordinator.hooks.getEvents("user:notification").map(([, data]) => data);
        assertEquals(warnings.length, count - 1); // one for each refusal
        assert(warning.test(String(warnings.at(-1)!.message)), String(warnings.at(-1)!.message));
        assertEquals(warnings.at(-1)!.level, "warning");
      }
    });
  }
}

Deno.test("a tool that is left out is not chosen", async () => {
  await using server = serverOf(CHAT, "its name", () => true);
  const coordinator = new TestCoordinator();
  await CHAT.module.mount(coordinator, configOn(server.url, CHAT));
  const request = { messages: [{ role: "user" as const, content: "Hi" }], tools: TOOLS, tool_choice: "odd" };
  await coordinator.providers.openai!.complete(request);
  assertEquals(server.requests.map(({ body }) => body.tool_choice !== undefined), [true, true, false]);
});

Deno.test("words about a call, a parameter or the form of answers are not taken for a tool that is refused", async () => {
  for (
    const error of [
      {
        message: "tool call validation failed: parameters for tool odd did not match schema",
        code: "tool_use_failed",
      },
      { message: "Invalid schema for response_format 'odd': In context=(), 'required' is missing" },
      { message: "Tool 'odd' is unavailable for your plan" },
      { message: "The name 'odd-one' is not allowed in the schema" },
      { message: "'items' is not allowed in a schema" },
    ]
  ) {
    await using server = fakeServer(() => Response.json({ error }, { status: 400 }));
    const coordinator = new TestCoordinator();
    await CHAT.module.mount(coordinator, { ...configOn(server.url, CHAT), max_retries: 0 });
    const request = { messages: [{ role: "user" as const, content: "Hi" }], tools: TOOLS };
    const failure = await coordinator.providers.openai!.complete(request).catch((failure) => failure);
    assertEquals([failure.message, server.requests.length], [error.message, 1]);
  }
});

/** Calls `visit` with each schema in a simple one. */
function eachSchema(schema: JsonObject, visit: (schema: JsonObject) => void): void {
  visit(schema);
  for (const part of Object.values((schema.properties ?? {}) as JsonObject)) {
    eachSchema(part as JsonObject, visit);
  }
  if (isObject(schema.items)) eachSchema(schema.items, visit);
}

Deno.test("simpleSchema() makes a schema of types, names and descriptions of any schema", () => {
  const { schema } = fc.letrec((tie) => ({
    schema: fc.oneof(
      { depthSize: "small" },
      fc.jsonValue(),
      fc.record({
        type: fc.constantFrom("string", "object", "array", ["null", "integer"], "null", 7),
        description: fc.oneof(fc.string(), fc.constant(4)),
        enum: fc.array(fc.oneof(fc.string(), fc.integer())),
        properties: fc.dictionary(fc.string(), tie("schema")),
        required: fc.array(fc.string()),
        items: tie("schema"),
        anyOf: fc.array(tie("schema"), { maxLength: 2 }),
        $ref: fc.constantFrom("#/$defs/a", "#/$defs/none", "https://example.com"),
        $defs: fc.record({ a: tie("schema") }),
      }, { requiredKeys: [] }),
    ),
  }));
  const allowed = new Set(["type", "description", "enum", "properties", "required", "items"]);
  fc.assert(fc.property(schema, (given) => {
    const simple = simpleSchema(isObject(given) ? given : {});
    assertEquals([simple.type, isObject(simple.properties)], ["object", true]);
    eachSchema(simple, (part) => {
      assertEquals(Object.keys(part).filter((key) => !allowed.has(key)), []);
      assertEquals(typeof part.type, "string");
      assertEquals(part.type === "array", part.items !== undefined);
      assert(
        ((part.required ?? []) as string[]).every((name) => Object.hasOwn(part.properties as object, name)),
      );
    });
    assertEquals(simpleSchema(simple), simple);
  }));
});

Deno.test("simpleSchema() keeps what a model needs: names, types, descriptions, texts to choose from", () => {
  const item = {
    type: "object",
    properties: { name: { type: "string", pattern: "^a" } },
    required: ["name"],
  };
  assertEquals(
    simpleSchema({
      type: "object",
      properties: {
        list: { type: "array", items: { $ref: "#/$defs/item" }, minItems: 1 },
        kind: { description: "Kind", anyOf: [{ type: "null" }, { enum: ["a", "b"] }] },
        any: {},
      },
      required: ["list", "gone"],
      additionalProperties: false,
      $defs: { item },
    }),
    {
      type: "object",
      properties: {
        list: {
          type: "array",
          items: { type: "object", properties: { name: { type: "string" } }, required: ["name"] },
        },
        kind: { type: "string", description: "Kind", enum: ["a", "b"] },
        any: { type: "string" },
      },
      required: ["list"],
    },
  );
});
