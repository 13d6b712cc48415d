/**
 * What the kernel knows of the turn that runs: which calls the model asked for, which of them passed their gate, what was
 * denied, which ceiling was reached. Filled by guards and by the events that pass; read by guards and by the outcome.
 */
import type { RecoveredCall } from "./turn_recovery.ts";
import { toPlainObject } from "../../sdk/json.ts";
import type { ChatResponse, Emission, JsonObject, Prompt, ToolResult, Usage } from "../../sdk/types.ts";

/** What can be stopped and goes on: the clock of a call that waits for a sub-agent. */
export interface Pausable {
  /** Stops it until the returned function is called. */
  pause(): () => void;
}

/** One tool call from the model's request to its answer. */
export interface CallRecord {
  readonly id: string;
  /** The tool the model asked for; or, once a loop's hooks chose another one, that one. */
  name: string;
  /** The input as the model asked for it. */
  readonly requested_input: JsonObject;
  /** The call's `tool:pre`, once it was emitted. */
  pre: Emission | null;
  /** The input as the hooks left it: the only one that runs. */
  input: JsonObject;
  /** `pending`: not emitted or not processed; an `ask_user` stays pending until it was answered. */
  gate: "pending" | "allowed" | "denied";
  reason: string;
  /** Whether an `execute` has taken this call: it ran, or was refused. */
  started: boolean;
  /** What the execution came to; null while it runs. */
  settled: { result: ToolResult } | { error: unknown } | null;
  /** Where in its module's files the tool threw; absent when it did not, or nobody knows. */
  error_location?: string;
  /** Whether `tool:post` or `tool:error` was emitted for it. */
  reported: boolean;
  /** Its deadline while it runs. */
  deadline: Pausable | null;
}

/** An event at which hooks may stop the turn, and whether their verdict was acted on. */
export interface Gate {
  readonly event: string;
  readonly emission: Emission;
  processed: boolean;
}

/** The turn that runs. */
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
  /** Whether `prompt:complete` was emitted before the turn was interrupted. */
  prompt_completed = false;
  /** What the log of an interrupted turn knows of its calls. */
  recovered: ReadonlyMap<string, RecoveredCall> = new Map();
  /** Whether `cancel:completed` was emitted. */
  cancel_completed = false;
  /** Reason of the denial of `prompt:submit`; holds for the whole turn. */
  prompt_denied: string | null = null;
  /** Reason of the denial of the last `provider:request`; the next request lifts it. */
  request_denied: string | null = null;
  prompt_gate: Gate | null = null;
  request_gate: Gate | null = null;
  /** Whether the kernel emits `provider:request` because the loop does not. */
  requests_by_kernel = false;
  /** Name of the ceiling that was reached. */
  limit: string | null = null;
  /** Whether the loop said that its own limit was reached (`provider:request {max_reached: true}`). */
  max_reached = false;
  /** Answers of providers to the loop's own calls. */
  answered = 0;
  /** The last answer of a provider; null before the first. */
  response: ChatResponse | null = null;
  response_usage: Usage | null = null;
  /** Name of the provider whose answer has not been told by `provider:response` yet. */
  unreported_response: string | null = null;
  /** Data of `provider:response` for answers to calls that were not the loop's own. */
  readonly inner_responses = new WeakSet<JsonObject>();
  /** The error of the last provider call that failed. */
  provider_error: unknown = undefined;
  readonly calls: CallRecord[] = [];

  constructor(readonly id: string, readonly prompt: Prompt) {}

  /** Why no model may be called now, or null. */
  get denied(): string | null {
    return this.prompt_denied ?? this.request_denied;
  }

  /** Replaces the calls that are waited for by those of a new answer. */
  expect(calls: readonly { id: string; name: string; arguments: JsonObject }[]): void {
    this.calls.length = 0;
    for (const call of calls) this.add(call.id, call.name, call.arguments);
  }

  /** Adds a call, whoever asked for it. */
  add(id: string, name: string, input: JsonObject): CallRecord {
    const asked = toPlainObject(input); // a copy: nobody changes what was asked for once a gate has seen it
    const record: CallRecord = {
      id,
      name,
      requested_input: asked,
      pre: null,
      input: asked,
      gate: "pending",
      reason: "",
      started: false,
      settled: null,
      reported: false,
      deadline: null,
    };
    this.calls.push(record);
    return record;
  }

  /** Returns the call of this id, else the oldest of this name that `open` holds for, else undefined. */
  find(id: unknown, name: unknown, open: (record: CallRecord) => boolean): CallRecord | undefined {
    if (typeof id === "string") return this.calls.find((record) => record.id === id && open(record));
    return this.calls.find((record) => (name === undefined || record.name === name) && open(record));
  }
}
