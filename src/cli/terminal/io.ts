/** All that a command is given from outside: streams, variables, signals. Tests give their own; nothing here knows a command. */

/** A stream that a command writes to. */
export interface Output {
  /** Whether a person looks at it. */
  readonly terminal: boolean;
  /** Whether colours are wanted (`NO_COLOR`, `TERM=dumb`: no). */
  readonly color: boolean;
  /** Width in columns; 80 when nobody knows. */
  columns(): number;
  /** Writes text as it is. A reader that is gone is no error. */
  write(text: string): void;
}

/** Where a command reads from. */
export interface Input {
  readonly terminal: boolean;
  /** Resolves to everything, to the end. @throws {TypeError} when it is not UTF-8. */
  text(): Promise<string>;
  /** Resolves to the next line without its end; null at the end of input, or when `signal` aborts. */
  line(signal: AbortSignal): Promise<string | null>;
}

/** The outside of a command. */
export interface Io {
  readonly out: Output;
  readonly err: Output;
  readonly in: Input;
  /** URL of the working directory, with a slash at the end. */
  readonly cwd: URL;
  env(name: string): string | undefined;
  /** Names of the variables that are set. */
  variables(): string[];
  /** Milliseconds that never go backwards. */
  monotonic(): number;
  /** Calls back on SIGINT and SIGTERM, until the returned function is called. */
  onStop(handler: () => void): () => void;
  /** Ends the process now. */
  exit(code: number): never;
}
