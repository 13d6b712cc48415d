/**
 * `context-simple`: conversation memory in the process. Each request gets a view of the history that fits its budget; the
 * history itself is never altered. Needs no model and no disk.
 */
import type { Coordinator, JsonObject, ModuleInfo } from "preamp";
import { CONFIG_SCHEMA, parseConfig, publish, SimpleContext } from "preamp/context";

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

/**
 * Mounts the context manager, publishes the capability `context.status`, and mounts the tool `context_recall` when the config
 * says `recall: true`.
 *
 * @throws {PreampError} `module_invalid` when the config is wrong; every finding is in `details`.
 */
export async function mount(coordinator: Coordinator, config: JsonObject = {}): Promise<void> {
  const parsed = parseConfig(config, module.id);
  await publish(coordinator, new SimpleContext(coordinator, parsed), {
    id: module.id,
    recall: parsed.recall,
  });
}
