/** Executing a run anew from one of its entries on: where a new session stands that begins there (architecture.md, Replay). */
import { PreampError } from "../../sdk/errors.ts";
import { isObject, type JsonObject } from "../../sdk/json.ts";
import { assistantMessage } from "../../sdk/loop/assistant_message.ts";
import { parseToolCall } from "../../sdk/tools.ts";
import type { Message, Prompt } from "../../sdk/types.ts";
import { type ForkPoint, withAnswers } from "./fork.ts";
import { RunProjection } from "../run/run_projection.ts";
import type { Recording } from "../types.ts";
import type { ResumeOptions } from "../run/run.ts";

/** A point of a run to go on from. */
export interface RerunPoint extends ForkPoint {
  prompt: Prompt;
  /** There when the prompt is in the history already: the turn goes on; else it begins. */
  resume: ResumeOptions | undefined;
}

/**
 * Returns where a session stands behind an entry of a recorded run. Calls of the last answer that had no result there are
 * open: the turn that goes on runs them.
 *
 * @throws {PreampError} `request_invalid` when the run has no such entry; `not_replayable` when no prompt was told.
 */
export function pointOf({ run, events, replay }: Recording, from_event: number): RerunPoint {
  const before = events.slice(0, from_event);
  if (before.length < from_event || from_event < 1) {
    throw new PreampError(
      "request_invalid",
      `Cannot go on from entry ${from_event}: the run has entries 1 to ${events.length}`,
    );
  }
  const started = events.find(({ event, session_id }) =>
    event === "execution:start" && session_id === run.session_id
  );
  if (!started) {
    throw new PreampError("not_replayable", `Cannot go on from entry ${from_event}: no turn was begun`);
  }
  const projection = new RunProjection({
    id: run.id,
    session_id: run.session_id,
    created_at: run.created_at,
    events_url: run.events_url,
    warnings: [],
    history: replay.history,
  });
  const session_state: JsonObject = { ...replay.session_state };
  let pending_response: JsonObject | null = null;
  let prompted = false;
  let iteration = 0;
  for (const entry of before) {
    projection.add(entry);
    const { event, data, session_id } = entry;
    if (session_id !== run.session_id) continue;
    // what modules left is told right before the step that it belongs to: behind it alone that step is still to come
    if (event === "session:state" && isObject(data.set) && entry.seq < from_event) {
      applyState(session_state, data.set);
    }
    if (event === "provider:response" && data.inner !== true) {
      iteration++;
      pending_response = isObject(data.response) ? data.response : null;
    } else if (event === "context:message") pending_response = null;
    // the first message of the user's own behind the start of the turn is the prompt
    prompted ||= event === "context:message" && entry.seq > started.seq && isPrompt(data.message);
  }
  const history = [...projection.historyOf(run.session_id)];
  if (pending_response !== null) history.push(responseMessage(pending_response)); // it was given and is not in the history yet
  return {
    messages: prompted ? history : withAnswers(history),
    session_state,
    lineage: { forked_from_run: run.id, forked_from_event: from_event },
    prompt: started.data.prompt as Prompt, // told by the kernel or the loop: the prompt as it was given
    resume: prompted ? { iteration } : undefined,
  };
}

function isPrompt(message: unknown): boolean {
  return isObject(message) && message.role === "user" &&
    (!isObject(message.metadata) || message.metadata.source === undefined);
}

/** Returns the message that a loop would have stored an answer as. */
export function responseMessage(response: JsonObject): Message {
  const { content, tool_calls, metadata } = response;
  return assistantMessage({
    content: Array.isArray(content) ? content : [],
    ...(Array.isArray(tool_calls) ? { tool_calls: tool_calls.map(parseToolCall) } : {}),
    ...(isObject(metadata) ? { metadata } : {}),
  });
}

/** A key that was set to null was deleted. */
function applyState(state: JsonObject, set: JsonObject): void {
  for (const [key, value] of Object.entries(set)) {
    if (value === null) delete state[key];
    else state[key] = value;
  }
}
