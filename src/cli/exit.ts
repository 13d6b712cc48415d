/** Exit codes (http.md, Running): what a script learns without reading a word. */
import { STATUS } from "../server/problems.ts";
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

const BY_CODE: Readonly<Record<string, number>> = {
  request_invalid: EXIT.usage,
  plan_invalid: EXIT.plan_invalid,
  plan_limit_exceeded: EXIT.plan_invalid,
  lock_invalid: EXIT.plan_invalid,
  denied: EXIT.refused,
};

/** Returns the exit code for an error's `code`: any that HTTP answers with 403 is a refusal. */
export function exitOfCode(code: string | undefined): number {
  if (code === undefined) return EXIT.failed;
  const status: number | undefined = (STATUS as Readonly<Record<string, number>>)[code];
  return BY_CODE[code] ?? (status === 403 ? EXIT.refused : EXIT.failed);
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
