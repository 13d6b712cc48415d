import { assertEquals, assertStringIncludes } from "../assert.ts";
import { call, type Fake, fakeCoordinator } from "../support/coordinator.ts";
import { mount } from "../../modules/tool-todo/mod.ts";

const LIST = [
  { content: "Read the plan", status: "completed" },
  { content: "Write the test", status: "in_progress", activeForm: "Writing the test" },
  { content: "Ship it", status: "pending" },
];

async function mounted(saved?: unknown): Promise<Fake> {
  const fake = fakeCoordinator();
  if (saved !== undefined) fake.state["tool-todo"] = saved;
  await mount(fake.coordinator);
  return fake;
}

Deno.test("todo saves the list in session_state when it is created", async () => {
  const fake = await mounted();
  assertEquals(await call(fake, "todo", { action: "create", todos: LIST }), {
    success: true,
    output: { status: "created", count: 3, pending: 1, in_progress: 1, completed: 1, todos: LIST },
  });
  assertEquals(fake.state, { "tool-todo": { todos: LIST } });
});

Deno.test("todo assigns a new top-level value when the list is updated", async () => {
  const fake = await mounted();
  await call(fake, "todo", { action: "create", todos: LIST });
  const before = fake.state["tool-todo"];
  assertEquals(await call(fake, "todo", { action: "update", todos: LIST.slice(1) }), {
    success: true,
    output: { status: "updated", count: 2, pending: 1, in_progress: 1, completed: 0 },
  });
  assertEquals(fake.state["tool-todo"], { todos: LIST.slice(1) });
  assertEquals(before, { todos: LIST });
});

Deno.test("todo lists what an earlier run saved, also after serialisation as JSON", async () => {
  const first = await mounted();
  await call(first, "todo", { action: "create", todos: LIST });
  const second = await mounted(JSON.parse(JSON.stringify(first.state["tool-todo"])));
  assertEquals(await call(second, "todo", { action: "list" }), {
    success: true,
    output: { status: "listed", count: 3, pending: 1, in_progress: 1, completed: 1, todos: LIST },
  });
});

Deno.test("todo lists nothing when the saved state is missing or malformed", async () => {
  for (const saved of [undefined, null, 7, { todos: "x" }, { todos: [{ content: 1 }] }]) {
    const result = await call(await mounted(saved), "todo", { action: "list" });
    assertEquals((result.output as { todos: unknown }).todos, []);
  }
});

Deno.test("todo drops unknown fields of entries", async () => {
  const fake = await mounted();
  await call(fake, "todo", {
    action: "create",
    todos: [{ content: "a", status: "pending", id: 4, activeForm: null }],
  });
  assertEquals(fake.state["tool-todo"], { todos: [{ content: "a", status: "pending" }] });
});

const BAD: [string, Record<string, unknown>, string][] = [
  ["the action is unknown", { action: "add" }, "action must be one of create, update, list"],
  ["the action is missing", {}, "action must be one of"],
  ["todos are missing", { action: "create" }, "todos must be a list: received undefined"],
  ["todos is not a list", { action: "update", todos: {} }, "todos must be a list: received object"],
  [
    "an entry is not an object",
    { action: "create", todos: ["a"] },
    "todos[0] must be an object: received string",
  ],
  [
    "content is missing",
    { action: "create", todos: [{ status: "pending" }] },
    "todos[0].content must be text",
  ],
  [
    "content is blank",
    { action: "create", todos: [{ content: " ", status: "pending" }] },
    "must not be empty",
  ],
  [
    "a status is unknown",
    { action: "create", todos: [LIST[0], { content: "a", status: "done" }] },
    'todos[1].status must be one of pending, in_progress, completed: received "done"',
  ],
  [
    "activeForm is not text",
    { action: "create", todos: [{ content: "a", status: "pending", activeForm: 1 }] },
    "todos[0].activeForm must be text",
  ],
  [
    "a text is longer than 2,000 characters",
    { action: "create", todos: [{ content: "a".repeat(2_001), status: "pending" }] },
    "at most 2000 characters: received 2001",
  ],
  [
    "there are more than 200 entries",
    { action: "create", todos: Array.from({ length: 201 }, () => LIST[0]) },
    "at most 200 entries: received 201",
  ],
  [
    "the list is larger than 32 KiB",
    {
      action: "create",
      todos: Array.from({ length: 30 }, () => ({ content: "é".repeat(1_000), status: "pending" })),
    },
    "must fit 32768 bytes",
  ],
];

for (const [when, input, text] of BAD) {
  Deno.test(`todo refuses and keeps the old list when ${when}`, async () => {
    const fake = await mounted();
    await call(fake, "todo", { action: "create", todos: LIST });
    const result = await call(fake, "todo", input);
    const error = result.error as { type: string; message: string };
    assertEquals([result.success, error.type], [false, "tool_input_invalid"]);
    assertStringIncludes(error.message, text);
    assertEquals(fake.state["tool-todo"], { todos: LIST });
  });
}
