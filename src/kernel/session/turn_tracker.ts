/**
 * Tracks the events of a turn in `turn.ts`: adds fields that a loop left out, drops repeated events,
 * and records the decisions of gates, so that guards and outcome do not depend on the loop. See
 * src/docs/architecture.md#guards.
 */
import { eventsWith } from "../../sdk/event_table.ts";
import { isNoop } from "../../sdk/hook_chain.ts";
import { isObject, jsonEqual, toPlain } from "../../sdk/json.ts";
import { usageOfFailure } from "../../sdk/llm_errors.ts";
import { Usage } from "../../sdk/messages.ts";
import type { ApprovalQuestion, Emission, JsonObject } from "../../sdk/types.ts";
import type { SessionContext } from "./session_context.ts";
import type { Gate, Turn } from "../turn.ts";

/** Events that are dropped while no turn runs. */
const TURN_EVENTS = eventsWith("turn");

/** An emission whose hooks asked for something. */
export interface TrackedEmission {
  readonly gate: Gate;
  /** A copy of the hooks' result: the loop has the original and could change it. */
  readonly verdict: Emission;
}

/** Tracks the events of a session. */
export class TurnTracker {
  readonly #session: SessionContext;
  /** Emissions whose hooks asked for something; null until there is one. */
  #noted: WeakMap<Emission, TrackedEmission> | null = null;

  constructor(session: SessionContext) {
    this.#session = session;
  }

  /** Returns the gate and the hooks' result of an emission; undefined when its hooks asked for nothing. */
  trackedOf(emission: Emission): TrackedEmission | undefined {
    return this.#noted?.get(emission);
  }

  /**
   * Completes the payload of an event before its handlers run. Returns null when the event is dropped: it was
   * emitted already, or reports something that did not happen.
   */
  prepare(event: string, data: JsonObject): JsonObject | null {
    const { turn } = this.#session;
    if (turn === null) return TURN_EVENTS.has(event) ? null : data; // a late event of an abandoned loop
    switch (event) {
      case "provider:request":
        turn.iteration = nextIteration(turn, data);
        if (data.max_reached === true) turn.max_reached = true;
        return data;
      case "provider:response":
        if (turn.inner_responses.has(data)) return data;
        if (turn.unreported.length > 0) return completeResponse(turn, data);
        return isRepeated(turn, data) ? null : this.#countOwn(data);
      case "provider:error":
        return this.#countOwn(turn.inner_responses.has(data) ? data : withFailed(turn, withPart(turn, data)));
      case "provider:retry":
        return this.#countOwn(turn.inner_responses.has(data) ? data : withPart(turn, data));
      case "llm:stream_aborted":
        return this.#countOwn(data.module_id === undefined ? withBrokenOff(turn, data) : data);
      default:
        return data;
    }
  }

  /**
   * Counts the usage that a loop states: of a part of an answer, or of an answer that no mounted provider
   * gave.
   */
  #countOwn(data: JsonObject): JsonObject {
    if ((data.usage ?? null) === null) return data;
    const usage = usageOfFailure(data) ?? Usage({});
    this.#session.run_limits.countPart(usage);
    return { ...data, usage };
  }

  /** Records the decision of a gate, before its entry is appended. */
  noteDecision(event: string, emission: Emission): void {
    const { turn } = this.#session;
    if (turn === null || event !== "provider:request") return;
    turn.request_gate = this.#gate(event, emission);
    turn.request_denied = emission.action === "deny" ? emission.reason ?? "Denied by hook" : null;
  }

  #gate(event: string, emission: Emission): Gate {
    const gate = { event, emission, processed: emission.action !== "ask_user" };
    // most gates are passed without
    if (!isNoop(emission)) (this.#noted ??= new WeakMap()).set(emission, { gate, verdict: copyOf(emission) });
    return gate;
  }

  /** Records that the verdict of a gate was carried out. */
  settleGate(gate: Gate, { action, reason }: Emission): void {
    gate.processed = true;
    const { turn } = this.#session;
    if (turn !== null && action === "deny") turn.request_denied = reason;
  }
}

/** Returns a copy of an emission, so that a loop cannot change what is decided. */
export function copyOf(emission: Emission): Emission {
  const { approval, injections, user_messages } = emission;
  return {
    ...emission,
    approval: approval && toPlain(approval) as unknown as ApprovalQuestion, // a copy
    injections: injections.map((injection) => ({ ...injection })),
    user_messages: user_messages.map((message) => ({ ...message })),
  };
}

/** Returns the data of a failed call with the usage of the part of its answer, which is then reported. */
function withPart({ unreported_parts }: Turn, data: JsonObject): JsonObject {
  const of_provider = unreported_parts.filter(({ provider }) => provider === data.provider);
  const part = of_provider.find(({ error }) => jsonEqual(error, data.error)) ?? of_provider[0];
  if (part === undefined) return data;
  const [{ usage, request_id } = {}] = unreported_parts.splice(unreported_parts.indexOf(part), 1);
  // those without a part are not in the list
  return request_id === undefined ? { ...data, usage: usage! } : { request_id, ...data, usage: usage! };
}

/** Returns the data of a failed call with the id of the model call that its provider left open. */
function withFailed(turn: Turn, data: JsonObject): JsonObject {
  const failed = turn.failed_request;
  if (failed === null || failed.provider !== data.provider || !jsonEqual(failed.error, data.error)) {
    return data;
  }
  turn.failed_request = null;
  return { request_id: failed.request_id, ...data };
}

/** Returns the data of a stream that the end of the turn's step broke off, with the usage of its part. */
function withBrokenOff(turn: Turn, data: JsonObject): JsonObject {
  const { broken_off: usage } = turn;
  turn.broken_off = null;
  return usage === null ? data : { ...data, usage };
}

function nextIteration(turn: Turn, data: JsonObject): number {
  const { iteration } = data;
  return typeof iteration === "number" && Number.isSafeInteger(iteration) && iteration > turn.iteration
    ? iteration
    : turn.iteration + 1;
}

/** Returns whether an event has the tokens of an answer that was reported already, or no usage of its own. */
function isRepeated({ reported }: Turn, { provider, usage = null }: JsonObject): boolean {
  const { input_tokens = null, output_tokens = null } = isObject(usage) ? usage : {};
  return reported.some((answer) =>
    usage === answer.usage ||
    (provider ?? answer.provider) === answer.provider &&
      (usage === null ||
        input_tokens === answer.usage.input_tokens && output_tokens === answer.usage.output_tokens)
  );
}

/** Sets the usage that the guard measured. Called while there are answers that were not reported. */
function completeResponse(turn: Turn, data: JsonObject): JsonObject {
  const index = turn.unreported.findIndex(({ usage }) => usage === data.usage);
  const [answer] = turn.unreported.splice(Math.max(0, index), 1); // a copy of the usage: the oldest answer
  const { provider, usage, response } = answer!; // not empty
  turn.reported.push({ provider, usage });
  if (data.provider === provider && data.usage === usage && data.tool_calls !== undefined) return data;
  return {
    ...data,
    provider,
    iteration: data.iteration ?? turn.iteration,
    usage,
    tool_calls: data.tool_calls ?? (response.tool_calls?.length ?? 0) > 0,
  };
}
