/**
 * `context-persistent`: `context-simple` with memory files, texts that every session begins with. History and decisions come
 * back through the session, as every context's do (architecture.md, "The log is the state"): there is no second store.
 */
import { type Coordinator, type JsonObject, messageTokens, type ModuleInfo, PreampError } from "preamp";
import { CONFIG_SCHEMA, parseConfig, publish, SimpleContext } from "preamp/context";
import { memoryFilesOf, readMemoryFiles } from "./memory_files.ts";

const ID = "context-persistent";

/** Share of the messages that is not left out; upstream's, lower than that of `context-simple` (behaviour.md §8.6). */
const PROTECTED_RECENT = 0.1;

const PROPERTIES: JsonObject = {
  ...CONFIG_SCHEMA.properties,
  protected_recent: { ...CONFIG_SCHEMA.properties.protected_recent, default: PROTECTED_RECENT },
  memory_files: { type: "array", items: { type: "string" }, default: [] },
};

/** What the module says of itself. */
export const module: ModuleInfo = {
  id: ID,
  name: "Persistent context",
  version: "1.0.0",
  type: "context",
  mount_point: "context",
  description: "context-simple whose sessions begin with memory files",
  config_schema: { type: "object", properties: PROPERTIES },
};

/**
 * Reads the memory files and mounts the context manager.
 *
 * @throws {PreampError} `module_invalid` when the config is wrong or a file cannot be read; `tool_permission_denied` when
 * the plan does not let this module read it; `context_overflow` when the files alone are larger than `max_tokens`.
 */
export async function mount(coordinator: Coordinator, config: JsonObject = {}): Promise<void> {
  const parsed = parseConfig({ protected_recent: PROTECTED_RECENT, ...config }, ID);
  const fixed = await readMemoryFiles(coordinator, memoryFilesOf(config));
  const tokens = fixed.reduce((sum, message) => sum + messageTokens(message), 0);
  if (tokens > parsed.max_tokens) {
    const message =
      `Cannot open the session: its memory files may take ${parsed.max_tokens} tokens (max_tokens): received ${tokens}; shorten them or name fewer`;
    throw new PreampError("context_overflow", message, { facts: { tokens, budget: parsed.max_tokens } });
  }
  await publish(coordinator, new SimpleContext(coordinator, parsed, { id: ID, fixed }), {
    id: ID,
    recall: parsed.recall,
  });
}
