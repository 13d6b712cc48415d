/**
 * Warns of handlers of events that nothing emits, such as a gate registered for `tool:before`. Checked at the
 * end of a run, because modules may emit undeclared events.
 */
import type { Session } from "../kernel/session.ts";
import { didYouMean } from "../sdk/findings.ts";
import { CANONICAL_EVENTS, eventsWith } from "../sdk/event_table.ts";
import { errorMessage } from "../sdk/errors.ts";
import type { ModuleReporter } from "./ports.ts";

/** Events that are only logged, without calling handlers. */
const LOG_ONLY = eventsWith("log_only");

/** Maximum number of these warnings on one run. */
const MAX_WARNINGS = 20;

/** Warns of handlers that were never called and never will be; asks modules for the events they declare. */
export async function warnOfUnheardHandlers(
  session: Session,
  reporter: Pick<ModuleReporter, "warn">,
): Promise<void> {
  const suspects = session.unheard_handlers.filter(({ event }) => !hasEmitter(event, CANONICAL_EVENTS));
  if (suspects.length === 0) return;
  let declared: ReadonlySet<string> = new Set();
  try {
    const contributions = await session.contributionsTo("observability.events");
    declared = new Set(contributions.flat().filter((name) => typeof name === "string"));
  } catch (error) {
    reporter.warn("contributor_failed", errorMessage(error));
  }
  const unheard = suspects.filter(({ event }) => !hasEmitter(event, declared));
  for (const { event, module_id } of unheard.slice(0, MAX_WARNINGS)) {
    const handler = `Module "${module_id}" registered a handler for ${JSON.stringify(event.slice(0, 80))}`;
    reporter.warn("event_unknown", `${handler}: ${reason(event, declared)}`);
  }
}

/** Returns whether one of these events matches a handler's pattern. */
function hasEmitter(pattern: string, events: ReadonlySet<string>): boolean {
  if (pattern === "*") return true;
  if (!pattern.endsWith(":*")) return events.has(pattern) && !LOG_ONLY.has(pattern);
  const first = pattern.slice(0, -1);
  return [...events].some((event) => event.startsWith(first) && !LOG_ONLY.has(event));
}

function reason(event: string, declared: ReadonlySet<string>): string {
  if (LOG_ONLY.has(event) || event === "run:*") {
    return "this event is only logged, and calls no handlers";
  }
  const heard = [...CANONICAL_EVENTS, ...declared].filter((name) => !LOG_ONLY.has(name));
  const known = event.endsWith(":*") ? heard.map((name) => `${name.split(":")[0]}:*`) : heard;
  const meant = didYouMean(event, known);
  return meant === undefined
    ? "nothing emitted this event, and no module declares it (observability.events)"
    : `nothing emits this event; did you mean "${meant}"?`;
}
