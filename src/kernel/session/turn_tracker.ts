/**
 * What the events of a turn mean to the kernel: it completes what a loop leaves out of an event, drops what was told
 * already, and notes what passed its gate, so that guards and outcome hold whatever the loop does with the answers
 * (architecture.md, Guards).
 */
import { eventsWith } from "../../sdk/events.ts";
import { toPlain, toPlainObject } from "../../sdk/json.ts";
import type { ApprovalQuestion, Emission, JsonObject, Tool } from "../../sdk/types.ts";
import type { SessionContext } from "./session_context.ts";
import type { Mounts } from "../mounting/mounts.ts";
import type { CallRecord, Gate, Turn } from "./turn_state.ts";

/** What an emission stands for, so that processing its result can be told to the turn. */
export type GateSubject = CallSubject | { gate: Gate };

/** A tool call as one emission of its `tool:pre` left it. */
export interface CallSubject {
  readonly call: CallRecord;
  readonly pre: Emission;
  readonly name: string;
  readonly input: JsonObject;
}

/** Events that are dropped while no turn runs. */
const TURN_EVENTS = eventsWith("turn");

interface TrackedEmission {
  readonly subject: GateSubject;
  /** What the hooks wanted. The loop holds the original and could change it before it is acted on. */
  readonly verdict: Emission;
}

/** Bookkeeping over the events of a session. */
export class TurnTracker {
  readonly #session: SessionContext;
  readonly #noted = new WeakMap<Emission, TrackedEmission>();
  readonly #mounts: Mounts;
  #cancel_requested = false;

  constructor(session: SessionContext, mounts: Mounts) {
    this.#session = session;
    this.#mounts = mounts;
  }

  /** Returns what an emission stands for; undefined when it asks for nothing. */
  subjectOf(emission: Emission): GateSubject | undefined {
    return this.#noted.get(emission)?.subject;
  }

  /** Returns an emission as the hooks left it, whatever became of the object since. */
  verdictOf(emission: Emission): Emission {
    return this.#noted.get(emission)?.verdict ?? emission;
  }

  /** Says that `cancel:requested` was told before the turn was interrupted. */
  noteCancelled(): void {
    this.#cancel_requested = true;
  }

  /** Whether `cancel:requested` was told. */
  get cancel_requested(): boolean {
    return this.#cancel_requested;
  }

  /** Forgets the cancellation of the turn before. */
  reset(): void {
    this.#cancel_requested = false;
  }

  /**
   * Completes the payload of an event before its handlers see it. Null: the event is dropped, because it may happen once
   * and was told, or because nothing happened that it could tell.
   */
  prepare(event: string, data: JsonObject): JsonObject | null {
    if (event === "cancel:requested") {
      if (this.#cancel_requested) return null;
      this.#cancel_requested = true;
      return data;
    }
    const { turn } = this.#session;
    if (turn === null) return TURN_EVENTS.has(event) ? null : data; // a loop that was left behind comes late
    switch (event) {
      case "execution:start":
        if (turn.started) return null;
        turn.started = true;
        return data;
      case "execution:end":
        if (turn.ended) return null;
        turn.ended = true;
        return data;
      case "orchestrator:complete":
        if (turn.completed !== null) return null;
        turn.completed = String(data.status ?? "");
        return data;
      case "cancel:completed":
        if (turn.cancel_completed) return null;
        turn.cancel_completed = true;
        return { ...data, was_immediate: this.#session.cancellation.is_immediate };
      case "prompt:submit":
        turn.prompt_submitted = true;
        return data;
      case "prompt:complete":
        return turn.prompt_completed ? null : data;
      case "provider:request":
        turn.iteration = nextIteration(turn, data);
        if (data.max_reached === true) turn.max_reached = true;
        return data;
      case "provider:response":
        return completeResponse(turn, data);
      case "provider:error":
        turn.unreported_response = null;
        return data;
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
    const { tool_call_id: id, tool_name: name } = data;
    const found = turn.find(id, name, (record) => record.pre === null) ??
      (typeof id === "string" ? turn.find(id, name, (record) => !record.started) : undefined); // asked again: decided anew
    const input = isInput(data.tool_input) ? data.tool_input : undefined;
    const call = found ??
      turn.add(typeof id === "string" ? id : this.#session.host.newId("call"), String(name), input ?? {});
    call.gate = "pending";
    if (typeof name === "string" && name !== "") call.name = name; // what the gate sees is what may run
    const whole = typeof id === "string" && input !== undefined ? data : {
      ...data,
      tool_name: name ?? call.name,
      tool_call_id: call.id,
      tool_input: input ?? call.requested_input,
    };
    const payload = withDeclared(whole, this.#mounts.toolNamed(call.name));
    this.#pending.set(payload, call);
    return payload;
  }

  /** Payload → call, from `prepare` to `settle` of the same event. */
  readonly #pending = new WeakMap<JsonObject, CallRecord>();

  /** Takes notice of what a gate came to; called before its entry is written. `prepared` is what {@link prepare} returned. */
  settle(event: string, emission: Emission, prepared: JsonObject): void {
    const { turn } = this.#session;
    if (turn === null) return;
    const reason = emission.action === "deny" ? emission.reason ?? "Denied by hook" : null;
    switch (event) {
      case "prompt:submit":
        turn.prompt_gate = this.#gate(event, emission);
        turn.prompt_denied = reason;
        break;
      case "provider:request":
        turn.request_gate = this.#gate(event, emission);
        turn.request_denied = reason;
        break;
      case "tool:pre":
        this.#settlePre(emission, prepared, reason);
        break;
    }
  }

  #gate(event: string, emission: Emission): Gate {
    const gate = { event, emission, processed: emission.action !== "ask_user" };
    this.#note(emission, { gate });
    return gate;
  }

  /** Where nobody asked for anything there is nothing to act on, whatever a loop makes of the object: most gates are passed so. */
  #note(emission: Emission, subject: GateSubject): void {
    if (isNoop(emission)) return;
    this.#noted.set(emission, { subject, verdict: snapshot(emission) });
  }

  #settlePre(emission: Emission, prepared: JsonObject, reason: string | null): void {
    const call = this.#pending.get(prepared);
    if (!call) return;
    this.#pending.delete(prepared);
    call.pre = emission;
    const input = emission.data.tool_input;
    call.input = isInput(input) ? toPlainObject(input) : call.requested_input; // a copy: what runs is what the hooks saw
    if (reason !== null) {
      call.gate = "denied";
      call.reason = reason;
    } else if (emission.action !== "ask_user") call.gate = "allowed";
    this.#note(emission, { call, pre: emission, name: call.name, input: call.input });
  }
}

/** Adds what a tool declares of its harm, for the hooks to decide by; a tool that declares none is told of with no word more. */
function withDeclared(payload: JsonObject, tool: Tool | undefined): JsonObject {
  const { risk = "low", requires_approval = false } = tool ?? {};
  if (risk === "low" && !requires_approval) return payload;
  return {
    ...payload,
    ...(risk === "low" ? {} : { risk }),
    ...(requires_approval ? { requires_approval } : {}),
  };
}

function isNoop({ action, user_messages, injections }: Emission): boolean {
  return action === "continue" && user_messages.length === 0 && injections.length === 0;
}

function snapshot(emission: Emission): Emission {
  const { approval, injections, user_messages } = emission;
  return {
    ...emission,
    approval: approval && toPlain(approval) as unknown as ApprovalQuestion, // a copy of it
    injections: injections.map((injection) => ({ ...injection })),
    user_messages: user_messages.map((message) => ({ ...message })),
  };
}

function isInput(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function nextIteration(turn: Turn, data: JsonObject): number {
  const told = data.iteration;
  return typeof told === "number" && Number.isSafeInteger(told) && told > turn.iteration
    ? told
    : turn.iteration + 1;
}

/** What an answer took is what its guard measured, whatever the loop says; each answer is told once. */
function completeResponse(turn: Turn, data: JsonObject): JsonObject | null {
  const { response, unreported_response: untold_response, response_usage } = turn;
  if (response === null || turn.inner_responses.has(data)) return data;
  if (untold_response === null) return null;
  turn.unreported_response = null;
  if (data.provider === untold_response && data.usage === response_usage && data.tool_calls !== undefined) {
    return data;
  }
  return {
    ...data,
    provider: untold_response,
    iteration: data.iteration ?? turn.iteration,
    usage: response_usage,
    tool_calls: data.tool_calls ?? (response.tool_calls?.length ?? 0) > 0,
  };
}

/** The call that a result belongs to; null when it was told already, or was denied and has none (trace.md, section 5). */
function completeResult(turn: Turn, data: JsonObject): JsonObject | null {
  const { tool_call_id: id, tool_name: name } = data;
  const call = turn.find(
    id,
    name,
    (record) => !record.reported && (record.started || typeof id === "string"),
  );
  if (call === undefined) return turn.find(id, name, (record) => record.reported) ? null : data;
  call.reported = true;
  if (call.gate === "denied") return null;
  const placed = call.error_location !== undefined && isInput(data.error)
    ? { ...data, error: { ...data.error, at: call.error_location } }
    : data;
  if (id !== undefined && name !== undefined) return placed;
  return {
    ...placed,
    tool_name: call.name,
    tool_call_id: call.id,
    tool_input: data.tool_input ?? call.input,
  };
}
