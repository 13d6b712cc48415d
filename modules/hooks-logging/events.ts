/** The events that are logged by default, and their levels. */

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

/** Values of `lvl`. */
export type Level = "DEBUG" | "INFO" | "WARNING" | "ERROR";

/** Event in the log that reports the number of lines dropped because of a slow sink: `{count}`. */
export const DROPPED = "hooks-logging:dropped";

const WARNINGS: ReadonlySet<string> = new Set([
  "policy:violation",
  "approval:denied",
  "provider:retry",
  "provider:throttle",
  DROPPED,
]);

/** Maximum events that modules may add, and maximum characters of each name. */
export const MAX_EVENTS = 1_000;
export const MAX_EVENT_CHARS = 128;

/** Returns whether an event is a delta; deltas are numerous, and the complete answer contains them. */
export function isDelta(event: string): boolean {
  return event.endsWith(":delta") || event.endsWith("_delta");
}

/** Returns the level of an event; for `user:notification` it follows from the notification's level. */
export function levelOf(event: string, userLevel: unknown): Level {
  if (event === "user:notification") {
    return userLevel === "error" ? "ERROR" : userLevel === "warning" ? "WARNING" : "INFO";
  }
  if (event.endsWith(":error") || event.endsWith("_failed")) return "ERROR";
  if (WARNINGS.has(event)) return "WARNING";
  return isDelta(event) ? "DEBUG" : "INFO";
}

/** Returns the valid event names in lists of contributors; other values are ignored. */
export function eventNames(contributions: readonly unknown[]): string[] {
  return contributions.flat().filter(isEventName).slice(0, MAX_EVENTS);
}

/** Returns whether a value is the name of one event, not a pattern. */
export function isEventName(value: unknown): value is string {
  return typeof value === "string" && value !== "" && value.length <= MAX_EVENT_CHARS && !value.includes("*");
}

function names(subject: string, moments: string): string[] {
  return moments.split(" ").map((moment) => `${subject}:${moment}`);
}
