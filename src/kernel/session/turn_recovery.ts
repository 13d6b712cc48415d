/**
 * Reads the state of an interrupted turn from the log, so that a new session can continue it: the events that
 * were emitted, the result of each call, and how the turn had ended. See
 * src/docs/architecture.md#the-log-is-the-state.
 */
import { PreampError } from "../../sdk/errors.ts";
import { eventsWith } from "../../sdk/events.ts";
import { isObject, type JsonObject } from "../../sdk/json.ts";
import { toChatResponse } from "../../sdk/messages.ts";
import { toToolResult } from "../../sdk/tools.ts";
import type { ChatResponse, Prompt, ToolResult } from "../../sdk/types.ts";
import type { DraftEntry } from "../host.ts";
import { type RecoveredCall, Turn } from "./turn_state.ts";

/** State of an interrupted turn. */
export interface RecoveredTurn {
  readonly turn_id: string;
  /** Whether the prompt is in the history, so that the loop resumes; else the turn starts. */
  readonly prompted: boolean;
  /** Number of answered iterations. */
  readonly iteration: number;
  /** The last answer; null before the first. */
  readonly response: ChatResponse | null;
  /** Whether the last answer is not in the history yet. */
  readonly response_is_unstored: boolean;
  /** Calls of the last answer that have entries in the log, by id. */
  readonly calls: ReadonlyMap<string, RecoveredCall>;
  /** State of `cancel:requested`; null when the turn was not cancelled. */
  readonly cancelled: "graceful" | "immediate" | null;
  /** Text of the turn, when the loop had ended; null when it had not. */
  readonly ended_with: string | null;
  /** Events of the turn that are emitted at most once, and were emitted. */
  readonly emitted: ReadonlySet<string>;
  /** Status of `orchestrator:complete`; null when it was not emitted. */
  readonly completed: string | null;
  readonly prompt_denied: string | null;
  readonly request_denied: string | null;
  readonly max_reached: boolean;
  /** Name of the limit that refused a tool call. */
  readonly limit: string | null;
  /** Error of the last model call, when no other call followed. */
  readonly provider_error: Error | null;
}

/** Events that are emitted at most once in a turn. */
const ONCE_PER_TURN = eventsWith("once");

/**
 * Returns the state of a session's last turn, or null when no turn was started.
 * @param redacted The text that replaces secrets.
 */
export function recoverTurn(
  entries: readonly DraftEntry[],
  session_id: string,
  redacted: string,
): RecoveredTurn | null {
  const own = entries.filter((entry) => entry.session_id === session_id);
  const turn_id = own.findLast((entry) => entry.turn_id !== undefined)?.turn_id;
  if (turn_id === undefined) return null;
  const projection = new TurnProjection(redacted);
  for (const entry of own) {
    if (entry.turn_id === turn_id || entry.event === "cancel:requested") projection.add(entry);
  }
  return { turn_id, ...projection.state };
}

class TurnProjection {
  readonly #redacted: string;
  readonly #emitted = new Set<string>();
  #prompted = false;
  #iteration = 0;
  #response: ChatResponse | null = null;
  #response_is_unstored = false;
  #calls = new Map<string, RecoveredCall>();
  #cancelled: RecoveredTurn["cancelled"] = null;
  #completed: string | null = null;
  #answer: string | null = null;
  #prompt_denied: string | null = null;
  #request_denied: string | null = null;
  #max_reached = false;
  #limit: string | null = null;
  #provider_error: Error | null = null;

  constructor(redacted: string) {
    this.#redacted = redacted;
  }

  add({ event, data, verdict }: DraftEntry): void {
    if (ONCE_PER_TURN.has(event)) this.#emitted.add(event);
    const denied = verdict?.action === "deny" ? verdict.reason ?? "Denied by hook" : null;
    switch (event) {
      case "prompt:submit":
        this.#prompt_denied = denied;
        break;
      case "provider:error":
        this.#provider_error = failureOf(data.error);
        break;
      case "provider:request":
        this.#provider_error = null;
        this.#request_denied = denied;
        this.#max_reached ||= data.max_reached === true;
        break;
      case "provider:response":
        if (data.inner !== true) this.#answered(data);
        break;
      case "context:message":
        this.#message(data.message);
        break;
      case "tool:pre":
        this.#pre(data, verdict?.action);
        break;
      case "approval:granted":
        if (typeof data.tool_call_id === "string") this.#calls.set(data.tool_call_id, "lost");
        break;
      case "tool:post":
        this.#calls.set(String(data.tool_call_id), { result: toToolResult(data.result) });
        break;
      case "tool:error":
        this.#failed(data);
        break;
      case "cancel:requested":
        this.#cancelled = data.state === "immediate" ? "immediate" : "graceful";
        break;
      case "execution:end":
        this.#answer = String(data.response ?? "");
        break;
      case "orchestrator:complete":
        this.#completed = String(data.status ?? "");
        break;
    }
  }

  #answered(data: JsonObject): void {
    this.#iteration++;
    this.#calls = new Map();
    this.#response = isObject(data.response) ? toChatResponse(data.response) : null;
    this.#response_is_unstored = (this.#response?.content.length ?? 0) > 0;
    for (const call of this.#response?.tool_calls ?? []) {
      if (JSON.stringify(call.arguments).includes(this.#redacted)) this.#calls.set(call.id, "redacted");
    }
  }

  #message(message: unknown): void {
    if (!isObject(message)) return;
    if (message.role === "assistant") this.#response_is_unstored = false;
    const of_user = message.role === "user" &&
      (!isObject(message.metadata) || message.metadata.source === undefined);
    if (of_user) this.#prompted = true;
  }

  /**
   * Marks a call as lost, because it may have run. A call that waits for approval has not run before the
   * answer.
   */
  #pre({ tool_call_id }: JsonObject, action: string | undefined): void {
    const id = String(tool_call_id);
    if (action === "deny" || action === "ask_user" || this.#calls.has(id)) return;
    this.#calls.set(id, "lost");
  }

  #failed({ tool_call_id, error }: JsonObject): void {
    this.#calls.set(String(tool_call_id), { error: failureOf(error) });
    if (isObject(error) && error.type === "limit_reached") this.#limit = "max_tool_calls";
  }

  get state(): Omit<RecoveredTurn, "turn_id"> {
    const denied = this.#prompt_denied ?? this.#request_denied;
    const denied_text = denied === null ? null : `Operation denied: ${denied}`;
    return {
      prompted: this.#prompted,
      iteration: this.#iteration,
      response: this.#response,
      response_is_unstored: this.#response_is_unstored,
      calls: this.#calls,
      cancelled: this.#cancelled,
      ended_with: this.#answer ?? denied_text ?? (this.#limit === null ? null : ""),
      emitted: this.#emitted,
      completed: this.#completed,
      prompt_denied: this.#prompt_denied,
      request_denied: this.#request_denied,
      max_reached: this.#max_reached,
      limit: this.#limit,
      provider_error: this.#provider_error,
    };
  }
}

/**
 * Creates an error from its data in the log, with a code when its type is a code, so that it is logged
 * identically.
 */
function failureOf(data: unknown): Error {
  const { type = "Error", msg = "" } = isObject(data) ? data : {};
  const failure = new Error(String(msg));
  if (/^(tool_|interrupted$)/.test(String(type))) return Object.assign(failure, { code: type });
  failure.name = String(type);
  return failure;
}

/** Creates the state of a turn that continues. */
export function restoreTurn(recovered: RecoveredTurn, prompt: Prompt): Turn {
  const turn = new Turn(recovered.turn_id, prompt);
  turn.started = recovered.emitted.has("execution:start");
  turn.prompt_submitted = recovered.prompted;
  turn.ended = recovered.emitted.has("execution:end");
  turn.cancel_completed = recovered.emitted.has("cancel:completed");
  turn.prompt_completed = recovered.emitted.has("prompt:complete");
  turn.completed = recovered.completed;
  turn.is_over = turn.ended && recovered.completed !== null;
  turn.iteration = turn.answered = recovered.iteration;
  turn.response = recovered.response;
  turn.prompt_denied = recovered.prompt_denied;
  turn.request_denied = recovered.request_denied;
  turn.max_reached = recovered.max_reached;
  turn.limit = recovered.limit;
  turn.provider_error = recovered.provider_error ?? undefined;
  turn.recovered = recovered.calls;
  turn.expect(recovered.response?.tool_calls ?? []);
  for (const call of turn.calls) {
    const known = recovered.calls.get(call.id);
    call.reported = typeof known === "object";
  }
  return turn;
}

/**
 * Returns the result of a call that ran before the interruption, or undefined when the call must run. Throws
 * the error of the call; `interrupted` when the call may have run and is not idempotent, or when its
 * arguments were redacted.
 */
export function recoveredResult(
  known: RecoveredCall | undefined,
  name: string,
  idempotent: boolean,
): ToolResult | undefined {
  if (known === undefined || (known === "lost" && idempotent)) return undefined;
  if (typeof known === "object") {
    if ("error" in known) throw known.error;
    return known.result;
  }
  const fact = known === "lost"
    ? "the process ended while it ran, and its effect is not known"
    : "its stored arguments were redacted";
  throw new PreampError("interrupted", `Cannot run tool "${name}" again after an interruption: ${fact}`);
}
