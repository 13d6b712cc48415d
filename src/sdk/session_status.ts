/** State and counters of a session, as modules see it. */
import { fieldError, requireOneOf, requireText, requireWhole } from "./checks.ts";
import { type JsonObject, toPlainObject } from "./json.ts";
import { Usage } from "./messages.ts";
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
