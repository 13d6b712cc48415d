/**
 * State of the running turn: its request to a model, the calls that the model requested, the decisions of the
 * gates, the limit that was reached. Steps and guards write it; guards and the outcome read it.
 */
import { jsonEqual, toFrozenObject } from "../sdk/json.ts";
import type {
  CallFacts,
  ChatResponse,
  Emission,
  Injection,
  JsonObject,
  Message,
  Prompt,
  ToolResult,
} from "../sdk/types.ts";

/** The deadline of a running call. Its clock can be paused while the call waits for a sub-agent. */
export interface RunningCall {
  /** Stops the clock until the returned function is called, for a sub-agent or for a person. */
  pause(is_agent: boolean): () => void;
}

/** The decision of a gate, once its handlers ran and a person answered what they asked. */
export interface Decision {
  readonly allowed: boolean;
  /** Reason of the denial; empty when allowed. */
  readonly reason: string;
  /** Emission of the gate, whose question is answered. */
  readonly emission: Emission;
}

/** A step of the loop that hooks can deny. */
export interface Gated {
  /** Emission of its gate, once, whichever step asks for it first. */
  gate: Promise<Emission> | null;
  /** Settles once the gate is decided; null before a step asks for it. */
  decision: Promise<Decision> | null;
}

/** One request to a model, from its gate to the call of a provider. */
export interface ModelRequest extends Gated {
  /** Number of the request in the turn, from 1. */
  readonly iteration: number;
  /** Data of its `provider:request`. */
  readonly data: JsonObject;
  /** Whether a provider was called for it, or the loop has stated how its own model answered. */
  called: boolean;
}

/** One tool call, from the model's request to its result. */
export interface Call extends Gated {
  readonly id: string;
  /** Whether the model requested the call; else a module makes it itself. */
  readonly is_requested: boolean;
  /** Name of the tool that the model requested, or that hooks of the loop selected in its place. */
  readonly name: string;
  /** Input that the model requested. */
  readonly requested: JsonObject;
  /** Input after the hooks; the tool is executed with this input only. */
  input: JsonObject;
  /** Whether the call was executed: it ran, or was refused. */
  started: boolean;
  /** How the call ended; null before. `refused`: its tool was not executed. */
  ended: { result: ToolResult } | { error: unknown; refused?: boolean } | { denied: string } | null;
  /** Whether its end was reported, so that nothing follows. */
  done: boolean;
  /** Resolves when it is done; null unless the end of the turn waits for it. */
  over: PromiseWithResolvers<void> | null;
  /** Deadline of the call while it runs. */
  deadline: RunningCall | null;
  /** Fields of its events beside name, id and input. */
  facts: CallFacts;
  /** Characters of its `tool:output`. */
  output_chars: number;
}

/**
 * Result of a call before the interruption. `lost`: the call may have run, with an unknown result.
 * `redacted`: the stored input was redacted.
 */
export type RecoveredCall = { result: ToolResult } | { error: Error } | "lost" | "redacted";

/** The steps that emit: of a request its gate; of a tool call its gate, its decision, its report. */
export interface CallSteps {
  /** Decides about the request that a view is for: the one that waits for its call, else the next one. */
  viewFor(turn: Turn, provider: string, max_reached: boolean): Promise<unknown>;
  /** Decides about the request of a call: the one that waits for it, else the next one. */
  callOf(turn: Turn, provider: string): Promise<ModelRequest>;
  /** Carries out what an emission asks for; resolves to it, with `ask_user` replaced by continue or deny. */
  settle(emission: Emission, event: string, hook_name?: string): Promise<Emission>;
  /** Emits `tool:pre` of a call, once. */
  pre(call: Call): Promise<Emission>;
  /** Decides about a call, once: carries out what hooks asked for, also the question to a person. */
  decide(call: Call): Promise<Decision>;
  /** Carries out all but the question of a call that cannot run: no person is asked about it. */
  refuse(call: Call): Promise<void>;
  /** Emits the end of a call; resolves to the emission, whose handlers may have replaced the result. */
  report(call: Call, event: "tool:post" | "tool:error", facts: JsonObject): Promise<Emission>;
  /** Returns the content of the result for a call that the loop left without a result. */
  resultContentFor(id: string, name: string): Message["content"];
}

export class Turn {
  iteration = 0;
  /** What the loop states of its end: fields of `orchestrator:complete`. */
  stated: JsonObject = {};
  /** Events that were emitted before the turn was interrupted. */
  readonly seen = new Set<string>();
  /** Whether the entries of both end events were appended. */
  is_over = false;
  /** Results of the calls of the answer that was interrupted, by id; null for all other answers. */
  recovered: ReadonlyMap<string, RecoveredCall> | null = null;
  /** Whether a model call of the loop was refused because the turn was cancelled. */
  was_stopped = false;
  /** Reason of the denial of `prompt:submit`; valid for the whole turn. */
  prompt_denied: string | null = null;
  /** Reason of the denial of the last `provider:request`; valid until the next request. */
  request_denied: string | null = null;
  /** The last request; null before the first. */
  request: ModelRequest | null = null;
  /** Text that arrived of the last answer, when it broke off; "" for a complete one. */
  broken_off_text = "";
  /** Name of the limit that was reached. */
  limit: string | null = null;
  /** Whether the loop has reached its own limit (`provider:request {max_reached: true}`). */
  max_reached = false;
  /** Number of answers to the loop's provider calls. */
  answered = 0;
  /** The last answer of a provider; null before the first. */
  response: ChatResponse | null = null;
  /** Error of the last provider call that failed. */
  provider_error: unknown = undefined;
  calls: Call[] = [];
  /** Ephemeral injections at tool calls, for the next answered request. */
  pending: Injection[] = [];
  /** Number of the pending injections that the last view has. */
  placed = 0;

  constructor(readonly id: string, public prompt: Prompt) {}

  /** Id and iteration, as an entry and a handler's payload have them: up to the last end event. */
  get fields(): { turn_id?: string; iteration?: number } {
    if (this.is_over) return {};
    return this.iteration > 0 ? { turn_id: this.id, iteration: this.iteration } : { turn_id: this.id };
  }

  /** Reason why no model may be called now, or null. */
  get denied(): string | null {
    return this.prompt_denied ?? this.request_denied;
  }

  /**
   * Returns the request that a step of the loop is for: the one that waits for its call, unless it was denied
   * or the loop states a later iteration; else the next one.
   */
  requestOf(data: JsonObject): ModelRequest {
    const { iteration: stated } = data;
    const is_later = typeof stated === "number" && Number.isSafeInteger(stated) && stated > this.iteration;
    const { request } = this;
    if (request && !request.called && this.request_denied === null && !is_later) return request;
    this.iteration = is_later ? stated : this.iteration + 1;
    this.request_denied = null;
    if (data.max_reached === true) this.max_reached = true;
    const { iteration } = this;
    return this.request = {
      iteration,
      data: { iteration, ...data },
      called: false,
      gate: null,
      decision: null,
    };
  }

  /** Replaces the calls by those of a new answer; keeps those that run. */
  expect(calls: readonly { id: string; name: string; arguments: JsonObject }[]): void {
    const running = this.calls.filter(({ started, done }) => started && !done);
    this.calls = [...running, ...calls.map((call) => createCall(call.id, call.name, call.arguments, true))];
    this.recovered = null; // a model may give the calls of each answer the same ids
  }

  /**
   * Returns the call that a loop is about to make: the model's, with the tool and input that the loop chose.
   * An empty name and no input: those that the model chose.
   */
  asked(id: string | undefined, name: string, input: JsonObject | null, newId: () => string): Call {
    const index = this.calls.findIndex((call) =>
      !call.started && (id === undefined ? call.name === name && call.gate === null : call.id === id)
    );
    const known = this.calls[index];
    if (!known) return this.#add(id, name, input ?? {}, newId);
    const is_same = (name === "" || known.name === name) &&
      (input === null || jsonEqual(known.requested, input));
    if (is_same || known.gate !== null) return known;
    return this.calls[index] = createCall(known.id, name || known.name, input ?? known.requested, true);
  }

  /** Returns whether a tool was executed for a call, or for any call if neither id nor name is stated. */
  ranCall(id: string | undefined, name: string): boolean {
    const isCall = (call: Call) => id === undefined ? name === "" || call.name === name : call.id === id;
    return this.calls.some((call) => call.started && isCall(call));
  }

  /**
   * Returns the call that a tool is executed for. Id, name and input agree: an input or a name that no gate
   * has seen is a call of its own, else a module could run a tool with the permission of another call.
   */
  running(
    id: string | undefined,
    names: readonly [string, ...string[]],
    input: JsonObject,
    newId: () => string,
  ): Call {
    const isFor = (call: Call) =>
      !call.started && (id === undefined || call.id === id) && names.includes(call.name) &&
      (jsonEqual(input, call.input) || jsonEqual(input, call.requested));
    return this.calls.find(isFor) ?? this.#add(id, names[0], input, newId);
  }

  #add(id: string | undefined, name: string, input: JsonObject, newId: () => string): Call {
    const is_free = id !== undefined && !this.calls.some((known) => known.id === id);
    const call = createCall(is_free ? id : newId(), name, input, false);
    this.calls.push(call);
    return call;
  }
}

function createCall(id: string, name: string, input: JsonObject, is_requested: boolean): Call {
  const requested = toFrozenObject(input); // so that no module changes it after the gate
  return {
    id,
    is_requested,
    name,
    requested,
    input: requested,
    gate: null,
    decision: null,
    started: false,
    ended: null,
    done: false,
    over: null,
    deadline: null,
    facts: NO_FACTS,
    output_chars: 0,
  };
}

const NO_FACTS: CallFacts = Object.freeze({});
