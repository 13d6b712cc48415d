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
    todos: [{ content: "a", status: "pending", id: 4 }],
  });
  assertEquals(fake.state["tool-todo"], { todos: [{ content: "a", status: "pending" }] });
});

const BAD: [string, Record<string, unknown>, string][] = [
  [
    "the action is unknown",
    { action: "add" },
    'action: Instance does not match any of ["create","update","list"]',
  ],
  ["the action is missing", {}, 'required property "action"'],
  ["todos are missing", { action: "create" }, "create needs todos"],
  ["todos is not a list", { action: "update", todos: {} }, 'todos: Instance type "object" is invalid'],
  [
    "an entry is not an object",
    { action: "create", todos: ["a"] },
    'todos.0: Instance type "string" is invalid',
  ],
  [
    "content is missing",
    { action: "create", todos: [{ status: "pending" }] },
    'required property "content"',
  ],
  [
    "content is blank",
    { action: "create", todos: [{ content: " ", status: "pending" }] },
    "must not be blank",
  ],
  [
    "a status is unknown",
    { action: "create", todos: [LIST[0], { content: "a", status: "done" }] },
    'todos.1.status: Instance does not match any of ["pending","in_progress","completed"]',
  ],
  [
    "activeForm is not text",
    { action: "create", todos: [{ content: "a", status: "pending", activeForm: 1 }] },
    'todos.0.activeForm: Instance type "number" is invalid',
  ],
  [
    "a text is longer than 2,000 characters",
    { action: "create", todos: [{ content: "a".repeat(2_001), status: "pending" }] },
    "String is too long (2001 > 2000)",
  ],
  [
    "there are more than 200 entries",
    { action: "create", todos: Array.from({ length: 201 }, () => LIST[0]) },
    "Array has too many items (201 > 200)",
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
