/** Which events are logged: their names, and how much each matters. */

/** The canonical events (behaviour.md §6.1). */
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

/** The word in `lvl`. */
export type Level = "DEBUG" | "INFO" | "WARNING" | "ERROR";

/** Told in the log itself when a slow sink made us drop lines: `{count}`. */
export const DROPPED = "hooks-logging:dropped";

const WARNINGS: ReadonlySet<string> = new Set([
  "policy:violation",
  "approval:denied",
  "provider:retry",
  "provider:throttle",
  DROPPED,
]);

/** Events that contributions may add, and characters of each name; our choice. */
export const MAX_EVENTS = 1_000;
export const MAX_EVENT_CHARS = 128;

/** Returns true for the pieces of an answer as they arrive: many, small, and in the whole answer again. */
export function isDelta(event: string): boolean {
  return event.endsWith(":delta") || event.endsWith("_delta");
}

/** Returns how much an event matters; the user's own level decides for `user:notification`. */
export function levelOf(event: string, userLevel: unknown): Level {
  if (event === "user:notification") {
    return userLevel === "error" ? "ERROR" : userLevel === "warning" ? "WARNING" : "INFO";
  }
  if (event.endsWith(":error") || event.endsWith("_failed")) return "ERROR";
  if (WARNINGS.has(event)) return "WARNING";
  return isDelta(event) ? "DEBUG" : "INFO";
}

/** Returns the usable event names in what contributors gave, each a list; everything else in there is left out. */
export function eventNames(contributions: readonly unknown[]): string[] {
  return contributions.flat().filter(isEventName).slice(0, MAX_EVENTS);
}

/** Returns true for a name that can be registered: one event, not a pattern. */
export function isEventName(value: unknown): value is string {
  return typeof value === "string" && value !== "" && value.length <= MAX_EVENT_CHARS && !value.includes("*");
}

function names(subject: string, moments: string): string[] {
  return moments.split(" ").map((moment) => `${subject}:${moment}`);
}
