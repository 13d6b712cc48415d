/**
 * `context-summarizing`: `context-simple` with a summary, written by a model, of the messages that compactions left out.
 * Without a model, or when it fails, views are those of `context-simple`.
 */
import type { Coordinator, JsonObject, ModuleInfo } from "preamp";
import { CONFIG_SCHEMA, parseConfig, publish, SimpleContext } from "preamp/context";
import { parseSummaryConfig, SUMMARY_PROPERTIES } from "./config.ts";
import { summariser } from "./summariser.ts";

const ID = "context-summarizing";

const PROPERTIES: JsonObject = { ...CONFIG_SCHEMA.properties, ...SUMMARY_PROPERTIES };

/** Describes the module. */
export const module: ModuleInfo = {
  id: ID,
  name: "Summarizing context",
  version: "1.0.0",
  type: "context",
  mount_point: "context",
  description: "context-simple with a summary, written by a model, of the messages that compactions left out",
  config_schema: { type: "object", properties: PROPERTIES },
};

/**
 * Mounts the context manager.
 *
 * @throws {PreampError} `module_invalid` when the config is wrong; `details` has all problems.
 */
export async function mount(coordinator: Coordinator, config: JsonObject = {}): Promise<void> {
  const parsed = parseConfig(config, ID);
  const summarise = summariser(coordinator, parseSummaryConfig(config), ID);
  await publish(coordinator, new SimpleContext(coordinator, parsed, { id: ID, summarise }), {
    id: ID,
    recall: parsed.recall,
  });
  coordinator.registerContributor("observability.events", `${ID}:summary`, () => ["context:summary"]);
}
