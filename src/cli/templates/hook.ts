/** A hook on a gate: it denies tools that the config names, and fails closed. */
import type { Template } from "../commands/module_new.ts";

export const template: Template = {
  about: "Denies tool calls by name.",
  plan: `hooks:
  - module: __ID__
    source: ./__ID__/mod.ts
    config: { deny: [bash] }`,
  config: [["deny", "list of texts", "names of tools that may not run, default none"]],
  module: `/** \`__ID__\`: denies tool calls by name. */
import {
  type Coordinator,
  type HookResult,
  type JsonObject,
  type ModuleInfo,
  type MountReturn,
  readConfig,
} from "preamp";

const CONFIG_SCHEMA = {
  type: "object",
  properties: {
    deny: { type: "array", items: { type: "string" }, default: [], description: "Tools that may not run" },
  },
};

/** The metadata of this module. */
export const module: ModuleInfo = {
  id: "__ID__",
  type: "hook",
  version: "0.1.0",
  description: "Denies tool calls by name.",
  config_schema: CONFIG_SCHEMA,
  permissions: {}, // permissions that it needs, such as { env: ["TZ"] }; the plan grants them
};

const DENIED = "__ID__:denied";

/** Registers the handler. \`tool:pre\` is a gate: if a handler throws, the call is denied. */
// deno-lint-ignore require-await -- mount() returns a promise
export async function mount(coordinator: Coordinator, config: JsonObject): Promise<MountReturn> {
  const { deny } = readConfig<{ deny: string[] }>(CONFIG_SCHEMA, config);
  const denied = new Set(deny);
  coordinator.registerContributor("observability.events", module.id, () => [DENIED]);
  const dispose = coordinator.hooks.register("tool:pre", async (_event, data): Promise<HookResult | null> => {
    const tool = String(data.tool_name);
    if (!denied.has(tool)) return null;
    await coordinator.hooks.emit(DENIED, { tool_name: tool });
    return { action: "deny", reason: \`\${tool} is not allowed here\` };
  }, { name: module.id });
  return dispose; // called when the session ends
}
`,
  test: `import assert from "node:assert/strict";
import { TestCoordinator, testHook } from "preamp/testing";
import * as module from "./mod.ts";

testHook("__ID__", () => module, {
  config: { deny: ["bash"] },
  expectations: [
    { event: "tool:pre", data: { tool_name: "bash" }, action: "deny" },
    { event: "tool:pre", data: { tool_name: "calculator" }, action: "continue" },
  ],
});

Deno.test("mount() registers a handler of tool:pre, and its cleanup removes it", async () => {
  const coordinator = new TestCoordinator();
  const cleanup = await module.mount(coordinator, {}) as () => void;
  assert.deepEqual(coordinator.hooks.listHandlers(), { "tool:pre": ["__ID__"] });
  cleanup();
  assert.deepEqual(coordinator.hooks.listHandlers(), {});
});

Deno.test("mount() refuses an invalid config", async () => {
  await assert.rejects(
    async () => await module.mount(new TestCoordinator(), { deny: "bash" }),
    /config.deny/,
  );
});
`,
};
