/**
 * Where the log says that an interrupted turn stands, so that a new session can go on with it: what was told already, what each
 * call came to, how the turn had ended if it had (architecture.md, Resume; trace.md, section 5).
 */
import { PreampError } from "../../sdk/errors.ts";
import { eventsWith } from "../../sdk/events.ts";
import { isObject, type JsonObject } from "../../sdk/json.ts";
import { toChatResponse } from "../../sdk/messages.ts";
import { toToolResult } from "../../sdk/tools.ts";
import type { ChatResponse, Prompt, ToolResult } from "../../sdk/types.ts";
import type { DraftEntry } from "../host.ts";
import { Turn } from "./turn_state.ts";

/**
 * What a call came to before the interruption. `lost`: it was let run and nobody knows what it did. `redacted`: what it was
 * asked with is no longer known.
 */
export type RecoveredCall = { result: ToolResult } | { error: Error } | "lost" | "redacted";

/** An interrupted turn. */
export interface RecoveredTurn {
  readonly turn_id: string;
  /** Whether the prompt is in the history: the loop goes on; else the turn begins. */
  readonly prompted: boolean;
  /** Iterations that were answered. */
  readonly iteration: number;
  /** The last answer; null before the first. */
  readonly response: ChatResponse | null;
  /** Whether that answer is not in the history yet. */
  readonly response_is_unstored: boolean;
  /** Calls of the last answer that the log knows something of, by id. */
  readonly calls: ReadonlyMap<string, RecoveredCall>;
  /** Status of `cancel:requested`, when the turn was asked to stop. */
  readonly cancelled: "graceful" | "immediate" | null;
  /** What the turn had answered, when nothing of the loop was left to do; null: it was not at its end. */
  readonly ended_with: string | null;
  /** Events that are told once in a turn, and were. */
  readonly emitted: ReadonlySet<string>;
  /** Status of `orchestrator:complete`, once it was told. */
  readonly completed: string | null;
  readonly prompt_denied: string | null;
  readonly request_denied: string | null;
  readonly max_reached: boolean;
  /** Name of the ceiling that refused a tool call. */
  readonly limit: string | null;
  /** What the last model call failed with, when nothing followed but the end of the turn. */
  readonly provider_error: Error | null;
}

/** Events that are emitted at most once in a turn. */
const ONCE_PER_TURN = eventsWith("once");

/** Returns where the last turn of a session stands, or null when none was begun. `redacted`: what stands in place of a secret. */
export function recoverTurn(
  entries: readonly DraftEntry[],
  session_id: string,
  redacted: string,
): RecoveredTurn | null {
  const own = entries.filter((entry) => entry.session_id === session_id);
  const turn_id = own.findLast((entry) => entry.turn_id !== undefined)?.turn_id;
  if (turn_id === undefined) return null;
  const fold = new TurnProjection(redacted);
  for (const entry of own) {
    if (entry.turn_id === turn_id || entry.event === "cancel:requested") fold.add(entry);
  }
  return { turn_id, ...fold.state };
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

  /** From here on the call may have run; one that a person is asked about may not before the answer. */
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
    const stopped = this.#prompt_denied ?? this.#request_denied;
    const refused = stopped === null ? null : `Operation denied: ${stopped}`;
    return {
      prompted: this.#prompted,
      iteration: this.#iteration,
      response: this.#response,
      response_is_unstored: this.#response_is_unstored,
      calls: this.#calls,
      cancelled: this.#cancelled,
      ended_with: this.#answer ?? refused ?? (this.#limit === null ? null : ""),
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

/** Returns an error as the log tells it: a code where its type is one, so that it is told the same again. */
function failureOf(told: unknown): Error {
  const { type = "Error", msg = "" } = isObject(told) ? told : {};
  const failure = new Error(String(msg));
  if (/^(tool_|interrupted$)/.test(String(type))) return Object.assign(failure, { code: type });
  failure.name = String(type);
  return failure;
}

/** Returns the kernel's view of a turn that goes on. */
export function restoreTurn(recovered: RecoveredTurn, prompt: Prompt): Turn {
  const turn = new Turn(recovered.turn_id, prompt);
  turn.started = recovered.emitted.has("execution:start");
  turn.prompt_submitted = recovered.prompted;
  turn.ended = recovered.emitted.has("execution:end");
  turn.cancel_completed = recovered.emitted.has("cancel:completed");
  turn.prompt_completed = recovered.emitted.has("prompt:complete");
  turn.completed = recovered.completed;
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
 * Returns the result of a call that ran before the interruption, or undefined when it has still to run. Throws what it threw;
 * `interrupted` when it may have run and a second time would be one too many, or when its arguments are no longer known.
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
    ? "the process ended while it ran, and what it did is not known"
    : "its stored arguments were redacted";
  throw new PreampError("interrupted", `Cannot run tool "${name}" again after an interruption: ${fact}`);
}
