/** The module's console: lines of the log of the process, never bytes on its output. */
import type { GuestRpc } from "./rpc.ts";

/** Characters of one line. */
const MAX_LINE = 4_000;

const LEVELS = {
  debug: "info",
  log: "info",
  info: "info",
  dir: "info",
  table: "info",
  trace: "info",
  warn: "warning",
  error: "error",
  assert: "error",
} as const;

/** Makes the console of this isolate write to the host's log. */
export function redirectConsole(rpc: GuestRpc): void {
  const { inspect } = Deno;
  for (const key of Object.keys(console)) {
    const level = Object.hasOwn(LEVELS, key) ? LEVELS[key as keyof typeof LEVELS] : undefined;
    const write = (...values: unknown[]) => {
      if (level === undefined || (key === "assert" && values[0])) return;
      const texts = values.map((value) => typeof value === "string" ? value : inspect(value));
      rpc.log(level, texts.join(" ").slice(0, MAX_LINE));
    };
    if (typeof Reflect.get(console, key) === "function") Reflect.set(console, key, write);
  }
}
