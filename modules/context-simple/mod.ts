/**
 * `context-simple`: conversation memory in the process. Each request gets a view of the history that fits its budget; the
 * history itself is never altered. Needs no model and no disk.
 */
import type { Coordinator, JsonObject, ModuleInfo } from "preamp";
import { type Config, CONFIG_SCHEMA, parseConfig, unknownKeys } from "./config.ts";
import { SimpleContext } from "./context.ts";
import { recallTool } from "./recall.ts";

export { type Config, CONFIG_SCHEMA, parseConfig, SimpleContext };
export type { ContextStatus, SummaryFacts } from "./context.ts";

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
 * Mounts the context manager, publishes the capability `context.status`, and mounts the tool `context_recall` when the config
 * says `recall: true`.
 *
 * @throws {PreampError} `module_invalid` when the config is wrong; every finding is in `details`.
 */
export async function mount(coordinator: Coordinator, config: JsonObject = {}): Promise<void> {
  const parsed = parseConfig(config, module.id);
  await warnOfUnknown(coordinator, module.id, unknownKeys(config));
  await publish(coordinator, new SimpleContext(coordinator, parsed), {
    id: module.id,
    recall: parsed.recall,
  });
}

/** Tells which keys of a configuration mean nothing. */
export async function warnOfUnknown(
  coordinator: Coordinator,
  id: string,
  unknown: readonly string[],
): Promise<void> {
  if (unknown.length === 0) return;
  const message = `${id} ignores config it does not know: ${unknown.join(", ")}`;
  await coordinator.hooks.emit("user:notification", { message, level: "warning", source: id });
}

/** Mounts a context of this family with all that belongs to it. */
export async function publish(
  coordinator: Coordinator,
  context: SimpleContext,
  { id, recall }: { id: string; recall: boolean },
): Promise<void> {
  await coordinator.mount("context", context);
  if (recall) await coordinator.mount("tools", recallTool(() => context.history));
  coordinator.hooks.register("provider:response", (_event, data) => {
    context.noteUsage(data);
    return null;
  }, { name: id });
  coordinator.registerCapability("context.status", () => context.status);
  coordinator.registerContributor("observability.events", id, () => EVENTS);
}
