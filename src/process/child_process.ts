/**
 * Starts child processes of this program and exchanges frames with them: the bundler, the validator and
 * sandboxed modules. A child has no environment variables except the given ones, and is killed together
 * with its process group.
 */
import { readVariable } from "./environment.ts";
import { type Frame, FrameReader } from "./frames.ts";
import { type Program, type SystemLimits, withLimits } from "./system_limits.ts";
import { processorTimeOf, withinOwnTime } from "./own_time.ts";
import { within } from "./system_clock.ts";
import type { PermissionKind } from "../sdk/plan.ts";

/** Options of a {@link Child}. */
export interface ChildOptions extends Program {
  readonly env: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** Limits of the operating system. Default: none. */
  readonly limits?: SystemLimits;
  /**
   * Whether the child leads a process group, which is killed with it. Default false; for children that may
   * start processes.
   */
  readonly group?: boolean;
  /** Which part of a long stderr is kept. Default `end`, where a runtime writes why it exited. */
  readonly keep_stderr?: "start" | "end";
  /** Returns the most bytes of the next frame. */
  readonly limit: () => number;
}

/** Characters of stderr that are kept. */
const MAX_STDERR = 64 * 1024;
/**
 * Milliseconds to wait for the last output of a child that has exited: a process that it started may keep its
 * pipes open.
 */
const DRAIN_MS = 200;

/** A child process, started by the constructor. @throws {Error} if this host cannot start it. */
export class Child {
  /** Resolves when it has exited. */
  readonly status: Promise<Deno.CommandStatus>;
  readonly #process: Deno.ChildProcess;
  readonly #group: boolean;
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>;
  readonly #reader: ReadableStreamBYOBReader;
  readonly #frames: FrameReader;
  readonly #stderr_reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #stderr_end: Promise<void>;
  #stderr = "";

  constructor(
    { command, args, env, cwd, limits, group = false, keep_stderr = "end", limit }: ChildOptions,
  ) {
    const started = limits
      ? withLimits({ command, args }, limits, group)
      : { command, args, detached: group };
    this.#process = new Deno.Command(started.command, {
      args: [...started.args],
      ...(cwd === undefined ? {} : { cwd }),
      env,
      clearEnv: true,
      detached: started.detached,
      stdin: "piped",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
    this.#group = group;
    this.#writer = this.#process.stdin.getWriter();
    this.#writer.closed.catch(() => {}); // failed writes and the exit status report it
    this.#reader = this.#process.stdout.getReader({ mode: "byob" });
    this.#frames = new FrameReader(async (buffer) => {
      const { value, done } = await this.#reader.read(buffer);
      return done ? null : value;
    }, limit);
    this.#stderr_reader = this.#process.stderr.getReader();
    this.#stderr_end = this.#collectStderr(keep_stderr);
    this.status = this.#process.status.then((status) => {
      if (group) this.#signal(-this.#process.pid); // processes that it started
      return status;
    });
  }

  /** What it wrote to stderr, at most 64 Ki characters. */
  get stderr(): string {
    return this.#stderr;
  }

  /** Writes bytes, such as frames. Rejects if the child has closed its input. */
  async write(bytes: Uint8Array): Promise<void> {
    await this.#writer.write(bytes);
  }

  /** Closes its input. The children of this program then exit. */
  async end(): Promise<void> {
    await this.#writer.close();
  }

  /** Resolves to the next frame; null at the end of its output. Throws as {@link FrameReader.next}. */
  async next(): Promise<Frame | null> {
    return await this.#frames.next();
  }

  /**
   * Waits for work of the child for at most `ms` milliseconds of its own time, see {@link withinOwnTime}.
   *
   * @throws {LateError} after that time.
   */
  async within<T>(ms: number, work: Promise<T>): Promise<T> {
    return await withinOwnTime(ms, work, () => processorTimeOf(this.#process.pid));
  }

  /** Lets the child keep this process alive, which it does at first. */
  ref(): void {
    try {
      this.#process.ref();
    } catch {
      // it has exited
    }
  }

  /** Lets this process end while the child runs. */
  unref(): void {
    this.#process.unref();
  }

  /** Kills the child and its group without waiting. */
  kill(): void {
    if (this.#group) this.#signal(-this.#process.pid);
    this.#signal(this.#process.pid);
  }

  /**
   * Kills the child, waits for its exit and closes its pipes.
   *
   * @param reading Work on its output, which may take what the child wrote before its exit.
   */
  async close(reading?: Promise<void>): Promise<Deno.CommandStatus> {
    this.ref();
    this.kill();
    const status = await this.status;
    await within(DRAIN_MS, Promise.all([reading, this.#stderr_end])).catch(() => {}); // what is left is dropped
    await this.#writer.abort().catch(() => {}); // the other end is closed
    await this.#reader.cancel().catch(() => {});
    await this.#stderr_reader.cancel().catch(() => {});
    return status;
  }

  #signal(pid: number): void {
    try {
      Deno.kill(pid, "SIGKILL");
    } catch {
      // no such process is left
    }
  }

  async #collectStderr(keep: "start" | "end"): Promise<void> {
    const decoder = new TextDecoder();
    try {
      for (;;) {
        const { value, done } = await this.#stderr_reader.read();
        if (done) return;
        const text = this.#stderr + decoder.decode(value, { stream: true });
        this.#stderr = keep === "end" ? text.slice(-MAX_STDERR) : text.slice(0, MAX_STDERR);
      }
    } catch {
      // the child has exited
    }
  }
}

/** Role of a child process. */
interface ChildRole {
  /** Second argument of the compiled program, after `child`. */
  readonly name: "bundle" | "guest" | "validate";
  /** URL of the first file under `deno run`. */
  readonly entry: string;
  /** Permissions under `deno run`. The compiled program has all of them, and its children revoke them. */
  readonly allow?: readonly PermissionKind[];
  /** Further flags of `deno run`. */
  readonly flags?: readonly string[];
}

/**
 * V8 flags, which the compiled program contains: no code from strings, no optimising compiler for
 * WebAssembly.
 */
const V8_FLAGS = "--v8-flags=--disallow-code-generation-from-strings,--liftoff-only";

/** Variables by which Deno finds its cache. */
const CACHE_VARIABLES = ["DENO_DIR", "HOME", "XDG_CACHE_HOME", "LOCALAPPDATA", "USERPROFILE", "SystemRoot"];

/**
 * Returns the command of this program in a role: the compiled program, or `deno run` with the role's first
 * file.
 */
export function ownProgram({ name, entry, allow = [], flags = [] }: ChildRole): Program {
  const command = Deno.execPath();
  if (Deno.build.standalone) return { command, args: ["child", name] };
  const permissions = allow.map((kind) => `--allow-${kind}`);
  return {
    command,
    args: ["run", "--quiet", "--no-prompt", "--cached-only", ...flags, V8_FLAGS, ...permissions, entry],
  };
}

/** Returns the environment of a child: empty for the compiled program, else the location of Deno's cache. */
export function ownEnv(): Record<string, string> {
  const env: Record<string, string> = {};
  if (Deno.build.standalone) return env;
  for (const name of CACHE_VARIABLES) {
    const value = readVariable(name);
    if (value !== undefined) env[name] = value;
  }
  return env;
}
