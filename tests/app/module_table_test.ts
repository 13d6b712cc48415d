import { assert, assertEquals, assertThrows } from "../assert.ts";
import { defineTool } from "../../src/sdk/define.ts";
import { TestCoordinator } from "../../src/testing/coordinator.ts";
import { BUILTIN_IDS, createModuleTable, type InProcessModule } from "../../src/app/module_table.ts";

const mount = () => Promise.resolve();

Deno.test("createModuleTable() has the built-in modules and those of the application, sorted", async () => {
  const table = createModuleTable({
    "tool-zebra": mount,
    "greeter": { mount, module: { id: "ignored", type: "hook", version: "1.2.3", description: "Greets." } },
  });
  assertEquals([...table.ids], [...BUILTIN_IDS, "greeter", "tool-zebra"].sort());
  assertEquals(await table.listing("tool-zebra"), {
    id: "tool-zebra",
    name: "tool-zebra",
    type: "tool",
    mount_point: "tools",
    version: "0.0.0",
    description: "",
    permissions: null,
    config_schema: null,
  });
  const { id, type, version, description } = await table.listing("greeter");
  assertEquals([id, type, version, description], ["greeter", "hook", "1.2.3", "Greets."]);
  assertEquals((await table.listing("tool-calculator")).type, "tool");
  assertThrows(() => table.module("tool-nothing"), Error, 'Cannot find module "tool-nothing"');
});

Deno.test("readsTexts() knows each module with texts without loading it", async () => {
  const table = createModuleTable({ "tool-own": { mount, texts: () => Promise.resolve([]) } });
  for (const id of table.ids) {
    assertEquals([id, table.readsTexts(id)], [id, (await table.module(id)).texts !== undefined]);
  }
});

Deno.test("createModuleTable() keeps an object unchanged, also a module's namespace", async () => {
  const module = await import("../../modules/tool-todo/mod.ts");
  const table = createModuleTable({ "tool-mine": module });
  assert(table.module("tool-mine") === module);
});

Deno.test("createModuleTable() makes a module of a definition", async () => {
  const clock = defineTool({
    name: "clock",
    description: "Time.",
    input: { type: "object" },
    execute: () => 1,
  });
  const { mount } = await createModuleTable({ "tool-clock": clock }).module("tool-clock");
  assertEquals(await mount(new TestCoordinator(), {}), clock);
});

for (
  const [id, given, problem] of [
    ["tool clock", mount, "its id must be lower-case words joined by hyphens"],
    ["Tool-Clock", mount, "its id must be lower-case words joined by hyphens"],
    ["./tool.ts", mount, "its id must be lower-case words joined by hyphens"],
    ["", mount, "its id must be lower-case words joined by hyphens"],
    [`tool-${"x".repeat(128)}`, mount, "its id must be lower-case words joined by hyphens"],
    ["tool-calculator", mount, "a built-in module has this id"],
    ["tool-clock", "./clock.ts", "with one: received string"],
    ["tool-clock", null, "with one: received null"],
    ["tool-clock", [mount], "with one: received a list"],
    ["tool-clock", { complete: mount }, "with one: received an object without mount"],
    ["tool-clock", { mount: "yes" }, "with one: received an object without mount"],
    ["clock", mount, "its type is unknown: begin its id with tool-"],
    ["clock", { mount, module: { id: "clock" } }, "its type is unknown"],
  ] as [string, unknown, string][]
) {
  Deno.test(`createModuleTable() refuses ${JSON.stringify(id).slice(0, 40)}: ${problem}`, () => {
    const create = () => createModuleTable({ [id]: given as InProcessModule });
    assertThrows(create, TypeError, `Cannot add module ${JSON.stringify(id)}: `);
    assertThrows(create, TypeError, problem);
  });
}
