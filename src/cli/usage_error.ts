/** What the person at the command line must mend. */

/** A command line that cannot be used; `message` says what would do. */
export class UsageError extends Error {
  override readonly name = "UsageError";
  /** Command or group whose help says more, "" for the usage of the program. Default: the command that runs. */
  command?: string;
}
