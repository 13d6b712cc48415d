/** Failures as sentences for the user. */
import { PreampApiError } from "preamp/client";

/** Returns what failed, and what to do where the server says it. */
export function sentenceOf(error: unknown): string {
  if (error instanceof PreampApiError) {
    const [first] = error.details;
    const hint = typeof first?.hint === "string" ? `. ${first.hint}` : "";
    return `${error.message}${hint}`;
  }
  return error instanceof TypeError ? "The server cannot be reached" : String(error);
}
