/** What a run object says of its context: asked of the context manager, else as the kernel measured it. */
import type { Session } from "../../kernel/session/session.ts";
import { isObject } from "../../sdk/json.ts";
import { contextUsageOf, type RunProjection } from "./run_projection.ts";

/**
 * Notes it in the fold. A promise when the context manager runs elsewhere and has to be asked; it never rejects.
 *
 * @param onError Told when it could not be asked.
 */
export function noteContext(
  session: Session,
  fold: RunProjection,
  onError: (error: unknown) => void,
): Promise<void> | undefined {
  const status = session.getCapability("context.status");
  const note = (told: unknown) => {
    if (isObject(told)) fold.context = contextUsageOf(told);
  };
  if (typeof status !== "function") {
    note(session.context_usage);
    return undefined;
  }
  try {
    const told: unknown = status();
    if (told instanceof Promise) return told.then(note, onError);
    note(told);
  } catch (error) {
    onError(error);
    note(session.context_usage);
  }
  return undefined;
}
