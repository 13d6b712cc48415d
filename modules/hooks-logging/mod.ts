/** `hooks-logging`: writes every event as a JSON line, in Amplifier's log format. */
import {
  type Coordinator,
  isAbsolutePath,
  isPathGranted,
  type JsonObject,
  type JsonSchema,
  type ModuleInfo,
  type MountReturn,
  parentFolder,
  PreampError,
  readConfig,
} from "preamp/base";
import { fileSink, LineQueue, logFiles, type Sink, writeStderr } from "./log_file.ts";
import { DROPPED, formatLine, isDelta } from "./log_line.ts";

interface LogSettings {
  /** Absolute path of the log file, or null for standard error. */
  path: string | null;
  /** Maximum bytes of the file before it is rotated. */
  max_bytes: number;
  /** Maximum number of files, the current one included. */
  max_files: number;
  /** Whether deltas of answers are logged. */
  deltas: boolean;
}

const CONFIG_SCHEMA: JsonSchema = {
  type: "object",
  properties: {
    path: {
      type: ["string", "null"],
      format: "path",
      default: null,
      description: "File to append to; default: standard error",
    },
    max_bytes: {
      type: "integer",
      minimum: 64 * 1024, // less would rotate after a few lines
      default: 10 * 1024 * 1024,
      description: "Maximum size of the file; it is then renamed to <path>.1",
    },
    max_files: {
      type: "integer",
      minimum: 2,
      maximum: 100,
      default: 5,
      description: "Maximum number of files, the current one included; the oldest is replaced",
    },
    deltas: { type: "boolean", default: false, description: "Log deltas of answers as they arrive" },
  },
};

export const module: ModuleInfo = {
  id: "hooks-logging",
  type: "hook",
  version: "1.1.0",
  description: "Writes every event as a JSON line to a file or to standard error.",
  config_schema: CONFIG_SCHEMA,
};

/** The capability `session.redact`; it returns a promise when this module runs in a sandbox. */
type Redact = (event: string, data: JsonObject) => JsonObject | Promise<JsonObject>;

/**
 * Registers a handler of all events after those of default priority. It never denies or changes anything.
 * Resolves to a cleanup that waits until all lines are written.
 *
 * @throws {PreampError} `module_invalid` when the config is wrong; `tool_permission_denied` when the plan
 * does not grant write access to `path`.
 */
export async function mount(coordinator: Coordinator, config: JsonObject): Promise<MountReturn> {
  const settings = readConfig<LogSettings>(CONFIG_SCHEMA, config, ({ path }, refuse) => {
    if (path !== null && (!isAbsolutePath(path) || path.includes("\0"))) {
      refuse(["path"], "must be an absolute path");
    }
  });
  const { clock, hooks, session_id } = coordinator;
  const line = (event: string, data: JsonObject) => formatLine(event, data, clock.now());
  const queue = new LineQueue(
    await openSink(coordinator, settings),
    (count) => line(DROPPED, { session_id, count }),
  );
  let warned = false;
  hooks.register("*", async (event, data) => {
    if (isDelta(event) && !settings.deltas) return null;
    const redact = coordinator.getCapability("session.redact"); // absent in tests of modules
    queue.add(line(event, typeof redact === "function" ? await (redact as Redact)(event, data) : data));
    if (queue.failed && !warned) {
      warned = true;
      const message = "The log of this session can no longer be written";
      await hooks.emit("user:notification", { message, level: "warning", source: `hook:${module.id}` });
    }
    if (event === "session:cleanup") await queue.flush().catch(() => {}); // it comes after the cleanups
    return null;
  }, { priority: 100, name: module.id, fail_closed: false }); // also on gates: a failed log must not deny a call
  return () => queue.flush();
}

async function openSink(
  { permissions }: Coordinator,
  { path, max_bytes, max_files }: LogSettings,
): Promise<Sink> {
  if (path === null) return writeStderr;
  for (const file of logFiles(path, max_files)) {
    // a built-in module runs in the program, without a sandbox, so it checks its grant itself
    if (!await isPathGranted(permissions.write, file, Deno.realPath)) {
      throw new PreampError(
        "tool_permission_denied",
        `Cannot mount module "${module.id}": permissions.write of its entry does not cover ` +
          `${JSON.stringify(file)} here (preamp plan explain)`,
      );
    }
  }
  await Deno.mkdir(parentFolder(path), { recursive: true, mode: 0o700 });
  const sink = fileSink(path, max_bytes, max_files);
  await sink(""); // fails now if the file cannot be opened
  return sink;
}
