/**
 * `context-persistent`: `context-simple` with memory files, texts at the start of every request. The session restores the
 * history and the compaction decisions (src/docs/architecture.md#the-log-is-the-state): there is no second store.
 */
import {
  type Coordinator,
  type JsonObject,
  type JsonSchema,
  messageTokens,
  type ModuleInfo,
  PreampError,
} from "preamp/base";
import { CONFIG_SCHEMA, parseConfig, publish, SimpleContext } from "preamp/context";
import { readMemoryFiles } from "./memory_files.ts";

const ID = "context-persistent";

/** Default share of the messages that is never left out; Amplifier's value, lower than that of `context-simple`. */
const PROTECTED_RECENT = 0.1;

const SCHEMA: JsonSchema = {
  type: "object",
  properties: {
    ...CONFIG_SCHEMA.properties,
    protected_recent: { ...CONFIG_SCHEMA.properties.protected_recent, default: PROTECTED_RECENT },
    memory_files: { type: "array", items: { type: "string" }, default: [] },
  },
};

/** Describes the module. */
export const module: ModuleInfo = {
  id: ID,
  name: "Persistent context",
  version: "1.0.0",
  type: "context",
  mount_point: "context",
  description: "context-simple with memory files at the start of every request",
  config_schema: SCHEMA,
};

/**
 * Reads the memory files and mounts the context manager.
 *
 * @throws {PreampError} `module_invalid` when the config is wrong or a file cannot be read; `tool_permission_denied` when
 * the plan does not grant read access; `context_overflow` when the files alone are larger than `max_tokens`.
 */
export async function mount(coordinator: Coordinator, config: JsonObject = {}): Promise<void> {
  const parsed = parseConfig<{ memory_files: string[] }>(config, SCHEMA);
  const fixed = await readMemoryFiles(coordinator, parsed.memory_files);
  const tokens = fixed.reduce((sum, message) => sum + messageTokens(message), 0);
  if (tokens > parsed.max_tokens) {
    const message =
      `Cannot open the session: the memory files have ${tokens} tokens, more than max_tokens (${parsed.max_tokens}); shorten them or list fewer`;
    throw new PreampError("context_overflow", message, { facts: { tokens, budget: parsed.max_tokens } });
  }
  await publish(coordinator, new SimpleContext(coordinator, parsed, { id: ID, fixed }), {
    id: ID,
    recall: parsed.recall,
  });
}
