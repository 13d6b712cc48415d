/** How a turn ended: from what happened, never from the returned text (http.md, Runs, the table). */
import { errorCode, errorMessage, errorName, providerErrorCode, toLLMError } from "../../sdk/errors.ts";
import { textOf, toBlocks } from "../../sdk/messages.ts";
import { sanitizeText } from "../../sdk/tools.ts";
import type { ContentBlock } from "../../sdk/types.ts";
import type { SessionContext } from "./session_context.ts";
import { limitOf } from "../guards/tool.ts";
import type { Turn } from "./turn_state.ts";

/** How a turn ended. */
export interface Outcome {
  status: "completed" | "incomplete" | "denied" | "cancelled" | "failed";
  stop_reason: string;
  output_text: string;
  output: ContentBlock[];
  error: { code: string; message: string } | null;
}

/** Codes that a run's `error` may carry besides those of providers (http.md, Problems). */
const RUN_CODES: ReadonlySet<string> = new Set([
  "provider_rate_limited",
  "provider_overloaded",
  "provider_timeout",
  "provider_bad_response",
  "provider_auth",
  "context_overflow",
  "denied",
  "interrupted",
  "internal",
]);

/** Characters of a message on a run: under 2 KiB of UTF-8 unless it is mostly not Latin. */
const MAX_MESSAGE = 1_800;

/** What `execute` came to: the text it returned, or what it threw. */
export type Returned = { text: string } | { error: unknown };

/** Returns the outcome of a turn. */
export function outcomeOf(session: SessionContext, turn: Turn, returned: Returned): Outcome {
  const text = "text" in returned ? returned.text : "";
  const ended = (
    status: Outcome["status"],
    stop_reason: string,
    error: Outcome["error"] = null,
  ): Outcome => ({
    status,
    stop_reason,
    output_text: text,
    output: outputOf(turn, text),
    error,
  });
  const limit = ("error" in returned ? limitOf(returned.error) : null) ?? turn.limit;
  if (limit !== null) return ended("incomplete", `limit:${limit}`);
  if ("error" in returned) return failed(session, turn, returned.error, ended);
  if (turn.denied !== null) return ended("denied", "denied", { code: "denied", message: brief(turn.denied) });
  if (turn.completed === "cancelled" || (session.cancellation.is_immediate && turn.completed !== "success")) {
    return ended("cancelled", "cancelled");
  }
  if (turn.max_reached) return ended("incomplete", "limit:max_iterations");
  if (turn.completed === "error") {
    return ended("failed", "error", { code: "internal", message: "The orchestrator reported an error" });
  }
  const cut = cutBy(turn);
  if (cut) return ended("incomplete", cut);
  if (turn.completed === "incomplete") {
    const wanted_more = (turn.response?.tool_calls?.length ?? 0) > 0;
    return ended("incomplete", wanted_more ? "limit:max_iterations" : "empty_response");
  }
  if (turn.completed === null && text === "") return ended("incomplete", "empty_response");
  return ended("completed", "end_turn");
}

function failed(
  session: SessionContext,
  turn: Turn,
  error: unknown,
  ended: (status: Outcome["status"], stop_reason: string, error?: Outcome["error"]) => Outcome,
): Outcome {
  const code = errorCode(error);
  const name = errorName(error);
  if (code === "denied") {
    return ended("denied", "denied", { code: "denied", message: brief(errorMessage(error)) });
  }
  if (session.cancellation.is_cancelled && (code === "cancelled" || name === "AbortError")) {
    return ended("cancelled", "cancelled");
  }
  if (name === "AbortError" && error === turn.provider_error) return ended("cancelled", "cancelled");
  if (name === "ContentFilterError") return ended("incomplete", "content_filter");
  const message = brief(errorMessage(error));
  if (code !== undefined && RUN_CODES.has(code)) return ended("failed", "error", { code, message });
  if (error === turn.provider_error) {
    return ended("failed", "error", { code: providerErrorCode(toLLMError(error).type), message });
  }
  return ended("failed", "error", { code: "internal", message });
}

/** A message as it may stand on a run: printable, at most 2 KiB (http.md, Problems). */
function brief(message: string): string {
  const text = sanitizeText(message);
  return text.length <= MAX_MESSAGE ? text : `${text.slice(0, MAX_MESSAGE)}…`;
}

function cutBy(turn: Turn): string | null {
  switch (turn.response?.finish_reason) {
    case "length":
    case "max_tokens":
    case "max_output_tokens":
      return "max_output_tokens";
    case "content_filter":
      return "content_filter";
    default:
      return null;
  }
}

/** The blocks of the answer: those of the last response when the text is theirs, else the text. */
function outputOf(turn: Turn, text: string): ContentBlock[] {
  if (text === "") return [];
  const blocks = turn.response?.content.filter((block) => block.type === "text") ?? [];
  return blocks.length > 0 && textOf(blocks) === text
    ? blocks.map((block) => ({ ...block }))
    : toBlocks(text);
}
