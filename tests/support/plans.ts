/** A valid plan, and the error of a refused one with its details. */
import { assert } from "../assert.ts";
import { type ErrorDetail, PreampError } from "../../src/sdk/errors.ts";

/** Calls a function that must reject, and returns the error. */
export async function refusal(run: () => unknown): Promise<PreampError> {
  try {
    await run();
  } catch (error) {
    assert(error instanceof PreampError, `Expected a PreampError: received ${error}`);
    return error;
  }
  throw new Error("Expected a refusal");
}

/** Returns the detail at a path. */
export function detailAt(error: PreampError, path: string): ErrorDetail {
  const found = error.details.find((detail) => detail.path === path);
  assert(found, `No detail at "${path}" in ${JSON.stringify(error.details.map((detail) => detail.path))}`);
  return found;
}

/** A plan without findings. */
export const GOOD = {
  session: { orchestrator: "loop-streaming", context: "context-simple" },
  providers: ["provider-mock"],
};
