/** A terminal for tests of commands: text in, text out, signals from the test. */
import type { Io, Output } from "../../src/cli/terminal/io.ts";

/** What a fake outside is made of. */
export interface FakeIoOptions {
  env?: Record<string, string>;
  cwd?: URL;
  stdin?: string;
  /** Lines a person types; each is taken when a question waits, `think_ms` after it. */
  lines?: readonly string[];
  /** Milliseconds a person takes for each line. Default 1000. */
  think_ms?: number;
  terminal?: boolean;
}

/** A fake outside, and what happened to it. */
export interface FakeIo extends Io {
  readonly stdout: string;
  readonly stderr: string;
  /** Codes given to `exit`. */
  readonly exits: number[];
  /** As if Ctrl-C were pressed. */
  stop(): void;
}

/** Thrown by `exit`, which never returns. */
export class Exited extends Error {}

/** Returns an outside without a terminal, variables or input. */
export function fakeIo(options: FakeIoOptions = {}): FakeIo {
  const { env = {}, terminal = false, think_ms = 1000 } = options;
  const written = { out: "", err: "" };
  const lines = [...options.lines ?? []];
  const handlers = new Set<() => void>();
  const exits: number[] = [];
  let now_ms = 0;
  const output = (name: "out" | "err"): Output => ({
    terminal,
    color: false,
    columns: () => 80,
    write: (text) => void (written[name] += text),
  });
  return {
    out: output("out"),
    err: output("err"),
    in: {
      terminal,
      text(max_bytes = Infinity) {
        const text = options.stdin ?? "";
        const too_long = new TextEncoder().encode(text).length > max_bytes;
        return too_long
          ? Promise.reject(new RangeError(`it has more than ${max_bytes} bytes`))
          : Promise.resolve(text);
      },
      line(signal) {
        now_ms += think_ms;
        const line = signal.aborted ? undefined : lines.shift();
        if (line !== undefined || signal.aborted) return Promise.resolve(line ?? null);
        return new Promise((resolve) =>
          signal.addEventListener("abort", () => resolve(null), { once: true })
        );
      },
    },
    cwd: options.cwd ?? new URL("../..", import.meta.url),
    env: (name) => env[name],
    variables: () => Object.keys(env),
    monotonic: () => now_ms,
    onStop(handler) {
      handlers.add(handler);
      return () => handlers.delete(handler);
    },
    exit(code) {
      exits.push(code);
      throw new Exited(`exit ${code}`);
    },
    get stdout() {
      return written.out;
    },
    get stderr() {
      return written.err;
    },
    exits,
    stop() {
      for (const handler of [...handlers]) handler();
    },
  };
}
