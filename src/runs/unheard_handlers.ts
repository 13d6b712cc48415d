/**
 * Warns of handlers of events that nothing emits, such as a gate registered for `tool:before`. Checked at the
 * end of a run, because modules may emit undeclared events.
 */
import type { Session } from "../kernel/session/session.ts";
import { didYouMean } from "../sdk/findings.ts";
import { CANONICAL_EVENTS, eventsWith } from "../sdk/event_table.ts";
import { errorMessage } from "../sdk/errors.ts";
import type { ModuleReporter } from "./ports.ts";

/** Events that are only logged, without calling handlers. */
const LOG_ONLY = eventsWith("log_only");

type Reporter = Pick<ModuleReporter, "warn">;

/** First words of the canonical events. */
const NOUNS = [...new Set([...CANONICAL_EVENTS].map((event) => event.slice(0, event.indexOf(":"))))];

/** Maximum number of these warnings on one run. */
const MAX_WARNINGS = 20;

/** Names of events in other frameworks, without punctuation → ours. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  pretooluse: "tool:pre",
  posttooluse: "tool:post",
  toolbefore: "tool:pre",
  beforetool: "tool:pre",
  toolafter: "tool:post",
  aftertool: "tool:post",
  userpromptsubmit: "prompt:submit",
  sessionbegin: "session:start",
};

/** Warns of handlers that were never called and never will be; asks modules for the events they declare. */
export async function warnOfUnheardHandlers(session: Session, reporter: Reporter): Promise<void> {
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
  const intended = intendedEvent(event, declared);
  if (intended !== undefined) return `nothing emits this event; did you mean "${intended}"?`;
  const [first = ""] = event.split(":");
  const names = [...CANONICAL_EVENTS].filter((name) => name.startsWith(`${first}:`) && !LOG_ONLY.has(name));
  return names.length > 0
    ? `nothing emits this event; there are ${names.join(", ")}`
    : "nothing emitted this event, and no module declares it (observability.events)";
}

/** Returns the event that was probably meant, such as `tool:pre` for `tool_pre` or `PreToolUse`. */
function intendedEvent(event: string, declared: ReadonlySet<string>): string | undefined {
  if (event.endsWith(":*")) {
    const first = didYouMean(event.slice(0, -2), NOUNS);
    return first === undefined ? undefined : `${first}:*`;
  }
  const plain = plainName(event);
  if (Object.hasOwn(ELSEWHERE, plain)) return ELSEWHERE[plain];
  const known = [...CANONICAL_EVENTS, ...declared].filter((name) => !LOG_ONLY.has(name));
  return known.find((name) => plainName(name) === plain) ?? didYouMean(event, known);
}

function plainName(event: string): string {
  return event.toLowerCase().replaceAll(/[^a-z0-9]/g, "");
}
