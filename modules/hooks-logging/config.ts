/** Checks the module's config. */
import { isAbsolutePath, type JsonObject, PreampError } from "preamp";
import { isEventName, MAX_EVENT_CHARS, MAX_EVENTS } from "./events.ts";

/** The checked config. */
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

/** Default of `max_bytes`. */
export const DEFAULT_MAX_BYTES = 10 * 1024 * 1024;
/** Minimum of `max_bytes`; less would rotate after a few lines. */
export const MIN_MAX_BYTES = 64 * 1024;

/**
 * Returns the settings of a config. Without `path` and `stderr` the log goes to stderr.
 *
 * @throws {PreampError} `module_invalid` with the name of the wrong key.
 */
export function readConfig(config: JsonObject): LogSettings {
  const { path = null, stderr, deltas = false, max_bytes = DEFAULT_MAX_BYTES, additional_events = [] } =
    config;
  if (path !== null && (typeof path !== "string" || !isAbsolutePath(path) || path.includes("\0"))) {
    throw invalid("path", "must be an absolute path", path);
  }
  if (stderr !== undefined && typeof stderr !== "boolean") {
    throw invalid("stderr", "must be true or false", stderr);
  }
  if (typeof deltas !== "boolean") throw invalid("deltas", "must be true or false", deltas);
  if (typeof max_bytes !== "number" || !Number.isSafeInteger(max_bytes) || max_bytes < MIN_MAX_BYTES) {
    throw invalid("max_bytes", `must be a whole number of at least ${MIN_MAX_BYTES}`, max_bytes);
  }
  if (!Array.isArray(additional_events) || additional_events.length > MAX_EVENTS) {
    throw invalid("additional_events", `must be a list of at most ${MAX_EVENTS}`, additional_events);
  }
  for (const [index, event] of additional_events.entries()) {
    if (!isEventName(event)) {
      const fact = `must be an event name of 1 to ${MAX_EVENT_CHARS} characters, without "*"`;
      throw invalid(`additional_events[${index}]`, fact, event);
    }
  }
  return { path, max_bytes, stderr: stderr ?? path === null, deltas, additional_events };
}

function invalid(key: string, fact: string, received: unknown): PreampError {
  const value = typeof received === "string" || typeof received === "number" || typeof received === "boolean"
    ? JSON.stringify(received).slice(0, 80)
    : received === null
    ? "null"
    : typeof received;
  return new PreampError(
    "module_invalid",
    `Cannot mount module "hooks-logging": config.${key} ${fact}: received ${value}`,
  );
}
