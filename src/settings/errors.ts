/** Errors of what a person has written for this program: a command line, variables, a document. */
import { errorMessage } from "../sdk/errors.ts";

/** Thrown for a command line, a variable or a file that cannot be used; `message` says how to correct it. */
export class UsageError extends Error {
  override readonly name = "UsageError";
  /** Command or group to show help for; "" for the usage of the program. Default: the command that runs. */
  command?: string;
}

/** Thrown when a document is invalid: adds the file, as the person named it, to an error. */
export class DocumentFailure extends Error {
  override readonly name = "DocumentFailure";
  readonly file: string;
  /** The error in the document. */
  readonly failure: unknown;

  constructor(file: string, failure: unknown) {
    super(errorMessage(failure), { cause: failure });
    this.file = file;
    this.failure = failure;
  }
}
