/**
 * `context-persistent`: `context-simple` with memory files, texts at the start of every request. The session
 * restores the history and the compaction decisions (src/docs/architecture.md#the-log-is-the-state): there is
 * no second store.
 */
import {
  baseName,
  type Coordinator,
  deepFreeze,
  errorMessage,
  type GrantedPermissions,
  isAbsolutePath,
  isPathGranted,
  type JsonObject,
  type JsonSchema,
  type Message,
  messageTokens,
  type ModuleInfo,
  normalizePath,
  PreampError,
  type TextFile,
} from "preamp/base";
import { CONFIG_SCHEMA, parseConfig, publish, SimpleContext } from "preamp/context";

const ID = "context-persistent";

/**
 * Default share of the messages that is never left out; Amplifier's value, lower than that of
 * `context-simple`.
 */
const PROTECTED_RECENT = 0.1;

const SCHEMA: JsonSchema = {
  type: "object",
  properties: {
    ...CONFIG_SCHEMA.properties,
    protected_recent: { ...CONFIG_SCHEMA.properties.protected_recent, default: PROTECTED_RECENT },
    memory_files: { type: "array", items: { type: "string", format: "path" }, default: [] },
  },
};

/** Maximum size of one memory file, in bytes. */
const MAX_FILE_BYTES = 1_048_576;

export const module: ModuleInfo = {
  id: ID,
  name: "Persistent context",
  version: "1.0.0",
  type: "context",
  mount_point: "context",
  description: "context-simple with memory files at the start of every request.",
  config_schema: SCHEMA,
};

/**
 * Reads the memory files and mounts the context manager.
 *
 * @throws {PreampError} `module_invalid` when the config is wrong, a path is not absolute, or a file cannot
 * be read, is not valid UTF-8, or is larger than 1 MiB; `tool_permission_denied` when the plan does not grant
 * read access; `context_overflow` when the files alone are larger than `max_tokens`.
 */
export async function mount(coordinator: Coordinator, config: JsonObject = {}): Promise<void> {
  const settings = parseConfig<{ memory_files: string[] }>(config, SCHEMA);
  const { memory_files, max_tokens, recall } = settings;
  const relative = memory_files.find((file) => !isAbsolutePath(file));
  if (relative !== undefined) {
    throw cannotRead(relative, "config.memory_files must have absolute paths");
  }
  const fixed: Message[] = [];
  for (const file of memory_files) {
    await checkGrant(coordinator, file);
    fixed.push(deepFreeze({
      role: "system",
      content: `[Context from ${baseName(file)}]\n\n${await readText(file)}`,
      metadata: { source: "memory", file },
    }));
  }
  const tokens = fixed.reduce((sum, message) => sum + messageTokens(message), 0);
  if (tokens > max_tokens) {
    const message =
      `Cannot open the session: the memory files have ${tokens} tokens, more than max_tokens (${max_tokens}); shorten them or list fewer`;
    throw new PreampError("context_overflow", message, { facts: { tokens, budget: max_tokens } });
  }
  await publish(coordinator, new SimpleContext(coordinator, settings, { id: ID, fixed }), { id: ID, recall });
}

/** Resolves to the memory files that can be read; {@link mount} reports the others. */
export async function texts(config: JsonObject, permissions: GrantedPermissions): Promise<TextFile[]> {
  const { memory_files } = parseConfig<{ memory_files: string[] }>(config, SCHEMA);
  const found: TextFile[] = [];
  for (const file of memory_files) {
    try {
      await checkGrant({ permissions }, file);
      const bytes = new TextEncoder().encode(await readText(file));
      const sha256 = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)).toHex();
      const path = await Deno.realPath(file);
      found.push({ label: `memory file ${baseName(file)}`, path, sha256, bytes: bytes.length });
    } catch {
      continue;
    }
  }
  return found;
}

async function readText(file: string): Promise<string> {
  try {
    const { size, isFile } = await Deno.stat(file);
    if (isFile && size <= MAX_FILE_BYTES) {
      return new TextDecoder("utf-8", { fatal: true }).decode(await Deno.readFile(file));
    }
    throw new RangeError(
      `must be a file of at most ${MAX_FILE_BYTES} bytes: received ${isFile ? size : "no file"}`,
    );
  } catch (error) {
    throw cannotRead(file, errorMessage(error), error);
  }
}

function cannotRead(file: string, fact: string, cause?: unknown): PreampError {
  return new PreampError("module_invalid", `Cannot read memory file ${JSON.stringify(file)}: ${fact}`, {
    cause,
  });
}

/**
 * Throws unless this module may read a file: a built-in module runs in the program, without a sandbox, so it
 * checks its grant itself (src/docs/security.md#permissions).
 */
async function checkGrant({ permissions }: Pick<Coordinator, "permissions">, file: string): Promise<void> {
  const granted = permissions.read;
  // a file that cannot be reached fails later, on reading
  const realPath = (path: string) => Deno.realPath(path).catch(() => normalizePath(path));
  if (await isPathGranted(granted, file, realPath)) return;
  throw new PreampError(
    "tool_permission_denied",
    `Cannot read memory file ${JSON.stringify(file)}: permissions.read of session.context does not ` +
      "cover it here (preamp plan explain)",
  );
}
