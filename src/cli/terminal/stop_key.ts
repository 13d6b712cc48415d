/**
 * Decides what Ctrl-C does to a run: an answer that the model is writing stops at once, a running tool first
 * ends. Pressed again it stops the tool too, and then ends the process.
 */
import type { Entry } from "../../kernel/host.ts";
import { callKey } from "./progress_lines.ts";

/** What one press does: how to cancel the run, and the line that says so. */
export interface Stop {
  readonly mode: "graceful" | "immediate";
  readonly text: string;
}

const AFTER_THE_TOOL: Stop = {
  mode: "graceful",
  text: "Stopping after this step; press Ctrl-C again to stop at once.",
};
const THE_TOOL: Stop = {
  mode: "immediate",
  text: "Stopping at once; press Ctrl-C again to end the process.",
};
const THE_ANSWER: Stop = {
  mode: "immediate",
  text: "Stopping the answer; press Ctrl-C again to end the process.",
};

/** Events after which a call does not run: it has ended, or waits for a person. */
const ENDS: ReadonlySet<string> = new Set([
  "tool:post",
  "tool:error",
  "approval:required",
  "approval:denied",
]);

/** Follows the tool calls of one run. */
export class StopKey {
  /** Tool calls of the run's own session that run. */
  readonly #calls = new Set<string>();
  #last: Stop | null = null;

  /** Processes the next entry of the run's log. */
  take(entry: Entry): void {
    const { event, verdict, parent_id } = entry;
    if (parent_id !== undefined) return;
    const starts = event === "tool:pre" && verdict?.action !== "deny" || event === "approval:granted";
    if (starts) this.#calls.add(callKey(entry));
    else if (ENDS.has(event)) this.#calls.delete(callKey(entry));
  }

  /** Returns what this press does; null: it ends the process. */
  press(): Stop | null {
    if (this.#last?.mode === "immediate") return null;
    if (this.#last !== null) return this.#last = THE_TOOL;
    return this.#last = this.#calls.size > 0 ? AFTER_THE_TOOL : THE_ANSWER;
  }
}
