/**
 * Template of a tool that greets: typed input, config, an event, and a failure that the model can correct.
 */
import type { Template } from "../commands/module_new.ts";

export const template: Template = {
  about: "Greets a person by name.",
  plan: `tools:
  - module: __ID__
    source: ./__ID__/mod.ts
    config: { greeting: Good morning }`,
  config: [["greeting", "text", "text before the name, default `Hello`"]],
  module: `/** \`__ID__\`: greets a person by name. */
import {
  type Coordinator,
  defineTool,
  type JsonObject,
  type ModuleInfo,
  type MountReturn,
  readConfig,
  z,
} from "preamp";

const CONFIG_SCHEMA = {
  type: "object",
  properties: { greeting: { type: "string", default: "Hello", description: "Text before the name" } },
};

/** The metadata of this module. */
export const module: ModuleInfo = {
  id: "__ID__",
  type: "tool",
  version: "0.1.0",
  description: "Greets a person by name.",
  config_schema: CONFIG_SCHEMA,
  permissions: {}, // permissions that it needs, such as { net: ["api.example.com"] }; the plan grants them
};

const GREETED = "__ID__:greeted";

/** Mounts the tool \`__NAME__\`. */
export async function mount(coordinator: Coordinator, config: JsonObject): Promise<MountReturn> {
  const { greeting } = readConfig<{ greeting: string }>(CONFIG_SCHEMA, config);

  const tool = defineTool({
    name: "__NAME__",
    description: "Greets a person by name. Use it to welcome a person.",
    input: z.object({ person: z.string().describe("Name of the person") }),
    async execute({ person }) {
      if (person.trim() === "") {
        return { success: false, error: { message: "person is empty; give a name" } };
      }
      await coordinator.hooks.emit(GREETED, { person });
      return { success: true, output: \`\${greeting}, \${person}!\` };
    },
  });

  coordinator.registerContributor("observability.events", module.id, () => [GREETED]);
  await coordinator.mount("tools", tool, tool.name);
  return { name: module.id, version: module.version, provides: [tool.name] };
}
`,
  test: `import assert from "node:assert/strict";
import { TestCoordinator, testTool } from "preamp/testing";
import * as module from "./mod.ts";

testTool("__ID__", () => module, { input: { person: "Ada" } });

Deno.test("mount() mounts the tool __NAME__", async () => {
  const coordinator = new TestCoordinator();
  await module.mount(coordinator, {});
  const [mounted] = coordinator.mount_history;
  assert.equal(mounted?.mount_point, "tools");
  assert.equal(mounted?.name, "__NAME__");
});

Deno.test("__NAME__ greets as configured and emits its event", async () => {
  const coordinator = new TestCoordinator();
  await module.mount(coordinator, { greeting: "Good morning" });
  const result = await coordinator.tools.__NAME__!.execute({ person: "Ada" });
  assert.deepEqual(result, { success: true, output: "Good morning, Ada!" });
  const [[, data] = []] = coordinator.hooks.getEvents("__ID__:greeted");
  assert.deepEqual(data, { person: "Ada" });
});

Deno.test("__NAME__ returns a failure that the model can correct", async () => {
  const coordinator = new TestCoordinator();
  await module.mount(coordinator, {});
  const result = await coordinator.tools.__NAME__!.execute({ person: " " }) as { success: boolean };
  assert.equal(result.success, false);
});
`,
};
