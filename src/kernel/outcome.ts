/**
 * Decides how a turn ended, from its state and the loop's error, never from the returned text. See
 * src/docs/http.md#the-run-object.
 */
import { errorCode, errorMessage, errorName } from "../sdk/errors.ts";
import { explainedMessage, providerErrorCode, toLLMError } from "../sdk/llm_errors.ts";
import { textOf, toBlocks } from "../sdk/messages.ts";
import { sanitizeText } from "../sdk/tools.ts";
import type { ContentBlock } from "../sdk/types.ts";
import type { SessionContext } from "./session_context.ts";
import { limitOf } from "./run_limits.ts";
import type { Turn } from "./turn.ts";

export interface Outcome {
  status: "completed" | "incomplete" | "denied" | "cancelled" | "failed";
  stop_reason: string;
  output_text: string;
  output: ContentBlock[];
  error: { code: string; message: string } | null;
}

/** Error codes that a run's `error` keeps; every other code becomes `internal`. */
const RUN_CODES: ReadonlySet<string> = new Set([
  "provider_rate_limited",
  "provider_overloaded",
  "provider_unreachable",
  "provider_timeout",
  "provider_bad_response",
  "provider_auth",
  "model_not_found",
  "context_overflow",
  "denied",
  "interrupted",
  "internal",
]);

/** Maximum characters of an error message on a run. */
const MAX_MESSAGE = 1_800;

/** Finish reason of an answer that was cut off → stop reason. */
const CUT_BY: ReadonlyMap<string | undefined, string> = new Map([
  ["length", "max_output_tokens"],
  ["max_tokens", "max_output_tokens"],
  ["max_output_tokens", "max_output_tokens"],
  ["content_filter", "content_filter"],
]);

/**
 * Result of the orchestrator's `execute`: the text that it returned, or its error with the text that had
 * arrived of the answer that broke off.
 */
export type Returned = { text: string } | { error: unknown; text: string };

/** How a turn ended, without its output. */
type Ending = Pick<Outcome, "status" | "stop_reason" | "error">;

export function outcomeOf(session: SessionContext, turn: Turn, returned: Returned): Outcome {
  const { text } = returned;
  const { status, stop_reason, error } = endingOf(session, turn, returned, text);
  return { status, stop_reason, output_text: text, output: outputOf(turn, text), error };
}

function endingOf(session: SessionContext, turn: Turn, returned: Returned, text: string): Ending {
  const limit = ("error" in returned ? limitOf(returned.error) : null) ?? turn.limit;
  if (limit !== null) return ended("incomplete", `limit:${limit}`);
  if ("error" in returned) return endingOfError(session, turn, returned.error);
  if (turn.denied !== null) return denied(turn.denied);
  const is_stopped = turn.was_stopped || session.cancellation.is_cancelled;
  const { status: said = null } = turn.stated;
  if (said === "cancelled" || is_stopped) return CANCELLED;
  if (turn.max_reached) return ended("incomplete", "limit:max_iterations");
  if (said === "error") return failed("internal", "The orchestrator reported an error");
  const cut = CUT_BY.get(turn.response?.finish_reason);
  if (cut) return ended("incomplete", cut);
  if (said === "incomplete") {
    const wanted_more = (turn.response?.tool_calls?.length ?? 0) > 0;
    return ended("incomplete", wanted_more ? "limit:max_iterations" : "empty_response");
  }
  if (said === null && text === "") return ended("incomplete", "empty_response");
  return ended("completed", "end_turn");
}

function endingOfError(session: SessionContext, turn: Turn, error: unknown): Ending {
  const code = errorCode(error);
  const name = errorName(error);
  const message = errorMessage(error);
  if (code === "denied") return denied(message);
  if (session.cancellation.is_cancelled && (code === "cancelled" || name === "AbortError")) return CANCELLED;
  const is_of_provider = error === turn.provider_error;
  if (name === "AbortError" && is_of_provider) return CANCELLED;
  if (name === "ContentFilterError") return ended("incomplete", "content_filter");
  if (code !== undefined && RUN_CODES.has(code)) return failed(code, message);
  if (!is_of_provider) return failed("internal", message);
  const failure = toLLMError(error);
  return failed(providerErrorCode(failure.type), explainedMessage(failure));
}

function ended(status: Outcome["status"], stop_reason: string, error: Outcome["error"] = null): Ending {
  return { status, stop_reason, error };
}

const CANCELLED = ended("cancelled", "cancelled");

function denied(reason: string): Ending {
  return ended("denied", "denied", { code: "denied", message: brief(reason) });
}

function failed(code: string, message: string): Ending {
  return ended("failed", "error", { code, message: brief(message) });
}

/** Returns a message without control characters, shortened to {@link MAX_MESSAGE}. */
function brief(message: string): string {
  const text = sanitizeText(message);
  return text.length <= MAX_MESSAGE ? text : `${text.slice(0, MAX_MESSAGE)}…`;
}

/** Returns the text blocks of the last response when they are the text, else the text as one block. */
function outputOf(turn: Turn, text: string): ContentBlock[] {
  if (text === "") return [];
  const blocks = turn.response?.content.filter((block) => block.type === "text") ?? [];
  return blocks.length > 0 && textOf(blocks) === text
    ? blocks.map((block) => ({ ...block }))
    : toBlocks(text);
}

/** Returns the outcome of a run or turn that an error ended, when the kernel could not decide it. */
export function failedOutcome(error: unknown, code = "internal"): Outcome {
  const message = errorMessage(error);
  return { status: "failed", stop_reason: "error", output_text: "", output: [], error: { code, message } };
}

/** Returns the outcome of a run that was cancelled before it began. */
export function cancelledOutcome(): Outcome {
  return { status: "cancelled", stop_reason: "cancelled", output_text: "", output: [], error: null };
}
