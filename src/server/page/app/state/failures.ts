/** Failures as sentences for the user. */
import { PreampApiError } from "preamp/client";

/** Returns what failed, and what to do where the server says it. */
export function sentenceOf(error: unknown): string {
  if (error instanceof PreampApiError) {
    const [first] = error.details;
    const hint = typeof first?.hint === "string" ? ` (${first.hint})` : "";
    return `${error.message}${hint}`;
  }
  if (error instanceof TypeError) return "The server cannot be reached";
  return error instanceof Error ? error.message : String(error);
}
