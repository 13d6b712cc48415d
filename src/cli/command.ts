/** The interface of a command. Each command has its own file in `commands/`. */
import type { Arguments, Flag } from "./arguments.ts";
import type { Io } from "./terminal/io.ts";
import type { Caller } from "../runs/types.ts";

/** A command of `preamp`. */
export interface Command {
  /** Usage without the word `preamp`, such as `plan check <file>…`. */
  readonly usage: string;
  /** One sentence. */
  readonly summary: string;
  readonly flags: readonly Flag[];
  /** Returns the paragraphs below the flags; called by `help` only. */
  readonly details?: () => string | Promise<string>;
  /** Runs the command and resolves to the exit code. Throws `UsageError` or `PreampError` for the user's mistakes. */
  run(args: Arguments, io: Io): Promise<number>;
}

/** The caller of a command: plans named on the command line are an operator's (src/docs/security.md#who-is-trusted). */
export const TERMINAL: Caller = { name: "terminal", namespace: "local", origin: "operator" };
