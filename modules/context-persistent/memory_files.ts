/** Reads memory files: texts at the start of every request of a session. */
import type { Coordinator, Message } from "preamp/base";
import {
  baseName,
  deepFreeze,
  errorCode,
  errorMessage,
  isAbsolutePath,
  isObject,
  isWithinFolder,
  normalizePath,
  PreampError,
} from "preamp/base";

/** Maximum size of one memory file, in bytes. */
const MAX_FILE_BYTES = 1_048_576;

/**
 * Resolves to one system message for each file, in the given order: `[Context from NAME]` and the text.
 *
 * @throws {PreampError} `module_invalid` when a path is not absolute, or a file cannot be read, is not valid UTF-8, or is larger than 1 MiB;
 * `tool_permission_denied` when the plan's entry of this module does not have `permissions.read` for it.
 */
export async function readMemoryFiles(
  coordinator: Pick<Coordinator, "config">,
  files: readonly string[],
): Promise<Message[]> {
  const relative = files.find((file) => !isAbsolutePath(file));
  if (relative !== undefined) {
    throw new PreampError(
      "module_invalid",
      `Cannot read memory file ${JSON.stringify(relative)}: config.memory_files must have absolute paths`,
    );
  }
  const messages: Message[] = [];
  for (const file of files) {
    await checkGrant(coordinator, file);
    const text = await readText(file);
    messages.push(deepFreeze({
      role: "system",
      content: `[Context from ${baseName(file)}]\n\n${text}`,
      metadata: { source: "memory", file },
    }));
  }
  return messages;
}

async function readText(file: string): Promise<string> {
  try {
    const { size, isFile } = await Deno.stat(file);
    if (!isFile || size > MAX_FILE_BYTES) {
      throw new RangeError(
        `must be a file of at most ${MAX_FILE_BYTES} bytes: received ${isFile ? size : "no file"}`,
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

/**
 * Throws unless the plan grants this module read access to a file. A built-in module runs inline, without a sandbox, so it
 * enforces the permissions of its own plan entry (src/docs/security.md#permissions).
 */
async function checkGrant({ config }: Pick<Coordinator, "config">, file: string): Promise<void> {
  const session = isObject(config.session) ? config.session : {};
  const spec = isObject(session.context) ? session.context : {};
  const granted = isObject(spec.permissions) ? spec.permissions.read : undefined;
  if (granted === true) return;
  const real = await realPath(file);
  for (const folder of Array.isArray(granted) ? granted : []) {
    if (
      typeof folder === "string" && isAbsolutePath(folder) && isWithinFolder(await realPath(folder), real)
    ) return;
  }
  throw new PreampError(
    "tool_permission_denied",
    `Cannot read memory file ${
      JSON.stringify(file)
    }: session.context must have permissions.read for it: received ${JSON.stringify(granted) ?? "none"}`,
  );
}

/** Returns the path with all links followed, so that a link cannot lead out of a granted folder. A missing file fails later, on reading. */
async function realPath(path: string): Promise<string> {
  try {
    return await Deno.realPath(path);
  } catch {
    return normalizePath(path);
  }
}
