/**
 * An interrupted turn, read from the log so that a new session can continue it: the events that were emitted,
 * how the turn had ended, and what happens to each tool call whose process ended. See
 * src/docs/architecture.md#the-log-is-the-state.
 */
import { PreampError } from "../sdk/errors.ts";
import { isObject, type JsonObject } from "../sdk/json.ts";
import { toChatResponse } from "../sdk/messages.ts";
import { withImages } from "../sdk/result_content.ts";
import { toToolResult } from "../sdk/tools.ts";
import type { Prompt, ToolResult } from "../sdk/types.ts";
import type { DraftEntry } from "./host.ts";
import { type RecoveredCall, Turn } from "./turn.ts";

/** An interrupted turn, restored entry by entry. */
export class InterruptedTurn {
  readonly turn: Turn;
  /** Whether the prompt is in the history, so that the loop resumes; else the turn starts. */
  prompted = false;
  /** Whether the last answer is not in the history yet. */
  response_is_unstored = false;
  /** Calls of the last answer that have entries in the log, by id. */
  calls = new Map<string, RecoveredCall>();
  /** State of `cancel:requested`; null when the turn was not cancelled. */
  cancelled: "graceful" | "immediate" | null = null;
  readonly #redacted: string;
  /** Text of `execution:end`. */
  #answer: string | null = null;

  /** @param redacted The text that replaces secrets. */
  constructor(turn_id: string, redacted: string) {
    this.turn = new Turn(turn_id, "");
    this.#redacted = redacted;
  }

  /** Text of the turn, when the loop had ended; null when it had not. */
  get ended_with(): string | null {
    const { denied, limit } = this.turn;
    if (this.#answer !== null) return this.#answer;
    if (denied !== null) return `Operation denied: ${denied}`;
    return limit === null ? null : "";
  }

  /** Adds the next entry of the turn. */
  add({ event, data, verdict }: DraftEntry): void {
    const { turn } = this;
    turn.seen.add(event);
    const denied = verdict?.action === "deny" ? verdict.reason ?? "Denied by hook" : null;
    switch (event) {
      case "prompt:submit":
        turn.prompt_denied = denied;
        break;
      case "provider:error":
        if (data.inner !== true) turn.provider_error = errorFromLog(data.error);
        break;
      case "provider:request":
        turn.provider_error = undefined;
        turn.request_denied = denied;
        turn.max_reached ||= data.max_reached === true;
        break;
      case "provider:response":
        if (data.inner !== true) this.#addAnswer(data);
        break;
      case "context:message":
        if (isObject(data.message) && data.message.role === "assistant") this.response_is_unstored = false;
        this.prompted ||= isPrompt(data.message);
        break;
      case "tool:pre":
        this.#pre(data, verdict?.action);
        break;
      case "approval:required": // a call that waits at a limit has not run before the answer
        if (data.limit !== undefined) this.calls.delete(String(data.tool_call_id));
        break;
      case "approval:granted":
        if (typeof data.tool_call_id === "string") this.calls.set(data.tool_call_id, "lost");
        break;
      case "tool:post":
        this.calls.set(String(data.tool_call_id), { result: recordedToolResult(data) });
        break;
      case "tool:error":
        this.calls.set(String(data.tool_call_id), { error: errorFromLog(data.error) });
        if (isObject(data.error) && data.error.type === "limit_reached") turn.limit = "max_tool_calls";
        break;
      case "cancel:requested":
        this.cancelled = data.state === "immediate" ? "immediate" : "graceful";
        break;
      case "execution:end":
        this.#answer = String(data.response ?? "");
        break;
      case "orchestrator:complete":
        turn.stated = { ...data };
        break;
    }
  }

  #addAnswer(data: JsonObject): void {
    const { turn } = this;
    turn.iteration++;
    this.calls = new Map();
    turn.response = isObject(data.response) ? toChatResponse(data.response) : null;
    this.response_is_unstored = (turn.response?.content.length ?? 0) > 0;
    for (const call of turn.response?.tool_calls ?? []) {
      if (JSON.stringify(call.arguments).includes(this.#redacted)) this.calls.set(call.id, "redacted");
    }
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

  /** Returns the turn, ready to continue. Called once, after the last entry. */
  continued(prompt: Prompt): Turn {
    const { turn, calls } = this;
    turn.prompt = prompt;
    turn.is_over = turn.seen.has("execution:end") && turn.seen.has("orchestrator:complete");
    turn.answered = turn.iteration;
    turn.expect(turn.response?.tool_calls ?? []);
    turn.recovered = calls;
    return turn;
  }
}

/** Returns whether a message is the prompt of a turn, and not one that was added during the turn. */
export function isPrompt(message: unknown): boolean {
  return isObject(message) && message.role === "user" &&
    (!isObject(message.metadata) || message.metadata.source === undefined);
}

/**
 * Returns a session's last turn, or null when no turn was started.
 * @param redacted The text that replaces secrets.
 */
export function interruptedTurnOf(
  entries: readonly DraftEntry[],
  session_id: string,
  redacted: string,
): InterruptedTurn | null {
  const own = entries.filter((entry) => entry.session_id === session_id);
  const turn_id = own.findLast((entry) => entry.turn_id !== undefined)?.turn_id;
  if (turn_id === undefined) return null;
  const interrupted = new InterruptedTurn(turn_id, redacted);
  for (const entry of own) {
    if (entry.turn_id === turn_id || entry.event === "cancel:requested") interrupted.add(entry);
  }
  return interrupted;
}

/** Returns the result of a call from the data of its `tool:post` in the log, with its images. */
export function recordedToolResult({ result, images }: JsonObject): ToolResult {
  if (!isObject(result) || !Array.isArray(images)) return toToolResult(result);
  return toToolResult({ ...result, content: withImages(result.content, images) });
}

/**
 * Creates an error from its data in the log, with a code when its type is a code, so that it is logged
 * identically.
 */
export function errorFromLog(data: unknown): Error {
  const { type = "Error", msg = "" } = isObject(data) ? data : {};
  const failure = new Error(String(msg));
  if (/^(tool_|interrupted$)/.test(String(type))) return Object.assign(failure, { code: type });
  failure.name = String(type);
  return failure;
}

/**
 * Checks that a call that was interrupted may run again.
 * @throws {PreampError} `interrupted` when it may have run and is not idempotent, or when its arguments were
 * redacted.
 */
export function requireRepeatable(known: "lost" | "redacted", name: string, idempotent: boolean): void {
  if (known === "lost" && idempotent) return;
  const fact = known === "lost"
    ? "the process ended while it ran, and its effect is not known"
    : "its stored arguments were redacted";
  throw new PreampError("interrupted", `Cannot run tool "${name}" again after an interruption: ${fact}`);
}
