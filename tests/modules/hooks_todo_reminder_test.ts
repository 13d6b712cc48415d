import { assertEquals, assertMatch } from "../assert.ts";
import { fakeCoordinator } from "../support/coordinator.ts";
import { mount } from "../../modules/hooks-todo-reminder/mod.ts";

async function reminder(saved: unknown, config: Record<string, unknown> = {}) {
  const { coordinator, emit } = fakeCoordinator(
    {},
    saved === undefined ? {} : { "tool-todo": saved as never },
  );
  await mount(coordinator, config);
  return (await emit("provider:request", {})).injections[0];
}

const DONE = { content: "Read the code", status: "completed" };
const DOING = { content: "Run the tests", activeForm: "Running the tests", status: "in_progress" };
const OPEN = { content: "Mend the parser", status: "pending" };

Deno.test("hooks-todo-reminder shows the list with the state of each entry, and stores nothing", async () => {
  const found = await reminder({ todos: [DONE, DOING, OPEN] });
  assertEquals([found?.ephemeral, found?.role], [true, "user"]);
  assertMatch(
    found!.text,
    /^<todo_list>\n\[x\] Read the code\n\[>\] Running the tests\n\[ \] Mend the parser\n<\/todo_list>\n/,
  );
  assertEquals((await reminder({ todos: [OPEN] }, { inject_role: "system" }))?.role, "system");
});

Deno.test("hooks-todo-reminder is silent without a list, with an unknown form, and when all is done", async () => {
  for (const saved of [undefined, { todos: [] }, { todos: [DONE] }, { todos: "many" }, "odd"]) {
    assertEquals(await reminder(saved), undefined);
  }
});
