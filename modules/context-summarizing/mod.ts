/**
 * `context-summarizing`: `context-simple` with a summary, written by a model, of the messages that compactions left out.
 * Without a model, or when it fails, views are those of `context-simple`.
 */
import type { Coordinator, JsonObject, JsonSchema, ModuleInfo } from "preamp/base";
import { CONFIG_SCHEMA, parseConfig, publish, SimpleContext } from "preamp/context";
import { summariser, type SummaryConfig } from "./summariser.ts";

const ID = "context-summarizing";

const WHOLE = { type: "integer", minimum: 1 } as const;

const SCHEMA: JsonSchema = {
  type: "object",
  properties: {
    ...CONFIG_SCHEMA.properties,
    summary_provider: { type: ["string", "null"], default: null },
    summary_max_tokens: { ...WHOLE, default: 1000 },
    summary_chunk_tokens: { ...WHOLE, default: 12_000 },
    summary_max_calls: { ...WHOLE, default: 4 },
    summary_timeout_s: { ...WHOLE, default: 60 },
  },
};

export const module: ModuleInfo = {
  id: ID,
  name: "Summarizing context",
  version: "1.0.0",
  type: "context",
  mount_point: "context",
  description: "context-simple with a summary, written by a model, of the messages that compactions left out",
  config_schema: SCHEMA,
};

/**
 * Mounts the context manager.
 *
 * @throws {PreampError} `module_invalid` when the config is wrong; `details` has all problems.
 */
export async function mount(coordinator: Coordinator, config: JsonObject = {}): Promise<void> {
  const parsed = parseConfig<SummaryConfig>(config, SCHEMA);
  const summarise = summariser(coordinator, parsed, ID);
  await publish(coordinator, new SimpleContext(coordinator, parsed, { id: ID, summarise }), {
    id: ID,
    recall: parsed.recall,
  });
  coordinator.registerContributor("observability.events", `${ID}:summary`, () => ["context:summary"]);
}
