/**
 * `context-simple`: keeps the conversation in memory. Each request gets a view of the history that fits its
 * token budget; the history itself is never changed. It needs no model and no disk.
 */
import type { Coordinator, JsonObject, ModuleInfo } from "preamp/base";
import { CONFIG_SCHEMA, parseConfig, publish, SimpleContext } from "preamp/context";

export const module: ModuleInfo = {
  id: "context-simple",
  name: "Simple context",
  version: "1.0.0",
  type: "context",
  mount_point: "context",
  description:
    "Keeps the conversation in memory and compacts each request's view of it to the model's budget.",
  config_schema: CONFIG_SCHEMA,
};

/**
 * Mounts the context manager and the capability `context.status`. With `recall: true` it also mounts the tool
 * `context_recall`.
 *
 * @throws {PreampError} `module_invalid` when the config is wrong; `details` has all problems.
 */
export async function mount(coordinator: Coordinator, config: JsonObject = {}): Promise<void> {
  const parsed = parseConfig(config);
  await publish(coordinator, new SimpleContext(coordinator, parsed), {
    id: module.id,
    recall: parsed.recall,
  });
}
