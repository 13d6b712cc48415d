/** The module's config. */
import { isAbsolutePath, type JsonObject, type JsonSchema, readConfig } from "preamp/base";
import { isEventName, MAX_EVENT_CHARS, MAX_EVENTS } from "./events.ts";

/** The settings of a config. */
export interface LogSettings {
  /** Absolute path of the log file, or null. */
  path: string | null;
  /** Maximum bytes of the file before it is rotated. */
  max_bytes: number;
  stderr: boolean;
  /** Whether deltas of answers are logged. */
  deltas: boolean;
  additional_events: string[];
}

/** JSON Schema of the config. */
export const CONFIG_SCHEMA: JsonSchema = {
  type: "object",
  properties: {
    path: { type: ["string", "null"], default: null, description: "Absolute path of the file to append to" },
    max_bytes: {
      type: "integer",
      minimum: 64 * 1024, // less would rotate after a few lines
      default: 10 * 1024 * 1024,
      description: "Maximum size of the file; it is then renamed to <path>.1",
    },
    stderr: { type: "boolean", description: "Default: true without a path" },
    deltas: { type: "boolean", default: false, description: "Log deltas of answers as they arrive" },
    additional_events: {
      type: "array",
      maxItems: MAX_EVENTS,
      items: { type: "string", minLength: 1, maxLength: MAX_EVENT_CHARS },
      default: [],
    },
  },
};

/**
 * Returns the settings of a config. Without `path` and `stderr` the log goes to stderr.
 *
 * @throws {PreampError} `module_invalid` with all problems and their paths.
 */
export function readLogSettings(config: JsonObject): LogSettings {
  const settings = readConfig<Omit<LogSettings, "stderr"> & { stderr?: boolean }>(
    CONFIG_SCHEMA,
    config,
    ({ path, additional_events }, refuse) => {
      if (path !== null && (!isAbsolutePath(path) || path.includes("\0"))) {
        refuse(["path"], "must be an absolute path");
      }
      for (const [index, event] of additional_events.entries()) {
        if (!isEventName(event)) refuse(["additional_events", index], 'must be an event name without "*"');
      }
    },
  );
  return { ...settings, stderr: settings.stderr ?? settings.path === null };
}
