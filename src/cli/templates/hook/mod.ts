/** `__ID__`: denies tool calls by name. */
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

/** Registers the handler. `tool:pre` is a gate: if a handler throws, the call is denied. */
// deno-lint-ignore require-await -- mount() returns a promise
export async function mount(coordinator: Coordinator, config: JsonObject): Promise<MountReturn> {
  const { deny } = readConfig<{ deny: string[] }>(CONFIG_SCHEMA, config);
  const denied = new Set(deny);
  coordinator.registerContributor("observability.events", module.id, () => [DENIED]);
  const dispose = coordinator.hooks.register("tool:pre", async (_event, data): Promise<HookResult | null> => {
    const tool = String(data.tool_name);
    if (!denied.has(tool)) return null;
    await coordinator.hooks.emit(DENIED, { tool_name: tool });
    return { action: "deny", reason: `${tool} is not allowed here` };
  }, { name: module.id });
  return dispose; // called when the session ends
}
