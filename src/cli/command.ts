/** What a command is: how it is used, and what it does. Each has a file of its own. */
import type { Arguments, Flag } from "./arguments.ts";
import type { Io } from "./terminal/io.ts";

/** A command of `preamp`. */
export interface Command {
  /** What follows `preamp`, such as `plan check <file>…`. */
  readonly usage: string;
  /** One sentence. */
  readonly summary: string;
  readonly flags: readonly Flag[];
  /** Paragraphs below the flags; asked for by `help` alone. */
  readonly details?: () => string | Promise<string>;
  /** Does it; resolves to the exit code. Throws `UsageError` or `PreampError` for what the user must mend. */
  run(args: Arguments, io: Io): Promise<number>;
}
