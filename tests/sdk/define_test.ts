import {
  defineContext,
  defineHook,
  defineOrchestrator,
  defineProvider,
  defineTool,
  type StandardSchema,
} from "../../src/sdk/define.ts";
import { z } from "../../src/sdk/mod.ts";
import { MockContextManager, ScriptedOrchestrator } from "../../src/testing/mocks.ts";
import { MockProvider } from "../../src/testing/mock_provider.ts";
import { assert, assertEquals, assertThrows } from "../assert.ts";

const named = { name: "greet", description: "Greets." };

Deno.test("defineTool() derives input_schema from zod, as the input must look", () => {
  const tool = defineTool({
    ...named,
    input: z.object({ name: z.string().describe("Who"), times: z.number().default(1) }),
    execute: () => "",
  });
  assertEquals(tool.input_schema, {
    type: "object",
    properties: { name: { type: "string", description: "Who" }, times: { type: "number", default: 1 } },
    required: ["name"],
  });
});

Deno.test("defineTool() passes the parsed input and the call to execute", async () => {
  const call = { id: "call_1", signal: new AbortController().signal, session_id: "s", progress: () => {} };
  const tool = defineTool({
    ...named,
    input: z.object({ name: z.string(), times: z.number().default(2) }),
    execute: ({ name, times }, given) => `${name.toUpperCase()} ${times} ${given?.id}`,
  });
  assertEquals(await tool.execute({ name: "ada" }, call), "ADA 2 call_1");
});

Deno.test("defineTool() answers invalid input with every finding and does not run the tool", async () => {
  let ran = false;
  const tool = defineTool({
    ...named,
    input: z.object({ name: z.string(), address: z.object({ city: z.string() }) }),
    execute: () => ran = true,
  });
  const result = await tool.execute({ address: {} }) as {
    success: boolean;
    error: { type: string; message: string };
  };
  assertEquals([result.success, result.error.type, ran], [false, "tool_input_invalid", false]);
  assert(/^name: .+; address\.city: .+$/.test(result.error.message), result.error.message);
});

Deno.test("defineTool() keeps what the author states, execute's `this` too", async () => {
  const definition = {
    ...named,
    input: z.object({}),
    input_schema: { type: "object", additionalProperties: false },
    risk: "high" as const,
    requires_approval: true,
    idempotent: true,
    word: "hello",
    execute(): unknown {
      return this.word;
    },
  };
  const tool = defineTool(definition);
  assertEquals([tool.input_schema, tool.risk, tool.requires_approval, tool.idempotent], [
    definition.input_schema,
    "high",
    true,
    true,
  ]);
  assertEquals(await tool.execute({}), "hello");
});

Deno.test("defineTool() puts the word object on top of a union of objects", () => {
  const input = z.discriminatedUnion("action", [
    z.object({ action: z.literal("add"), text: z.string() }),
    z.object({ action: z.literal("clear") }),
  ]);
  assertEquals(defineTool({ ...named, input, execute: () => "" }).input_schema?.type, "object");
});

Deno.test("defineTool() refuses a schema without a JSON Schema form, unless input_schema is stated", () => {
  const input = z.object({ when: z.date() });
  assertThrows(
    () => defineTool({ ...named, input, execute: () => "" }),
    TypeError,
    'Cannot derive input_schema of tool "greet"',
  );
  assertThrows(
    () => defineTool({ ...named, input: z.string(), execute: () => "" }),
    TypeError,
    "a tool's input is an object",
  );
  const stated = { type: "object" };
  assertEquals(defineTool({ ...named, input, input_schema: stated, execute: () => "" }).input_schema, stated);
});

Deno.test("defineTool() takes a schema of any library that speaks Standard Schema", async () => {
  const input: StandardSchema<{ n: string }, { n: number }> = {
    "~standard": {
      version: 1,
      vendor: "own",
      validate: (value) => {
        const n = Number((value as { n?: unknown }).n);
        return Promise.resolve(
          Number.isNaN(n) ? { issues: [{ message: "no number", path: [{ key: "n" }] }] } : { value: { n } },
        );
      },
    },
  };
  assertThrows(() => defineTool({ ...named, input, execute: () => "" }), TypeError, "received a own schema");
  const tool = defineTool({ ...named, input, input_schema: { type: "object" }, execute: ({ n }) => n + 1 });
  assertEquals(await tool.execute({ n: "41" }), 42);
  assertEquals((await tool.execute({ n: "x" }) as { output: string }).output, "n: no number");
});

Deno.test("z types what a schema gives and takes", () => {
  const schema = z.object({ n: z.number().default(1) });
  const output: z.infer<typeof schema> = { n: 1 };
  const input: z.input<typeof schema> = {};
  assertEquals(schema.parse(input), output);
});

Deno.test("the other define functions return their argument", () => {
  const [provider, loop, context] = [
    new MockProvider(),
    new ScriptedOrchestrator(),
    new MockContextManager(),
  ];
  const hook = { events: ["tool:pre"], handler: () => null };
  assert(defineProvider(provider) === provider);
  assert(defineOrchestrator(loop) === loop);
  assert(defineContext(context) === context);
  assert(defineHook(hook) === hook);
});

Deno.test("defineTool() takes a JSON Schema of an object, and checks the input by it", async () => {
  const input = {
    type: "object",
    properties: { count: { type: "integer", minimum: 1 } },
    required: ["count"],
  };
  const tool = defineTool({ ...named, input, execute: ({ count }) => `${count + 1}` });
  assertEquals(tool.input_schema, input);
  assertEquals(await tool.execute({ count: 2 }), "3");
  const result = await tool.execute({ count: 0 }) as { success: boolean; error: { type: string } };
  assertEquals([result.success, result.error.type], [false, "tool_input_invalid"]);
  const short = defineTool({ ...named, input: { properties: {} }, execute: () => "" });
  assertEquals(short.input_schema, { type: "object", properties: {} });
});

Deno.test("defineTool() and the other define functions name the missing part", () => {
  const execute = () => "";
  const of = (input: unknown) => () => defineTool({ ...named, input: input as StandardSchema, execute });
  const wrong: [make: () => unknown, message: string][] = [
    [
      of("text"),
      "input must be a zod schema such as z.object({…}), or a JSON Schema of an object: received string",
    ],
    [of(undefined), "received undefined"],
    [of(null), "received null"],
    [of({ type: "array" }), 'received a schema of type "array"'],
    [of({ name: "string" }), 'received an object without type: write type: "object"'],
    [of({ name: z.string() }), "received an object of schemas: wrap it in z.object({ name: … })"],
    [() => defineTool({ ...named, name: "", input: {}, execute }), "Cannot make a tool: name must be"],
    [
      () => defineTool({ ...named, input: z.object({}), execute: undefined as never }),
      "Cannot make a tool: execute must be a function: received nothing",
    ],
    [() => defineProvider({ name: "x" } as never), "Cannot make a provider: getInfo must be a function"],
    [() => defineOrchestrator({} as never), "Cannot make a loop: execute must be a function"],
    [
      () => defineContext({ addMessage() {} } as never),
      "Cannot make a context: getMessagesForRequest must be",
    ],
    [
      () => defineHook({ events: "tool:pre" } as never),
      "Cannot make a hook: events must be a list of strings",
    ],
    [() => defineHook({ events: ["tool:pre"] } as never), "Cannot make a hook: handler must be a function"],
  ];
  for (const [make, message] of wrong) assertThrows(make, TypeError, message);
});
