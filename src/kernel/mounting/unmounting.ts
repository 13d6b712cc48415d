/** Undoes the mounting of a session's modules: runs their cleanups and stops their guests. */
import { errorMessage } from "../../sdk/errors.ts";
import { isObject } from "../../sdk/json.ts";
import type { Cleanup } from "../../sdk/types.ts";
import { withDeadline } from "../timeouts.ts";
import type { SessionParts } from "../session/session_parts.ts";

/** Result of a session's cleanups: the data of `session:cleanup`. */
export interface CleanupReport {
  readonly ran: number;
  readonly failed: readonly { module_id: string; error: string }[];
}

/** Runs all cleanups in reverse order, each with a timeout; then stops the guests. */
export async function runCleanups(shared: SessionParts): Promise<CleanupReport> {
  const failed: { module_id: string; error: string }[] = [];
  const cleanups = shared.cleanups.splice(0).reverse();
  for (const { module_id, cleanup } of cleanups) {
    try {
      await runCleanup(shared, cleanup);
    } catch (error) {
      failed.push({ module_id, error: errorMessage(error) });
    }
  }
  if (shared.guests.length > 0) await endGuests(shared);
  return { ran: cleanups.length - failed.length, failed };
}

/** Stops all guests of the session concurrently; a guest that cannot be stopped becomes a warning. */
export async function endGuests(shared: SessionParts): Promise<void> {
  const ended = await Promise.allSettled(shared.guests.splice(0).map((end) => end()));
  for (const result of ended) {
    if (result.status === "rejected") {
      shared.session.host.warn("guest_not_ended", errorMessage(result.reason));
    }
  }
}

/** Runs one cleanup with the timeout `cleanup_timeout_s`. */
export async function runCleanup(shared: SessionParts, cleanup: Cleanup): Promise<void> {
  const { host, limits } = shared.session;
  const returned = cleanup();
  if (!isObject(returned) || typeof returned.then !== "function") return;
  await withDeadline(
    Promise.resolve(returned as unknown as PromiseLike<unknown>), // it has a `then`
    limits.cleanup_timeout_s * 1000,
    host.clock,
    () => new Error(`not finished within ${limits.cleanup_timeout_s} s`),
  );
}
