/** State and counters of a session: the data model, and the counters of its log. */
import { fieldError, requireOneOf, requireText, requireWhole } from "./checks.ts";
import { isObject, type JsonObject, toPlainObject } from "./json.ts";
import { Usage } from "./messages.ts";
import { sumCostUsd } from "./money.ts";
import { withSnakeCase } from "./snake_case_aliases.ts";

/** State of a session. */
export type SessionState = "running" | "completed" | "failed" | "cancelled";

/** Session status and counters. Times are UTC, RFC 3339. */
export interface SessionStatus {
  /** Id of the session. */
  session_id: string;
  /** Time of the start. */
  started_at: string;
  /** Time of the end, or null. */
  ended_at: string | null;
  /** State. */
  status: SessionState;
  /** Stored messages. */
  total_messages: number;
  /** Executed tool calls. */
  tool_invocations: number;
  /** Executed tool calls that succeeded. */
  tool_successes: number;
  /** Executed tool calls that failed. */
  tool_failures: number;
  /** Tokens sent, cache reads included. */
  total_input_tokens: number;
  /** Tokens answered. */
  total_output_tokens: number;
  /** Cost in US dollars as a decimal string; null when unknown, which is not zero. */
  cost_usd: string | null;
  /** `cost_usd` as a number; read-only, not serialised. */
  readonly estimated_cost: number | null;
  /** Time of the last activity, or null. */
  last_activity: string | null;
  /** The last failure, or null. */
  last_error: JsonObject | null;
  /** Returns the status as JSON-safe data without its nulls. */
  toDict(): JsonObject;
}

/** Fields of a {@link SessionStatus}; times may be `Date`s. */
export type SessionStatusFields =
  & { session_id: string }
  & Partial<Omit<SessionStatus, "started_at" | "ended_at" | "last_activity" | "estimated_cost" | "toDict">>
  & { started_at?: string | Date; ended_at?: string | Date | null; last_activity?: string | Date | null };

const STATES: readonly SessionState[] = ["running", "completed", "failed", "cancelled"];
const COUNTERS = [
  "total_messages",
  "tool_invocations",
  "tool_successes",
  "tool_failures",
  "total_input_tokens",
  "total_output_tokens",
] as const;

class SessionStatusValue implements SessionStatus {
  session_id: string;
  started_at: string;
  ended_at: string | null;
  status: SessionState;
  total_messages = 0;
  tool_invocations = 0;
  tool_successes = 0;
  tool_failures = 0;
  total_input_tokens = 0;
  total_output_tokens = 0;
  cost_usd: string | null;
  last_activity: string | null;
  last_error: JsonObject | null;

  constructor(fields: SessionStatusFields) {
    this.session_id = fields.session_id;
    this.started_at = time("started_at", fields.started_at ?? new Date());
    this.ended_at = timeOrNull("ended_at", fields.ended_at);
    this.status = fields.status ?? "running";
    for (const counter of COUNTERS) this[counter] = fields[counter] ?? 0;
    this.cost_usd = Usage({ cost_usd: fields.cost_usd }).cost_usd;
    this.last_activity = timeOrNull("last_activity", fields.last_activity);
    this.last_error = fields.last_error ?? null;
  }

  get estimated_cost(): number | null {
    return this.cost_usd === null ? null : Number(this.cost_usd);
  }

  toDict(): JsonObject {
    return toPlainObject(Object.fromEntries(Object.entries(this).filter(([, value]) => value !== null)));
  }
}

withSnakeCase(SessionStatusValue);

/**
 * Returns a session status. Defaults: running, started now, all counters 0, cost unknown.
 *
 * @throws {TypeError} when a counter is not a whole number, a time is invalid, or the cost is a number (a
 * float loses precision).
 */
export function SessionStatus(fields: SessionStatusFields): SessionStatus {
  requireText("SessionStatus", "session_id", fields.session_id);
  if (fields.status !== undefined) requireOneOf("SessionStatus", "status", fields.status, STATES);
  for (const counter of COUNTERS) {
    if (fields[counter] !== undefined) requireWhole("SessionStatus", counter, fields[counter], 0);
  }
  return new SessionStatusValue(fields);
}

function timeOrNull(field: string, value: string | Date | null | undefined): string | null {
  return value === undefined || value === null ? null : time(field, value);
}

function time(field: string, value: string | Date): string {
  const date = new Date(value);
  if (Number.isNaN(date.getTime())) {
    throw fieldError("SessionStatus", field, "must be a Date or an RFC 3339 text", value);
  }
  return date.toISOString();
}

/** The counters of an empty log. */
const NO_COUNTS = {
  total_messages: 0,
  /** Answered provider calls. */
  turn_count: 0,
  /** Executed calls, without denied, unknown, invalid and refused ones. */
  tool_invocations: 0,
  tool_successes: 0,
  tool_failures: 0,
  total_input_tokens: 0,
  total_output_tokens: 0,
  total_tokens: 0,
  cache_read_tokens: 0,
  cache_write_tokens: 0,
  /** Decimal string; null = unknown. */
  cost_usd: null as string | null,
  compactions: 0,
  /** Level of the last compaction, from 1; 0 = none yet. */
  compaction_level: 0,
};

/** Counters of a log; `runs/run/run_projection.ts` extends them to the run object. */
export type Counters = typeof NO_COUNTS;

/** Returns the counters of an empty log. */
export function emptyCounters(): Counters {
  return { ...NO_COUNTS };
}

/** Types of `tool:error` for calls that were not executed. */
const NEVER_RAN: ReadonlySet<unknown> = new Set(["tool_not_found", "tool_input_invalid", "limit_reached"]);

/** Adds one entry to the counters. */
export function count(
  counters: Counters,
  entry: { readonly event: string; readonly data: JsonObject },
): void {
  const { data } = entry;
  switch (entry.event) {
    case "context:message":
      counters.total_messages++;
      break;
    case "provider:response":
      counters.turn_count++;
      if (isObject(data.usage)) countUsage(counters, data.usage);
      break;
    case "provider:error": // after a part of the answer
      if (isObject(data.usage)) countUsage(counters, data.usage);
      break;
    case "tool:post":
      counters.tool_invocations++;
      if (isObject(data.result) && data.result.success === false) counters.tool_failures++;
      else counters.tool_successes++;
      break;
    case "tool:error":
      counters.tool_failures++;
      if (!NEVER_RAN.has(isObject(data.error) ? data.error.type : undefined)) counters.tool_invocations++;
      break;
    case "context:compaction":
      counters.compactions++;
      counters.compaction_level = number(data.strategy_level);
      break;
  }
}

function countUsage(counters: Counters, usage: Record<string, unknown>): void {
  counters.total_input_tokens += number(usage.input_tokens);
  counters.total_output_tokens += number(usage.output_tokens);
  counters.total_tokens += number(usage.total_tokens);
  counters.cache_read_tokens += number(usage.cache_read_tokens);
  counters.cache_write_tokens += number(usage.cache_write_tokens);
  counters.cost_usd = sumCostUsd([
    counters.cost_usd,
    typeof usage.cost_usd === "string" ? usage.cost_usd : null,
  ]);
}

function number(value: unknown): number {
  return typeof value === "number" ? value : 0;
}
