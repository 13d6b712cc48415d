/** Creates console methods that write each call as one text with a log level. */

import { cut, join, map } from "./primordials.ts";

/** Level of a log line. */
export type ConsoleLevel = "info" | "warning" | "error";

/** Receives the text of one console call. */
export type ConsoleWriter = (level: ConsoleLevel, text: string) => void;

const LEVELS: Readonly<Record<string, ConsoleLevel>> = {
  debug: "info",
  log: "info",
  info: "info",
  dir: "info",
  table: "info",
  trace: "info",
  warn: "warning",
  error: "error",
  assert: "error",
};

/** Maximum characters of one call. */
export const MAX_CONSOLE_CHARS = 4_000;

/**
 * Returns the methods of a console by name. Methods that print nothing, such as `time`, do nothing.
 *
 * @param inspect Formats a value that is not a string.
 */
export function consoleMethods(
  write: ConsoleWriter,
  inspect: (value: unknown) => string,
): Record<string, (...values: unknown[]) => void> {
  const methods: Record<string, (...values: unknown[]) => void> = {};
  for (const name of Object.keys(console)) {
    if (typeof Reflect.get(console, name) !== "function") continue;
    const level = Object.hasOwn(LEVELS, name) ? LEVELS[name] : undefined;
    methods[name] = (...values) => {
      if (level === undefined || name === "assert" && values[0]) return;
      if (name === "assert") values[0] = "Assertion failed";
      const texts = map(values, (value) => typeof value === "string" ? value : inspect(value));
      write(level, cut(join(texts, " "), 0, MAX_CONSOLE_CHARS));
    };
  }
  return methods;
}
