/**
 * The environment of a command: streams, variables, signals. Tests pass their own; `systemIo` is the
 * process's.
 */
import { readVariable, variableNames } from "../../process/environment.ts";
import { type Environment, fileUrl } from "../../settings/paths.ts";

/** An output stream. */
export interface Output {
  /** Whether it is a terminal. */
  readonly terminal: boolean;
  /** Whether to use colours; false with `NO_COLOR` or `TERM=dumb`. */
  readonly color: boolean;
  /** Returns the width in columns; 80 if it is unknown. */
  columns(): number;
  /** Writes text unchanged. A closed pipe is not an error, and neither is any failure of stderr. */
  write(text: string): void;
}

/** The input stream. */
export interface Input {
  readonly terminal: boolean;
  /**
   * Resolves to the whole input. Reads no more than a part beyond `max_bytes`, by default all.
   *
   * @throws {TypeError} if it is not UTF-8. @throws {RangeError} if it has more than `max_bytes`.
   */
  text(max_bytes?: number): Promise<string>;
  /** Resolves to the next line without its end; null at the end of input, or when `signal` aborts. */
  line(signal: AbortSignal): Promise<string | null>;
}

/** The environment of a command. */
export interface Io extends Environment {
  readonly out: Output;
  readonly err: Output;
  readonly in: Input;
  /** Returns the names of the variables that are set; null if this process may not list them. */
  variables(): string[] | null;
  /** Returns monotonic milliseconds. */
  monotonic(): number;
  /** Calls `handler` on SIGINT and SIGTERM until the returned function is called. */
  onStop(handler: () => void): () => void;
  /** Ends the process at once. */
  exit(code: number): never;
}

/** Returns the environment of this process. */
export function systemIo(): Io {
  return {
    out: systemOutput(Deno.stdout),
    err: systemOutput(Deno.stderr),
    in: systemInput(),
    cwd: fileUrl(`${Deno.cwd()}/`),
    env: readVariable,
    variables: variableNames,
    monotonic: () => performance.now(),
    onStop,
    exit: (code) => Deno.exit(code),
  };
}

const encoder = new TextEncoder();
/** Milliseconds between two attempts to write to a full pipe. */
const RETRY_MS = 5;
/** Attempts to write to stderr: a reader that does not read loses lines, and does not hold up the program. */
const STDERR_TRIES = 200;
const WAITING = new Int32Array(new SharedArrayBuffer(4));

function systemOutput(stream: typeof Deno.stdout): Output {
  const terminal = stream.isTerminal();
  return {
    terminal,
    color: terminal && !Deno.noColor && readVariable("TERM") !== "dumb",
    columns() {
      try {
        return terminal ? Deno.consoleSize().columns || 80 : 80;
      } catch {
        return 80; // the size of the terminal is unknown
      }
    },
    write(text) {
      const bytes = encoder.encode(text);
      let tries = 0;
      for (let written = 0; written < bytes.length;) {
        try {
          written += stream.writeSync(bytes.subarray(written));
        } catch (error) {
          if (error instanceof Deno.errors.BrokenPipe) return; // `preamp … | head`
          const is_full = error instanceof Deno.errors.WouldBlock;
          // there is no other output for an error of stderr
          if (stream === Deno.stderr && (!is_full || ++tries >= STDERR_TRIES)) return;
          if (!is_full) throw error;
          Atomics.wait(WAITING, 0, 0, RETRY_MS); // a pipe that another process made non-blocking is full
        }
      }
    },
  };
}

function systemInput(): Input {
  const decoder = new TextDecoder();
  let buffered = "";
  let reading: Promise<string | null> | undefined;

  /**
   * Reads one chunk. Calls share a pending read: input that an aborted question did not consume is for the
   * next one.
   */
  function read(): Promise<string | null> {
    reading ??= (async () => {
      const chunk = new Uint8Array(4096);
      const count = await Deno.stdin.read(chunk);
      reading = undefined;
      return count === null ? null : decoder.decode(chunk.subarray(0, count), { stream: true });
    })();
    return reading;
  }

  return {
    terminal: Deno.stdin.isTerminal(),
    async text(max_bytes = Infinity) {
      const parts: Uint8Array<ArrayBuffer>[] = [];
      let size = 0;
      for await (const part of Deno.stdin.readable) {
        parts.push(part);
        size += part.length;
        if (size > max_bytes) throw new RangeError(`it has more than ${max_bytes} bytes`);
      }
      return new TextDecoder("utf-8", { fatal: true }).decode(await new Blob(parts).arrayBuffer());
    },
    async line(signal) {
      const stopped = new Promise<null>((resolve) => {
        if (signal.aborted) resolve(null);
        signal.addEventListener("abort", () => resolve(null), { once: true });
      });
      while (!buffered.includes("\n")) {
        const text = await Promise.race([stopped, read()]);
        if (text === null) return null;
        buffered += text;
      }
      const end = buffered.indexOf("\n");
      const line = buffered.slice(0, end).replace(/\r$/, "");
      buffered = buffered.slice(end + 1);
      return line;
    },
  };
}

/** Windows has no SIGTERM and sends SIGBREAK for Ctrl-Break. */
const SIGNALS: readonly Deno.Signal[] = Deno.build.os === "windows"
  ? ["SIGINT", "SIGBREAK"]
  : ["SIGINT", "SIGTERM"];

function onStop(handler: () => void): () => void {
  for (const signal of SIGNALS) Deno.addSignalListener(signal, handler);
  return () => {
    for (const signal of SIGNALS) Deno.removeSignalListener(signal, handler);
  };
}
