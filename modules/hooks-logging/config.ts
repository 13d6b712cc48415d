/** The module's config, checked. */
import type { JsonObject } from "preamp";
import { isEventName, MAX_EVENT_CHARS, MAX_EVENTS } from "./events.ts";
import { isAbsolute } from "./paths.ts";

/** What is logged, and where to. */
export interface LogSettings {
  /** Absolute path of the file; null = none. */
  path: string | null;
  /** Bytes at which the file is rotated. */
  max_bytes: number;
  stderr: boolean;
  /** Whether pieces of answers are logged as they arrive. */
  deltas: boolean;
  additional_events: string[];
}

/** Bytes of one file unless the plan says. */
export const DEFAULT_MAX_BYTES = 10 * 1024 * 1024;
/** Fewer would rotate at every few lines. */
export const LEAST_MAX_BYTES = 64 * 1024;

/**
 * Resolves to the settings a config asks for. Without `path` and `stderr` it is stderr.
 *
 * @throws {PreampError} `module_invalid`, naming the key.
 */
export async function readConfig(config: JsonObject): Promise<LogSettings> {
  const { path = null, stderr, deltas = false, max_bytes = DEFAULT_MAX_BYTES, additional_events = [] } =
    config;
  if (path !== null && (typeof path !== "string" || !isAbsolute(path) || path.includes("\0"))) {
    throw await invalid("path", "must be an absolute path", path);
  }
  if (stderr !== undefined && typeof stderr !== "boolean") {
    throw await invalid("stderr", "must be true or false", stderr);
  }
  if (typeof deltas !== "boolean") throw await invalid("deltas", "must be true or false", deltas);
  if (typeof max_bytes !== "number" || !Number.isSafeInteger(max_bytes) || max_bytes < LEAST_MAX_BYTES) {
    throw await invalid("max_bytes", `must be a whole number of at least ${LEAST_MAX_BYTES}`, max_bytes);
  }
  if (!Array.isArray(additional_events) || additional_events.length > MAX_EVENTS) {
    throw await invalid("additional_events", `must be a list of at most ${MAX_EVENTS}`, additional_events);
  }
  for (const [index, event] of additional_events.entries()) {
    if (!isEventName(event)) {
      const fact = `must be an event's name of 1 to ${MAX_EVENT_CHARS} characters, without "*"`;
      throw await invalid(`additional_events[${index}]`, fact, event);
    }
  }
  return { path, max_bytes, stderr: stderr ?? path === null, deltas, additional_events };
}

/** The SDK's values bring a schema library with them: loaded only when there is something to say. */
async function invalid(key: string, fact: string, received: unknown): Promise<Error> {
  const { PreampError } = await import("preamp");
  const shown = typeof received === "string" || typeof received === "number" || typeof received === "boolean"
    ? JSON.stringify(received).slice(0, 80)
    : received === null
    ? "null"
    : typeof received;
  return new PreampError(
    "module_invalid",
    `Cannot mount module "hooks-logging": config.${key} ${fact}: received ${shown}`,
  );
}
