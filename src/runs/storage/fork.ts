/**
 * Forks: new sessions with part of another session's history, also up to an entry of a run. A turn begins
 * with a message by the user; steering messages, reminders and injections belong to the turn in which they
 * were added.
 */
import { isPrompt } from "../../kernel/interrupted_turn.ts";
import { PreampError } from "../../sdk/errors.ts";
import { isObject, type JsonObject } from "../../sdk/json.ts";
import { assistantMessage, callsOf } from "../../sdk/loop/assistant_message.ts";
import { timestamp } from "../../sdk/timestamp.ts";
import { parseToolCall } from "../../sdk/tools.ts";
import type { Message, Prompt } from "../../sdk/types.ts";
import type { ResumeOptions } from "../run/run_options.ts";
import { projectionOf } from "../run/run_projection.ts";
import { stateAfter } from "../run/restored_run.ts";
import type { Recording, SavedSession, SessionRecord } from "../types.ts";

/** Field of a fork's metadata with the run before which it was forked. */
export const FORKED_BEFORE_RUN = "forked_before_run";

/** State of a fork at its start. */
export interface ForkPoint {
  /** Messages of the new session; every tool call has a result. */
  messages: readonly Message[];
  session_state: JsonObject;
  /** Fields of the session's metadata beside `forked_at`. */
  lineage: JsonObject;
}

/**
 * Returns the messages up to the end of a turn; the first turn is 1. Without a turn: all messages.
 *
 * @throws {PreampError} `request_invalid` when there is no such turn.
 */
export function messagesOfTurns(messages: readonly Message[], turn: number | undefined): Message[] {
  if (turn === undefined) return withAnswers(messages);
  const starts = messages.flatMap((message, index) => isOfUser(message) ? [index] : []);
  if (turn < 1 || turn > starts.length) {
    const count = starts.length === 1 ? "1 turn" : `${starts.length} turns`;
    throw new PreampError(
      "request_invalid",
      `Cannot fork the session: it has ${count}: received turn ${turn}`,
    );
  }
  return withAnswers(messages.slice(0, starts[turn]));
}

function isOfUser({ role, metadata }: Message): boolean {
  return role === "user" && (metadata?.source === undefined || metadata.source === "user");
}

/**
 * Returns messages in which every call has a result.
 * @param fact Result of the calls without one, after "Tool '…' ".
 */
export function withAnswers(messages: readonly Message[], fact = FORKED_HERE): Message[] {
  const whole: Message[] = [];
  let open: { id: string; name: string }[] = [];
  const close = () => whole.push(...open.splice(0).map((call) => errorResult(call, fact)));
  for (const message of messages) {
    if (message.role === "tool") open = open.filter(({ id }) => id !== message.tool_call_id);
    else close();
    whole.push(message);
    if (message.role === "assistant") open = callsOf(message);
  }
  close();
  return whole;
}

const FORKED_HERE = "was not executed: the session was forked here";

function errorResult({ id, name }: { id: string; name: string }, fact: string): Message {
  const content = `Error: Tool '${name}' ${fact}`;
  return { role: "tool", tool_call_id: id, name, content };
}

/** A session or run that a fork begins from. */
export interface ForkOrigin
  extends Pick<SessionRecord, "plan" | "plan_origin" | "plan_base_url" | "plan_lock" | "plan_workspace"> {
  readonly object: Pick<SessionRecord["object"], "id" | "title" | "plan_hash" | "metadata">;
}

/** Returns what a fork of a run begins from: the run's plan. Its session may be deleted. */
export function originOf({ run, replay }: Recording, session: SessionRecord | null): ForkOrigin {
  const { session_id, title, plan_hash } = run;
  return {
    ...replay,
    object: { id: session_id, title, plan_hash, metadata: session?.object.metadata ?? run.metadata },
  };
}

/** Returns a new session that begins at a point of another one: without its approvals, counters and usage. */
export function forkedSession(
  { object, plan, plan_origin, plan_base_url, plan_lock, plan_workspace }: ForkOrigin,
  id: string,
  { messages, session_state, lineage }: ForkPoint,
  now_ms: number,
): SavedSession {
  const at = timestamp(now_ms);
  return {
    object: {
      id,
      object: "session",
      ...(object.title === undefined ? {} : { title: object.title }),
      parent_id: object.id,
      plan_hash: object.plan_hash,
      run_count: 0,
      created_at: at,
      last_activity: at,
      metadata: { ...object.metadata, ...lineage, forked_at: at },
    },
    position: null,
    version: 0,
    history: messages,
    session_state,
    usages: [], // usage was reported for the other session's history
    plan,
    plan_origin,
    plan_base_url,
    ...(plan_lock ? { plan_lock } : {}),
    ...(plan_workspace === undefined ? {} : { plan_workspace }),
  };
}

/** A point of a run to continue from. */
export interface RerunPoint extends ForkPoint {
  prompt: Prompt;
  /** Set when the history contains the prompt: the turn continues. Otherwise the turn begins. */
  resume: ResumeOptions | undefined;
}

/**
 * Returns the state of a session after an entry of a recorded run. Tool calls without a result remain open;
 * the continued turn executes them.
 *
 * @throws {PreampError} `request_invalid` when the run has no such entry; `not_replayable` when no turn
 * began.
 */
export function pointOf({ run, events, replay }: Recording, from_event: number): RerunPoint {
  const before = events.slice(0, from_event);
  if (before.length < from_event || from_event < 1) {
    throw new PreampError(
      "request_invalid",
      `Cannot continue from entry ${from_event}: the run has entries 1 to ${events.length}`,
    );
  }
  const started = events.find(({ event, session_id }) =>
    event === "execution:start" && session_id === run.session_id
  );
  if (!started) {
    throw new PreampError("not_replayable", `Cannot continue from entry ${from_event}: the run has no turn`);
  }
  const projection = projectionOf(run, replay);
  let pending_response: JsonObject | null = null;
  let prompted = false;
  let iteration = 0;
  for (const entry of before) {
    projection.add(entry);
    const { event, data, session_id } = entry;
    if (session_id !== run.session_id) continue;
    if (event === "provider:response" && data.inner !== true) {
      iteration++;
      pending_response = isObject(data.response) ? data.response : null;
    } else if (event === "context:message") pending_response = null;
    // the turn's first message by the user is the prompt
    prompted ||= event === "context:message" && entry.seq > started.seq && isPrompt(data.message);
  }
  const history = [...projection.of(run.session_id).history];
  // received, but not in the history yet
  if (pending_response !== null) history.push(responseMessage(pending_response));
  return {
    messages: prompted ? history : withAnswers(history),
    session_state: stateAfter(replay.session_state, before, run.session_id),
    lineage: { forked_from_run: run.id, forked_from_event: from_event },
    prompt: started.data.prompt as Prompt, // written by the kernel
    resume: prompted ? { iteration } : undefined,
  };
}

/** Returns the assistant message of a response, as a loop stores it. */
export function responseMessage(response: JsonObject): Message {
  const { content, tool_calls, metadata } = response;
  return assistantMessage({
    content: Array.isArray(content) ? content : [],
    ...(Array.isArray(tool_calls) ? { tool_calls: tool_calls.map(parseToolCall) } : {}),
    ...(isObject(metadata) ? { metadata } : {}),
  });
}
