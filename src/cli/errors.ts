/** Errors as a person at a terminal reads them, and the exit code that goes with them. */
import { formatDetail } from "../plan/check/findings.ts";
import { errorCode, type ErrorDetail, errorMessage, type PreampError } from "../sdk/errors.ts";
import { escapeUnprintable } from "../text/escape.ts";
import { EXIT, exitOfCode } from "./exit.ts";
import type { Io } from "./terminal/io.ts";
import { styleOf } from "./terminal/style.ts";
import { UsageError } from "./usage_error.ts";

/** What the document of an error is called where it has details: the file, as it was named on the command line. */
export class DocumentFailure extends Error {
  override readonly name = "DocumentFailure";
  /** The file. */
  readonly file: string;
  /** What is wrong with it. */
  readonly failure: unknown;

  constructor(file: string, failure: unknown) {
    super(errorMessage(failure), { cause: failure });
    this.file = file;
    this.failure = failure;
  }
}

/** Writes what went wrong to stderr and returns the exit code. What is none of our errors shows its stack: it is a bug. */
export function tellFailure(error: unknown, io: Io): number {
  const style = styleOf(io.err);
  const say = (text: string) => io.err.write(`${style.red("error:")} ${escapeUnprintable(text)}\n`);
  if (error instanceof UsageError) {
    for (const line of error.message.split("\n")) say(line);
    io.err.write(`Try: preamp help${error.command ? ` ${error.command}` : ""}\n`);
    return EXIT.usage;
  }
  const failure = error instanceof DocumentFailure ? error.failure : error;
  const code = errorCode(failure);
  if (code === undefined || !Object.hasOwn(failure as object, "details")) {
    say(
      failure instanceof Error && code === undefined
        ? failure.stack ?? failure.message
        : errorMessage(failure),
    );
    return EXIT.failed;
  }
  const { details, message } = failure as PreampError; // an error of ours, whichever copy of the class made it
  if (details.length === 0) say(message);
  const file = error instanceof DocumentFailure ? error.file : undefined;
  for (const detail of details) say(detailText(detail, file));
  return exitOfCode(code);
}

/** What the request asks for (`--limit`) stands in no file. */
function detailText(detail: ErrorDetail, file: string | undefined): string {
  const in_file = file !== undefined && !detail.path.startsWith("request.");
  return in_file ? formatDetail(detail, file) : formatDetail({ ...detail, path: "" }, detail.path);
}
