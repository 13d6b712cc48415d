/**
 * What the events of a turn mean to the kernel: it completes what a loop leaves out of an event, and notes what passed its
 * gate, so that guards and outcome hold whatever the loop does with the answers (architecture.md, Guards).
 */
import type { Emission, JsonObject } from "../sdk/types.ts";
import type { Core } from "./core.ts";
import type { CallRecord, Gate, Turn } from "./turn.ts";

/** What an emission stands for, so that processing its result can be told to the turn. */
export type Subject = { call: CallRecord } | { gate: Gate };

/** Bookkeeping over the events of a session. */
export class Watch {
  readonly #core: Core;
  readonly #subjects = new WeakMap<Emission, Subject>();

  constructor(core: Core) {
    this.#core = core;
  }

  /** Returns what an emission stands for. */
  subjectOf(emission: Emission): Subject | undefined {
    return this.#subjects.get(emission);
  }

  /** Completes the payload of an event before its handlers see it. */
  prepare(event: string, data: JsonObject): JsonObject {
    const { turn } = this.#core;
    if (turn === null) return data;
    switch (event) {
      case "provider:request":
        turn.iteration = nextIteration(turn, data);
        return data;
      case "provider:response":
        return completeResponse(turn, data);
      case "tool:pre":
        return this.#completePre(turn, data);
      case "tool:post":
      case "tool:error":
        return completeResult(turn, data);
      default:
        return data;
    }
  }

  #completePre(turn: Turn, data: JsonObject): JsonObject {
    const found = turn.find(data.tool_call_id, data.tool_name, (record) => record.pre === null);
    const input = isInput(data.tool_input) ? data.tool_input : undefined;
    const call = found ??
      turn.add(
        typeof data.tool_call_id === "string" ? data.tool_call_id : this.#core.host.newId("call"),
        String(data.tool_name),
        input ?? {},
      );
    const payload = typeof data.tool_call_id === "string" && input !== undefined ? data : {
      ...data,
      tool_name: data.tool_name ?? call.name,
      tool_call_id: call.id,
      tool_input: input ?? call.asked,
    };
    this.#pending.set(payload, call);
    return payload;
  }

  /** Payload → call, from `prepare` to `settle` of the same event. */
  readonly #pending = new WeakMap<JsonObject, CallRecord>();

  /** Takes notice of what an event came to; called before its entry is written. `prepared` is what {@link prepare} returned. */
  settle(event: string, emission: Emission, prepared: JsonObject): void {
    const { turn } = this.#core;
    if (turn === null) return;
    switch (event) {
      case "execution:start":
        turn.started = true;
        break;
      case "execution:end":
        turn.ended = true;
        break;
      case "orchestrator:complete":
        turn.completed = String(emission.data.status ?? "");
        break;
      case "cancel:completed":
        turn.cancel_told = true;
        break;
      case "prompt:submit":
        turn.prompt_gate = this.#gate(event, emission);
        turn.denied = emission.action === "deny" ? emission.reason : null;
        break;
      case "provider:request":
        turn.request_gate = this.#gate(event, emission);
        turn.denied = emission.action === "deny" ? emission.reason : null;
        if (emission.data.max_reached === true) turn.max_reached = true;
        break;
      case "provider:response":
      case "provider:error":
        turn.untold_response = null;
        break;
      case "tool:pre":
        this.#settlePre(emission, prepared);
        break;
      case "tool:post":
      case "tool:error": {
        const call = turn.find(emission.data.tool_call_id, emission.data.tool_name, (record) => !record.told);
        if (call) call.told = true;
        break;
      }
    }
  }

  #gate(event: string, emission: Emission): Gate {
    const gate = { event, emission, processed: emission.action !== "ask_user" };
    this.#subjects.set(emission, { gate });
    return gate;
  }

  #settlePre(emission: Emission, prepared: JsonObject): void {
    const call = this.#pending.get(prepared);
    if (!call) return;
    call.pre = emission;
    const input = emission.data.tool_input;
    call.input = isInput(input) ? input : call.asked;
    if (emission.action === "deny") {
      call.gate = "denied";
      call.reason = emission.reason ?? "Denied by hook";
    } else if (emission.action !== "ask_user") call.gate = "allowed";
    this.#subjects.set(emission, { call });
  }
}

function isInput(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function nextIteration(turn: Turn, data: JsonObject): number {
  const told = data.iteration;
  return typeof told === "number" && Number.isInteger(told) && told > turn.iteration
    ? told
    : turn.iteration + 1;
}

function completeResponse(turn: Turn, data: JsonObject): JsonObject {
  const { response, untold_response } = turn;
  if (response === null || untold_response === null) return data;
  if (data.provider !== undefined && data.usage !== undefined && data.tool_calls !== undefined) return data;
  return {
    ...data,
    provider: data.provider ?? untold_response,
    iteration: data.iteration ?? turn.iteration,
    usage: data.usage ?? turn.response_usage,
    tool_calls: data.tool_calls ?? (response.tool_calls?.length ?? 0) > 0,
  };
}

function completeResult(turn: Turn, data: JsonObject): JsonObject {
  if (data.tool_call_id !== undefined && data.tool_name !== undefined) return data;
  const call = turn.find(data.tool_call_id, data.tool_name, (record) => record.started && !record.told);
  if (!call) return data;
  return { ...data, tool_name: call.name, tool_call_id: call.id, tool_input: data.tool_input ?? call.input };
}
