/**
 * What would get onto the output of a server past its log: errors that no code handles, and what is written to the console of the
 * process. All of it becomes lines of the log.
 */
import { consoleMethods, type ConsoleWriter } from "../sdk/console.ts";
import { describeError } from "../server/access_log.ts";
import type { Log } from "./log.ts";

/** Logs errors that no code handles, and the console; one stray error in a module must not end the runs of all others. */
export function logStrayOutput(log: Log): void {
  globalThis.addEventListener("unhandledrejection", (event) => {
    event.preventDefault();
    log.note("error", "unhandled_rejection", describeError(event.reason));
  });
  globalThis.addEventListener("error", (event) => {
    event.preventDefault();
    log.note("error", "uncaught_error", describeError(event.error));
  });
  redirectConsole((level, text) => log.note(level, "console", { text }));
}

/** Has what is written to the console of this process go to `write`: stdout carries answers alone. */
export function redirectConsole(write: ConsoleWriter): void {
  Object.assign(console, consoleMethods(write, Deno.inspect));
}

/** Logs the warnings of Node's libraries. Loads what they need: to be called when that is there. */
export async function logNodeWarnings(log: Log): Promise<void> {
  const { default: process } = await import("node:process");
  process.removeAllListeners("warning"); // the one that writes to stderr
  process.on("warning", (warning: Error) => log.note("warning", "node_warning", describeError(warning)));
}
