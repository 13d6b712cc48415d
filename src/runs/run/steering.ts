/** Steering messages: text that the loop of an active run adds at its next model call. */
import { PreampError } from "../../sdk/errors.ts";
import type { ActiveRun } from "./run.ts";

/**
 * Sends a steering message to the loop of a run. @throws {PreampError} `run_ended`, `not_steerable`,
 * `request_invalid` for blank text, `overloaded`.
 */
export async function steer({ ended, session, projection }: ActiveRun, text: string): Promise<void> {
  if (ended) throw new PreampError("run_ended", "Cannot steer the run: it is ending or has ended");
  const send = session.getCapability("session.steer");
  const queued = projection.status === "queued";
  if (queued || typeof send !== "function") {
    const fact = queued
      ? "it waits for its session and has not started"
      : "its orchestrator does not support steering; use loop-streaming";
    throw new PreampError("not_steerable", `Cannot steer the run: ${fact}`);
  }
  await send(text); // a promise if the loop is sandboxed
}
