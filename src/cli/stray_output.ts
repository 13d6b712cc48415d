/**
 * Logs output that would otherwise bypass the process log: unhandled errors, and text written to the console.
 */
import { consoleMethods, type ConsoleWriter } from "../sdk/console.ts";
import { describeError } from "../server/log_line.ts";
import type { Log } from "./log.ts";

/** Milliseconds after the start: loading `node:process` takes 10 ms, which the first run need not wait for. */
const NODE_WARNINGS_AFTER_MS = 1_000;

/**
 * Logs unhandled errors and console output, and, after a delay, warnings of Node's libraries. An unhandled error in one
 * module must not end other runs.
 */
export function logStrayOutput(log: Log, node_warnings_after_ms = NODE_WARNINGS_AFTER_MS): void {
  globalThis.addEventListener("unhandledrejection", (event) => {
    event.preventDefault();
    log.note("error", "unhandled_rejection", describeError(event.reason));
  });
  globalThis.addEventListener("error", (event) => {
    event.preventDefault();
    log.note("error", "uncaught_error", describeError(event.error));
  });
  redirectConsole((level, text) => log.note(level, "console", { text }));
  Deno.unrefTimer(setTimeout(() => logNodeWarnings(log), node_warnings_after_ms));
}

/** Sends console output of this process to `write`, because stdout carries only answers. */
export function redirectConsole(write: ConsoleWriter): void {
  Object.assign(console, consoleMethods(write, Deno.inspect));
}

async function logNodeWarnings(log: Log): Promise<void> {
  const { default: process } = await import("node:process");
  process.removeAllListeners("warning"); // the default listener writes to stderr
  process.on("warning", (warning: Error) => log.note("warning", "node_warning", describeError(warning)));
}
