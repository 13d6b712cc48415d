import { MockTool, testTool, type ToolSuiteOptions } from "preamp/testing";
import type { Module, Tool } from "preamp";
import { assert, assertEquals } from "../assert.ts";
import { failures } from "./broken_kit.ts";

const check = (create: () => Tool | Module, options: ToolSuiteOptions = {}) =>
  failures((name, test) => testTool(name, create, { deadline_ms: 200, ...options, test }));
const tool = (fields: object): Tool => Object.assign(new MockTool("good", "out"), fields);
const module = (mount: Module["mount"]): Module => ({ mount });

Deno.test("testTool() passes a good tool, as a tool, a module, and one that is returned", async () => {
  const good: (() => Tool | Module)[] = [
    () => new MockTool("good"),
    () => module((coordinator) => coordinator.mount("tools", new MockTool("good"))),
    () => module(() => new MockTool("good")),
  ];
  for (const create of good) {
    const { failed, ran } = await check(create, { input: { a: 1 } });
    assertEquals(failed, []);
    assert(ran >= 11);
  }
});

Deno.test("testTool() passes Amplifier's plain and placeholder tools", async () => {
  const plain = {
    name: "myname",
    description: "My custom tool",
    input_schema: { type: "object", properties: {} },
    execute: () => ({ success: true, output: "Hello!" }),
  };
  const placeholder = { ...plain, execute: () => ({ success: false, output: "Not yet implemented" }) };
  for (const one of [plain, placeholder]) assertEquals((await check(() => one)).failed, []);
});

Deno.test("testTool() calls a tool with inputs that fit its schema, and says where it has none", async () => {
  const schema = (field: object) => ({ type: "object", properties: { field }, required: ["field"] });
  const strict = (input_schema: object) =>
    tool({ input_schema, execute: ({ field }: { field: string }) => field.toUpperCase() });
  assertEquals((await check(() => strict(schema({ type: "string", pattern: "^[a-z]{9}$" })))).failed, []);
  const reported: string[] = [];
  const not_tried = (title: string, reason: string) => void reported.push(`${title}: ${reason}`);
  assertEquals((await check(() => strict(schema({ not: {} })), { not_tried })).failed, []);
  assertEquals(reported.length, 5);
  assertEquals(
    reported[0]?.startsWith("execute() answers an input that fits its schema: no input was made"),
    true,
  );
});

Deno.test("testTool() fails everything when mount registers nothing", async () => {
  const { failed, ran } = await check(() => module(() => null));
  assertEquals(failed.length, ran - 1);
  assert(failed.includes("mount() mounts a tool"));
});

const broken: [string, () => Tool | Module, string, ToolSuiteOptions?][] = [
  [
    "an execute that is no function",
    () => module((coordinator) => coordinator.mount("tools", tool({ execute: "run" }))),
    "execute() is a function of an input",
  ],
  [
    "an empty name",
    () => module((coordinator) => coordinator.mount("tools", tool({ name: "" }), "x")),
    "name is valid for models",
  ],
  ["a name no model can call", () => tool({ name: "my tool" }), "name is valid for models"],
  ["an empty description", () => tool({ description: " " }), "description is not empty"],
  ["an invalid schema", () => tool({ input_schema: "x" }), "input_schema is a JSON Schema of an object"],
  [
    "a schema of a list",
    () => tool({ input_schema: { type: "array" } }),
    "input_schema is a JSON Schema of an object",
  ],
  [
    "a schema that requires what it has not",
    () => tool({ input_schema: { type: "object", properties: {}, required: ["a"] } }),
    "input_schema is a JSON Schema of an object",
  ],
  [
    "a crash on unknown input",
    () => tool({ execute: ({ path }: { path: string }) => path.length }),
    "execute() answers an input that fits its schema",
  ],
  [
    "no result at all",
    () => tool({ execute: () => {} }),
    "execute() answers an input that fits its schema",
  ],
  [
    "a success that is no boolean",
    () => tool({ execute: () => ({ success: "yes" }) }),
    "execute() answers an input that fits its schema",
  ],
  [
    "an error that is a text",
    () => tool({ execute: () => ({ success: false, error: "bad" }) }),
    "execute() answers an input that fits its schema",
  ],
  [
    "a failure without a word",
    () => tool({ execute: () => ({ success: false }) }),
    "execute() answers an input that fits its schema",
  ],
  [
    "an output JSON cannot hold",
    () => tool({ execute: () => ({ success: true, output: new Map([[1, 2]]) }) }),
    "execute() answers an input that fits its schema",
  ],
  [
    "a changed input",
    () => tool({ execute: (input: Record<string, unknown>) => (input.changed = true, "out") }),
    "execute() does not change its input",
  ],
  [
    "a call that never ends",
    () => tool({ execute: () => new Promise(() => {}) }),
    "execute() settles when its call was cancelled before it began",
  ],
  [
    "a failure on good input",
    () => tool({ execute: () => ({ success: false, output: "no" }) }),
    "execute() succeeds with a good input",
    { input: {} },
  ],
  ["a cleanup that fails the second time", () => {
    let open = true;
    return module(async (coordinator) => {
      await coordinator.mount("tools", new MockTool("good"));
      return () => {
        if (!open) throw new Error("closed already");
        open = false;
      };
    });
  }, "cleanup works, once and twice"],
];

for (const [what, create, title, options] of broken) {
  Deno.test(`testTool() fails "${title}" for ${what}`, async () => {
    const { failed } = await check(create, options);
    assert(failed.includes(title), `failed: ${failed.join(", ") || "nothing"}`);
    assert(!failed.includes("mount() mounts a tool"));
  });
}
