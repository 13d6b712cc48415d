/** What the person at the command line must mend. */

/** A command line that cannot be used; `message` says what would do. */
export class UsageError extends Error {
  override readonly name = "UsageError";
  /** Command whose help tells more; set by the dispatcher. */
  command?: string;
}
