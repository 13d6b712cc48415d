/** Computes the state of a new session that continues a recorded run after one of its entries. */
import { PreampError } from "../../sdk/errors.ts";
import { isObject, type JsonObject } from "../../sdk/json.ts";
import { assistantMessage } from "../../sdk/loop/assistant_message.ts";
import { parseToolCall } from "../../sdk/tools.ts";
import type { Message, Prompt } from "../../sdk/types.ts";
import { type ForkPoint, withAnswers } from "./fork.ts";
import { projectionOf } from "../run/run_projection.ts";
import { stateAfter } from "../scheduler/crash_state.ts";
import type { Recording } from "../types.ts";
import type { ResumeOptions } from "../run/run_options.ts";

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
  const history = [...projection.historyOf(run.session_id)];
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

function isPrompt(message: unknown): boolean {
  return isObject(message) && message.role === "user" &&
    (!isObject(message.metadata) || message.metadata.source === undefined);
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
