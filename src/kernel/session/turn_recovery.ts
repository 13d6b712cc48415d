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

/** Events that are emitted at most once in a turn. */
const ONCE_PER_TURN = eventsWith("once");

/** State of an interrupted turn, computed entry by entry. */
export class RecoveredTurn {
  /** Whether the prompt is in the history, so that the loop resumes; else the turn starts. */
  prompted = false;
  /** Number of answered iterations. */
  iteration = 0;
  /** The last answer; null before the first. */
  response: ChatResponse | null = null;
  /** Whether the last answer is not in the history yet. */
  response_is_unstored = false;
  /** Calls of the last answer that have entries in the log, by id. */
  calls = new Map<string, RecoveredCall>();
  /** State of `cancel:requested`; null when the turn was not cancelled. */
  cancelled: "graceful" | "immediate" | null = null;
  /** Events of the turn that are emitted at most once, and were emitted. */
  readonly emitted = new Set<string>();
  /** Status of `orchestrator:complete`; null when it was not emitted. */
  completed: string | null = null;
  prompt_denied: string | null = null;
  request_denied: string | null = null;
  max_reached = false;
  /** Name of the limit that refused a tool call. */
  limit: string | null = null;
  /** Error of the last model call, when no other call followed. */
  provider_error: Error | null = null;
  readonly #redacted: string;
  /** Text of `execution:end`. */
  #answer: string | null = null;

  /** @param redacted The text that replaces secrets. */
  constructor(readonly turn_id: string, redacted: string) {
    this.#redacted = redacted;
  }

  /** Text of the turn, when the loop had ended; null when it had not. */
  get ended_with(): string | null {
    const denied = this.prompt_denied ?? this.request_denied;
    if (this.#answer !== null) return this.#answer;
    if (denied !== null) return `Operation denied: ${denied}`;
    return this.limit === null ? null : "";
  }

  /** Adds the next entry of the turn. */
  add({ event, data, verdict }: DraftEntry): void {
    if (ONCE_PER_TURN.has(event)) this.emitted.add(event);
    const denied = verdict?.action === "deny" ? verdict.reason ?? "Denied by hook" : null;
    switch (event) {
      case "prompt:submit":
        this.prompt_denied = denied;
        break;
      case "provider:error":
        this.provider_error = failureOf(data.error);
        break;
      case "provider:request":
        this.provider_error = null;
        this.request_denied = denied;
        this.max_reached ||= data.max_reached === true;
        break;
      case "provider:response":
        if (data.inner !== true) this.#addAnswer(data);
        break;
      case "context:message":
        this.#message(data.message);
        break;
      case "tool:pre":
        this.#pre(data, verdict?.action);
        break;
      case "approval:granted":
        if (typeof data.tool_call_id === "string") this.calls.set(data.tool_call_id, "lost");
        break;
      case "tool:post":
        this.calls.set(String(data.tool_call_id), { result: toToolResult(data.result) });
        break;
      case "tool:error":
        this.calls.set(String(data.tool_call_id), { error: failureOf(data.error) });
        if (isObject(data.error) && data.error.type === "limit_reached") this.limit = "max_tool_calls";
        break;
      case "cancel:requested":
        this.cancelled = data.state === "immediate" ? "immediate" : "graceful";
        break;
      case "execution:end":
        this.#answer = String(data.response ?? "");
        break;
      case "orchestrator:complete":
        this.completed = String(data.status ?? "");
        break;
    }
  }

  #addAnswer(data: JsonObject): void {
    this.iteration++;
    this.calls = new Map();
    this.response = isObject(data.response) ? toChatResponse(data.response) : null;
    this.response_is_unstored = (this.response?.content.length ?? 0) > 0;
    for (const call of this.response?.tool_calls ?? []) {
      if (JSON.stringify(call.arguments).includes(this.#redacted)) this.calls.set(call.id, "redacted");
    }
  }

  #message(message: unknown): void {
    if (!isObject(message)) return;
    if (message.role === "assistant") this.response_is_unstored = false;
    const of_user = message.role === "user" &&
      (!isObject(message.metadata) || message.metadata.source === undefined);
    if (of_user) this.prompted = true;
  }

  /**
   * Marks a call as lost, because it may have run. A call that waits for approval has not run before the
   * answer.
   */
  #pre({ tool_call_id }: JsonObject, action: string | undefined): void {
    const id = String(tool_call_id);
    if (action === "deny" || action === "ask_user" || this.calls.has(id)) return;
    this.calls.set(id, "lost");
  }
}

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
  const recovered = new RecoveredTurn(turn_id, redacted);
  for (const entry of own) {
    if (entry.turn_id === turn_id || entry.event === "cancel:requested") recovered.add(entry);
  }
  return recovered;
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
  turn.expect(recovered.response?.tool_calls ?? []);
  turn.recovered = recovered.calls;
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
