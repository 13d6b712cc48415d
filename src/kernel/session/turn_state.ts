/**
 * State of the running turn: the calls that the model requested, the decisions of the gates, the limit that
 * was reached. Guards and the turn tracker write it; guards and the outcome read it.
 */
import { toFrozenObject } from "../../sdk/json.ts";
import type {
  ChatResponse,
  Emission,
  JsonObject,
  Message,
  Prompt,
  ToolResult,
  Usage,
} from "../../sdk/types.ts";

/** The deadline of a running call. Its clock can be paused while the call waits for a sub-agent. */
export interface RunningCall {
  /** Resolves when the call has ended. */
  readonly stopped: Promise<void>;
  /** Stops the clock until the returned function is called, for a sub-agent or for a person. */
  pause(is_agent: boolean): () => void;
}

/** One tool call, from the model's request to its result. */
export interface CallRecord {
  readonly id: string;
  /** Whether the model requested the call; else a module makes it itself. */
  readonly is_requested: boolean;
  /** Name of the tool that the model requested, or that hooks of the loop selected in its place. */
  name: string;
  /** Input that the model requested. */
  readonly requested_input: JsonObject;
  /** Whether the kernel emitted `tool:pre` because the loop did not: then it reports the result, too. */
  gated_by_kernel: boolean;
  /** Payload of the call's `tool:pre` while its handlers run; else null. */
  payload: JsonObject | null;
  /** Emission of the call's `tool:pre`; null before. */
  pre: Emission | null;
  /** Input after the hooks; the tool is executed with this input only. */
  input: JsonObject;
  /**
   * `pending`: `tool:pre` was not emitted or not processed; a call that needs approval is pending until the
   * answer.
   */
  gate: "pending" | "allowed" | "denied";
  reason: string;
  /** Whether `execute` was called for this call: it ran, or was refused. */
  started: boolean;
  /** Result or error of the execution; null before it ends. */
  settled: { result: ToolResult } | { error: unknown } | null;
  /** Location in the module's files where the tool threw, if it threw and the location is known. */
  error_location?: string;
  /** Whether `tool:post` or `tool:error` was emitted for it. */
  reported: boolean;
  /** Deadline of the call while it runs. */
  deadline: RunningCall | null;
  /** Characters of its `tool:output`. Absent: none. */
  output_chars?: number;
}

/**
 * Result of a call before the interruption. `lost`: the call may have run, with an unknown result.
 * `redacted`: the stored input was redacted.
 */
export type RecoveredCall = { result: ToolResult } | { error: Error } | "lost" | "redacted";

/** An answer to a provider call of the loop. */
export interface UnreportedAnswer {
  /** Name of the provider. */
  readonly provider: string;
  readonly response: ChatResponse;
  readonly usage: Usage;
}

/** An emission at which hooks may stop the turn, and whether their verdict was applied. */
export interface Gate {
  readonly event: string;
  readonly emission: Emission;
  processed: boolean;
}

/** Runs the steps that a loop skipped; each does nothing for a loop that skipped none. */
export interface LoopSteps {
  /** Before a model call: emits missing events, adds missing tool results, and decides both gates. */
  beforeCall(turn: Turn, provider: string): Promise<void> | void;
  /** Emits `provider:response` for each answer that was not reported yet. */
  emitResponses(): Promise<unknown> | void;
  /** Emits and processes the `tool:pre` of a call; resolves once the gate is decided. */
  gateCall(call: CallRecord): Promise<void>;
  /**
   * Emits and processes the result or the error of a call, unless it was reported. A hook may replace the
   * result.
   */
  reportResult(call: CallRecord): Promise<void>;
  /** Returns the content of the result for a call that has no result. */
  resultContentFor(id: string, name: string): Message["content"];
}

export class Turn {
  iteration = 0;
  /** Whether `execution:start` was emitted. */
  started = false;
  /** Whether `prompt:submit` was emitted. */
  prompt_submitted = false;
  /** Whether `execution:end` was emitted. */
  ended = false;
  /** Status of `orchestrator:complete`, once it was emitted. */
  completed: string | null = null;
  /** Whether the entries of both end events were appended. */
  is_over = false;
  /** Whether `prompt:complete` was emitted before the turn was interrupted. */
  prompt_completed = false;
  /** Results of the calls of the answer that was interrupted, by id; null for all other answers. */
  recovered: ReadonlyMap<string, RecoveredCall> | null = null;
  /** Whether `cancel:completed` was emitted. */
  cancel_completed = false;
  /** Whether a model call of the loop was refused because the turn was cancelled. */
  was_stopped = false;
  /** Reason of the denial of `prompt:submit`; valid for the whole turn. */
  prompt_denied: string | null = null;
  /** Reason of the denial of the last `provider:request`; valid until the next request. */
  request_denied: string | null = null;
  prompt_gate: Gate | null = null;
  request_gate: Gate | null = null;
  /** Whether the kernel emits `provider:request` because the loop does not. */
  requests_by_kernel = false;
  /**
   * Data of `provider:error` for calls of the loop that failed after a part of an answer, until an event
   * reports them.
   */
  readonly unreported_parts: JsonObject[] = [];
  /** Data of `provider:error` for the last call that failed, if its provider left its model call open. */
  failed_request: JsonObject | null = null;
  /** Usage of what arrived of an answer that a cancellation or the end of the time broke off. */
  broken_off: Usage | null = null;
  /** Text that arrived of the last answer, when it broke off; "" for a complete one. */
  broken_off_text = "";
  /** Name of the limit that was reached. */
  limit: string | null = null;
  /** Whether the loop reported that its own limit was reached (`provider:request {max_reached: true}`). */
  max_reached = false;
  /** Number of answers to the loop's provider calls. */
  answered = 0;
  /** The last answer of a provider; null before the first. */
  response: ChatResponse | null = null;
  /** Answers without `provider:response` yet, oldest first: several when the loop calls models at once. */
  unreported: UnreportedAnswer[] = [];
  /** Answers with `provider:response`. */
  readonly reported: Pick<UnreportedAnswer, "provider" | "usage">[] = [];
  /** Data of `provider:response` and `provider:error` for calls that were not made by the loop. */
  readonly inner_responses = new WeakSet<JsonObject>();
  /** Error of the last provider call that failed. */
  provider_error: unknown = undefined;
  calls: CallRecord[] = [];

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

  /** Replaces the calls by those of a new answer; keeps those that run or were not reported yet. */
  expect(calls: readonly { id: string; name: string; arguments: JsonObject }[]): void {
    const open = this.calls.filter(({ started, reported, gate }) =>
      started && !reported && gate !== "denied"
    );
    this.calls = [...open, ...calls.map((call) => createCall(call.id, call.name, call.arguments, true))];
    this.recovered = null; // a model may give the calls of each answer the same ids
  }

  add(id: string, name: string, input: JsonObject): CallRecord {
    const call = createCall(id, name, input, false);
    this.calls.push(call);
    return call;
  }

  /**
   * Returns the first call with this id, or with this name if there is no id, for which `open` returns true.
   */
  find(id: unknown, name: unknown, open: (record: CallRecord) => boolean): CallRecord | undefined {
    for (let index = 0; index < this.calls.length; index++) { // perf: an iterator allocates an object a step
      const call = this.calls[index]!; // below the length
      const is_asked = typeof id === "string" ? call.id === id : name === undefined || call.name === name;
      if (is_asked && open(call)) return call;
    }
    return undefined;
  }
}

function createCall(id: string, name: string, input: JsonObject, is_requested: boolean): CallRecord {
  const requested_input = toFrozenObject(input); // so that no module changes it after the gate
  return {
    id,
    is_requested,
    name,
    requested_input,
    gated_by_kernel: false,
    payload: null,
    pre: null,
    input: requested_input,
    gate: "pending",
    reason: "",
    started: false,
    settled: null,
    reported: false,
    deadline: null,
  };
}
