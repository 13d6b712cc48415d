/** Prints errors for a person at a terminal, and maps errors and run statuses to exit codes. */
import {
  type ErrorCode,
  errorCode,
  type ErrorDetail,
  errorMessage,
  ERRORS,
  type PreampError,
} from "../sdk/errors.ts";
import type { RunStatus } from "../runs/types.ts";
import { formatDetail } from "../plan/check/findings.ts";
import { escapeUnprintable } from "../text/escape.ts";
import type { Io } from "./terminal/io.ts";
import { styleOf } from "./terminal/format.ts";
import { DocumentFailure, UsageError } from "../settings/errors.ts";

/** The exit codes of all commands. */
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

/** Returns the exit code for the status of an ended run (src/docs/http.md#the-run-object). */
export function exitOfStatus(status: RunStatus): number {
  const exits: Partial<Record<RunStatus, number>> = {
    completed: EXIT.done,
    denied: EXIT.refused,
    cancelled: EXIT.interrupted,
  };
  return exits[status] ?? EXIT.failed;
}

/**
 * Resolves to the result of work on a document. @throws {DocumentFailure} for its error; `file` is the
 * document.
 */
export async function inDocument<T>(file: string, result: Promise<T>): Promise<T> {
  try {
    return await result;
  } catch (error) {
    throw new DocumentFailure(file, error);
  }
}

/**
 * Prints an error and returns the exit code. Errors other than PreampError and UsageError are bugs: their
 * stack is printed.
 */
export function reportError(error: unknown, io: Io): number {
  const style = styleOf(io.err);
  const print = (text: string) => io.err.write(`${style.red("error:")} ${escapeUnprintable(text)}\n`);
  if (error instanceof UsageError) {
    for (const line of error.message.split("\n")) print(line);
    io.err.write(`Try: preamp help${error.command ? ` ${error.command}` : ""}\n`);
    return EXIT.usage;
  }
  const failure = error instanceof DocumentFailure ? error.failure : error;
  const code = errorCode(failure);
  if (code === undefined || !Object.hasOwn(failure as object, "details")) {
    const is_bug = failure instanceof Error && code === undefined;
    print(is_bug ? failure.stack ?? failure.message : errorMessage(failure));
    return EXIT.failed;
  }
  const { details, message } = failure as PreampError; // identified by its code: a bundle has its own copy of the class
  if (details.length === 0) print(message);
  const file = error instanceof DocumentFailure ? error.file : undefined;
  for (const detail of details) print(detailText(detail, file));
  return exitOfCode(code);
}

/** Formats a detail. Details about the request, such as `--limit`, have no file. */
function detailText(detail: ErrorDetail, file: string | undefined): string {
  const in_file = file !== undefined && !detail.path.startsWith("request.");
  return in_file ? formatDetail(detail, file) : formatDetail({ ...detail, path: "" }, detail.path);
}
