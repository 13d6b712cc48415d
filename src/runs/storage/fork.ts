/**
 * Forks: new sessions with part of another session's history. A turn begins with a message by the user;
 * steering messages, reminders and injections belong to the turn in which they were added.
 */
import { PreampError } from "../../sdk/errors.ts";
import { isObject, type JsonObject } from "../../sdk/json.ts";
import { timestamp } from "../../sdk/timestamp.ts";
import type { Message } from "../../sdk/types.ts";
import type { Recording } from "../types.ts";
import type { SavedSession } from "./session_store.ts";

/** State of a fork at its start. */
export interface ForkPoint {
  /** Messages of the new session; every tool call has a result. */
  messages: readonly Message[];
  session_state: JsonObject;
  /** Fields of the session's metadata beside `forked_at`. */
  lineage: JsonObject;
}

/**
 * Returns the messages up to the end of a turn; the first turn is 1.
 *
 * @throws {PreampError} `request_invalid` when there is no such turn.
 */
export function messagesOfTurns(messages: readonly Message[], turn: number | undefined): Message[] {
  const starts = messages.flatMap((message, index) => isOfUser(message) ? [index] : []);
  const last = turn ?? starts.length;
  if (last < 1 || last > starts.length) {
    throw new PreampError(
      "request_invalid",
      `Cannot fork the session: it has ${starts.length} turns: received turn ${last}`,
    );
  }
  return withAnswers(messages.slice(0, starts[last]));
}

function isOfUser({ role, metadata }: Message): boolean {
  return role === "user" && (metadata?.source === undefined || metadata.source === "user");
}

/**
 * Returns messages in which every tool call has a result. Calls without one get a result that reports the
 * fork.
 */
export function withAnswers(messages: readonly Message[]): Message[] {
  const whole: Message[] = [];
  let open: { id: string; name: string }[] = [];
  const close = () => whole.push(...open.splice(0).map(notExecuted));
  for (const message of messages) {
    if (message.role === "tool") open = open.filter(({ id }) => id !== message.tool_call_id);
    else close();
    whole.push(message);
    if (message.role === "assistant") open = callsOf(message);
  }
  close();
  return whole;
}

function notExecuted({ id, name }: { id: string; name: string }): Message {
  const content = `Error: Tool '${name}' was not executed: the session was forked here`;
  return { role: "tool", tool_call_id: id, name, content };
}

function callsOf({ tool_calls }: Message): { id: string; name: string }[] {
  if (!Array.isArray(tool_calls)) return [];
  return tool_calls.filter(isObject).map((call) => ({
    id: String(call.id),
    name: String(call.name ?? call.tool),
  }));
}

/** A session or run that a fork begins from. */
export interface ForkOrigin
  extends Pick<SavedSession, "plan" | "plan_origin" | "plan_base_url" | "plan_lock"> {
  readonly object: Pick<SavedSession["object"], "id" | "plan_hash" | "metadata">;
}

/** Returns what a fork of a run begins from: the run's plan. Works without its session, which may be deleted. */
export function originOf({ run, replay }: Recording, session: SavedSession | null): ForkOrigin {
  const { session_id, plan_hash } = run;
  return {
    ...replay,
    object: { id: session_id, plan_hash, metadata: session?.object.metadata ?? run.metadata },
  };
}

/** Returns a new session that begins at a point of another one: without its approvals, counters and usage. */
export function forkedSession(
  { object, plan, plan_origin, plan_base_url, plan_lock }: ForkOrigin,
  id: string,
  { messages, session_state, lineage }: ForkPoint,
  now_ms: number,
): SavedSession {
  const at = timestamp(now_ms);
  return {
    object: {
      id,
      object: "session",
      parent_id: object.id,
      plan_hash: object.plan_hash,
      run_count: 0,
      created_at: at,
      last_activity: at,
      metadata: { ...object.metadata, ...lineage, forked_at: at },
    },
    messages,
    session_state,
    usages: [], // usage was reported for the other session's history
    plan,
    plan_origin,
    plan_base_url,
    ...(plan_lock ? { plan_lock } : {}),
  };
}
