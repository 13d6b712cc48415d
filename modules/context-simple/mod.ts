/**
 * `context-simple`: conversation memory in the process. Each request gets a view of the history that fits its budget; the
 * history itself is never altered. Needs no model and no disk.
 */
import type { Coordinator, JsonObject, ModuleInfo } from "preamp";
import { CONFIG_SCHEMA, parseConfig, unknownKeys } from "./config.ts";
import { SimpleContext } from "./context.ts";

/** What the module says of itself. */
export const module: ModuleInfo = {
  id: "context-simple",
  name: "Simple context",
  version: "1.0.0",
  type: "context",
  mount_point: "context",
  description:
    "Keeps the conversation in memory and compacts each request's view of it to the model's budget",
  config_schema: CONFIG_SCHEMA,
};

const EVENTS = [
  "context:pre_compact",
  "context:compaction",
  "context:post_compact",
  "context:tool_result_ingress_truncated",
];

/**
 * Mounts the context manager and publishes the capability `context.status`.
 *
 * @throws {PreampError} `module_invalid` when the config is wrong; every finding is in `details`.
 */
export async function mount(coordinator: Coordinator, config: JsonObject = {}): Promise<void> {
  const context = new SimpleContext(coordinator, parseConfig(config));
  const unknown = unknownKeys(config);
  if (unknown.length > 0) {
    const message = `context-simple ignores config it does not know: ${unknown.join(", ")}`;
    await coordinator.hooks.emit("user:notification", { message, level: "warning", source: module.id });
  }
  await coordinator.mount("context", context);
  coordinator.registerCapability("context.status", () => context.status);
  coordinator.registerContributor("observability.events", module.id, () => EVENTS);
}
