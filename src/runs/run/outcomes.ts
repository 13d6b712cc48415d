/** Outcomes of runs and turns that the kernel did not decide. */
import type { Outcome } from "../../kernel/session/outcome.ts";
import { errorMessage } from "../../sdk/errors.ts";

/** Returns the outcome of a run or turn that an error ended. */
export function failedOutcome(error: unknown, code = "internal"): Outcome {
  return {
    status: "failed",
    stop_reason: "error",
    output_text: "",
    output: [],
    error: { code, message: errorMessage(error) },
  };
}

/** Returns the outcome of a run that was cancelled before it began. */
export function cancelledOutcome(): Outcome {
  return { status: "cancelled", stop_reason: "cancelled", output_text: "", output: [], error: null };
}

/** Returns the outcome of a run that a crashed process left and that cannot be continued. */
export function interruptedOutcome(error: unknown): Outcome {
  const message = `Cannot continue the run: its process ended: ${errorMessage(error)}`;
  return { ...failedOutcome(error), error: { code: "interrupted", message } };
}
