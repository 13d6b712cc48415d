/**
 * Forks: new sessions with part of another session's history. A turn begins with a message by the user;
 * steering messages, reminders and injections belong to the turn in which they were added.
 */
import { PreampError } from "../../sdk/errors.ts";
import { isObject, type JsonObject } from "../../sdk/json.ts";
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

/**
 * Returns the session that a run is forked from, with the run's own plan. Works without the session, which
 * may be deleted.
 */
export function parentOf({ run, replay }: Recording, origin: SavedSession | null): SavedSession {
  const object = origin?.object ?? {
    id: run.session_id,
    object: "session",
    parent_id: null,
    plan_hash: run.plan_hash,
    run_count: 0,
    created_at: run.created_at,
    last_activity: run.created_at,
    metadata: run.metadata,
  };
  const { plan, plan_origin, plan_base_url, plan_lock } = replay;
  return {
    ...(plan_lock ? { plan_lock } : {}),
    object: { ...object, plan_hash: run.plan_hash },
    messages: [],
    session_state: {},
    plan,
    plan_origin,
    plan_base_url,
  };
}

/** Returns a new session that begins at a point of another one. */
export function forkedSession(
  parent: SavedSession,
  id: string,
  { messages, session_state, lineage }: ForkPoint,
  now_ms: number,
): SavedSession {
  const at = new Date(now_ms).toISOString();
  // a fork is a session of its own: no sub-agent, no remembered approvals, no counters
  const { spawned: _, remembered: __, counters: ___, last_run: ____, ...own } = parent;
  return {
    ...own,
    object: {
      ...parent.object,
      id,
      parent_id: parent.object.id,
      run_count: 0,
      created_at: at,
      last_activity: at,
      metadata: { ...parent.object.metadata, ...lineage, forked_at: at },
    },
    messages,
    session_state,
    usages: [], // usage was reported for the other session's history
  };
}
