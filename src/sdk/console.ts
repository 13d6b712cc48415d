/** A console that writes each call as one text at a level of the log. Knows neither where the text goes nor how values are inspected. */

import { cut, join, map } from "./primordials.ts";

/** Levels of a line of the log. */
export type ConsoleLevel = "info" | "warning" | "error";

/** Takes what one call of a console wrote. */
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

/** Characters that one call may write. */
export const MAX_CONSOLE_CHARS = 4_000;

/**
 * Returns the methods of a console, by name. Those that write nothing in any console, such as `time`, do nothing.
 * @param inspect Returns a value that is no text as people read it.
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
