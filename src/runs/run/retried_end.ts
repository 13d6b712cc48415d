/** Stores the end of a run that the store refused at first, such as on a full disk. */
import { errorMessage } from "../../sdk/errors.ts";
import { ConflictError } from "../../store/store.ts";
import type { Run } from "../types.ts";
import type { RunOptions } from "./run_options.ts";

/** Milliseconds until the first retry; doubled by each one. */
const RETRY_MS = 250;
const MAX_RETRY_MS = 30_000;

/**
 * Calls `store` again until it succeeds, with a growing delay. Resolves to false when this process stops
 * first, after one more call; to true when the end is stored, or another process has the run and will say how
 * it ends.
 *
 * @param run The run object at its end.
 * @param error Why the first call failed.
 */
export async function retryEnd(
  run: Run,
  store: () => Promise<void> | void,
  error: unknown,
  { createOptions, deps: { clock, log }, scheduler: { stopping } }: RunOptions,
): Promise<boolean> {
  const { id: run_id } = run;
  log("error", "run_end_not_stored", { run_id, message: errorMessage(error) });
  if (!(error instanceof ConflictError)) createOptions.endNotStored?.(run);
  for (let delay_ms = RETRY_MS; !(error instanceof ConflictError); delay_ms *= 2) {
    if (stopping.aborted) return false;
    await clock.after(Math.min(delay_ms, MAX_RETRY_MS), stopping).catch(() => {}); // stopping
    try {
      await store();
      log("info", "run_end_stored", { run_id });
      return true;
    } catch (next) {
      error = next;
    }
  }
  return true;
}
