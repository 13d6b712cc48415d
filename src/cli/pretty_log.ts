/** The log of `preamp serve` for a person: a short line for each record. */
import type { Level, LogLines } from "../deploy/log.ts";
import { escapeUnprintable } from "../text/escape.ts";
import { styleOf } from "./terminal/format.ts";
import type { Output } from "./terminal/io.ts";

/** Characters of the longest line. */
const MAX_LINE = 8_192;

/** Returns lines for a person at a terminal. */
export function prettyLines(output: Output): LogLines {
  const { dim, red, yellow } = styleOf(output);
  const paint = { info: dim, warning: yellow, error: red } satisfies Record<Level, (text: string) => string>;
  const line = (level: Level, ts: string, text: string) => {
    const head = `${dim(ts.slice(11, 23))} ${paint[level](level.padEnd(7))}`;
    return `${head} ${escapeUnprintable(text).slice(0, MAX_LINE)}`;
  };
  return {
    request({ level, ts, method, path, status, ms, caller, request_id, code, error }) {
      const parts = [`${status}`, method.padEnd(4), path, `${Math.round(ms)} ms`, caller ?? "-", request_id];
      if (code !== undefined) parts.push(code);
      if (error) parts.push(`${error.name}: ${error.message}`);
      const stack = error?.stack?.split("\n").slice(1) ?? [];
      return [parts.join("  "), ...stack].map((text) => line(level, ts, text)).join("\n");
    },
    note(level, ts, event, facts) {
      const fields = Object.entries(facts).map(([name, value]) =>
        `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`
      );
      return line(level, ts, [event, ...fields].join("  "));
    },
  };
}
