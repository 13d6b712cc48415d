/** The module's config, and the events that are logged by default. */
import { isAbsolutePath, type JsonObject, type JsonSchema, readConfig } from "preamp/base";

/** Amplifier's canonical events, which are logged by default. */
export const CANONICAL_EVENTS: readonly string[] = [
  ...names("session", "start end fork resume"),
  ...names("prompt", "submit complete"),
  ...names("plan", "start end"),
  ...names("provider", "request response retry error throttle tool_sequence_repaired resolve"),
  ...names("llm", "request response"),
  ...names("content_block", "start delta end"),
  ...names("thinking", "delta final"),
  ...names("tool", "pre post error"),
  ...names("context", "pre_compact post_compact compaction include"),
  ...names("orchestrator", "complete"),
  ...names("execution", "start end"),
  ...names("user", "notification"),
  ...names("artifact", "write read"),
  ...names("policy", "violation"),
  ...names("approval", "required granted denied"),
  ...names("cancel", "requested completed"),
  ...names("module", "on_session_ready_failed"),
];

/** Maximum events that modules may add, and maximum characters of each name. */
const MAX_EVENTS = 1_000;
const MAX_EVENT_CHARS = 128;

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

/** Returns the valid event names in lists of contributors; other values are ignored. */
export function eventNames(contributions: readonly unknown[]): string[] {
  return contributions.flat().filter(isEventName).slice(0, MAX_EVENTS);
}

/** Returns whether a value is the name of one event, not a pattern. */
function isEventName(value: unknown): value is string {
  return typeof value === "string" && value !== "" && value.length <= MAX_EVENT_CHARS && !value.includes("*");
}

function names(subject: string, moments: string): string[] {
  return moments.split(" ").map((moment) => `${subject}:${moment}`);
}
