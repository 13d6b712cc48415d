/** Memory files: texts that every request of a session begins with (behaviour.md §8.6). */
import type { Coordinator, JsonObject, Message } from "preamp";
import { deepFreeze, errorCode, errorMessage, isObject, PreampError } from "preamp";
import { basename, isAbsolute, isWithin, normalize } from "./paths.ts";

/** Bytes of one memory file; more is a mistake, not a memory. */
const MOST_BYTES = 1_048_576;

/**
 * Resolves to the files' texts as system messages, `[Context from NAME]` above each, in the order given.
 *
 * @throws {PreampError} `module_invalid` when a file cannot be read, is no text, or is larger than 1 MiB;
 * `tool_permission_denied` when the plan's entry of this module does not have `permissions.read` for it.
 */
export async function readMemoryFiles(
  coordinator: Pick<Coordinator, "config">,
  files: readonly string[],
): Promise<Message[]> {
  const messages: Message[] = [];
  for (const file of files) {
    await checkGrant(coordinator, file);
    const text = await readText(file);
    messages.push(deepFreeze({
      role: "system",
      content: `[Context from ${basename(file)}]\n\n${text}`,
      metadata: { source: "memory", file },
    }));
  }
  return messages;
}

async function readText(file: string): Promise<string> {
  try {
    const { size, isFile } = await Deno.stat(file);
    if (!isFile || size > MOST_BYTES) {
      throw new RangeError(
        `must be a file of at most ${MOST_BYTES} bytes: received ${isFile ? size : "no file"}`,
      );
    }
    return new TextDecoder("utf-8", { fatal: true }).decode(await Deno.readFile(file));
  } catch (error) {
    if (errorCode(error) !== undefined && error instanceof PreampError) throw error;
    throw new PreampError(
      "module_invalid",
      `Cannot read memory file ${JSON.stringify(file)}: ${errorMessage(error)}`,
      { cause: error },
    );
  }
}

/** Built-in modules run inline, where no sandbox stops them: they hold themselves to what their entry in the plan grants (trust.md). */
async function checkGrant({ config }: Pick<Coordinator, "config">, file: string): Promise<void> {
  const session = isObject(config.session) ? config.session : {};
  const spec = isObject(session.context) ? session.context : {};
  const granted = isObject(spec.permissions) ? spec.permissions.read : undefined;
  if (granted === true) return;
  const real = await realPath(file);
  for (const place of Array.isArray(granted) ? granted : []) {
    if (typeof place === "string" && isAbsolute(place) && isWithin(await realPath(place), real)) return;
  }
  throw new PreampError(
    "tool_permission_denied",
    `Cannot read memory file ${
      JSON.stringify(file)
    }: session.context must have permissions.read for it: received ${JSON.stringify(granted) ?? "none"}`,
  );
}

/** Links followed, so that one does not lead out of a granted folder; a path that is not there is told when it is read. */
async function realPath(path: string): Promise<string> {
  try {
    return await Deno.realPath(path);
  } catch {
    return normalize(path);
  }
}

/** Returns the config's `memory_files`. @throws {PreampError} `module_invalid` when it is no list of absolute paths. */
export function memoryFilesOf(config: JsonObject): string[] {
  const { memory_files = [] } = config;
  if (
    Array.isArray(memory_files) && memory_files.every((file) => typeof file === "string" && isAbsolute(file))
  ) {
    return memory_files;
  }
  throw new PreampError(
    "module_invalid",
    `Cannot configure context-persistent: memory_files must be a list of absolute paths: received ${
      JSON.stringify(memory_files)
    }`,
  );
}
