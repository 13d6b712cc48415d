/** Exit codes (http.md, Running): what a script learns without reading a word. */
import { ERRORS } from "../sdk/error_codes.ts";
import type { ErrorCode } from "../sdk/errors.ts";
import type { RunStatus } from "../runs/types.ts";

/** Every code a command ends with. */
export const EXIT = {
  done: 0,
  failed: 1,
  usage: 2,
  plan_invalid: 3,
  refused: 4,
  interrupted: 130,
} as const;

/** Returns the exit code for an error's `code`. */
export function exitOfCode(code: string | undefined): number {
  if (code === undefined || !Object.hasOwn(ERRORS, code)) return EXIT.failed;
  return ERRORS[code as ErrorCode].exit ?? EXIT.failed; // an own key of the table
}

/** Returns the exit code for how a run ended (http.md's table). */
export function exitOfStatus(status: RunStatus): number {
  switch (status) {
    case "completed":
      return EXIT.done;
    case "denied":
      return EXIT.refused;
    case "cancelled":
      return EXIT.interrupted;
    default:
      return EXIT.failed;
  }
}
