/**
 * Runs the bundler in a child process, which starts on demand and stops after a minute without work. A failure or timeout stops it at
 * once, because a failed esbuild fails on every later source. It serves one request at a time, so that the failing source is known;
 * that source is then refused for a while.
 */
import { PreampError } from "../../sdk/errors.ts";
import { type ChildAnswer, type ChildTask, READY_ID } from "./bundler_messages.ts";
import { BundlerQueue } from "./bundler_queue.ts";
import { type BundlerFailure, FailedSources, problemOfFailure } from "./failed_sources.ts";
import { encodeFrame, type Frame, FrameReader } from "./frames.ts";
import type {
  BundleAnswer,
  Bundler,
  BundlerClient,
  BundleRequest,
  BundlerFile,
  ImportsOptions,
} from "../types.ts";

/** Options of {@link createBundlerProcess}. */
export interface BundlerProcessOptions {
  /** Timeout of one bundle in milliseconds. Default 10 s. */
  deadline_ms?: number;
  /** Milliseconds until an unused child is stopped. Default 60 s. */
  idle_ms?: number;
  /** Returns the command to start. Default: {@link bundlerCommand}. */
  command?: () => ChildCommand;
}

/** A command with its arguments and environment. */
export interface ChildCommand {
  command: string;
  args: readonly string[];
  env: Record<string, string>;
}

/** Arguments of the compiled program in this role. */
export const BUNDLER_ROLE: readonly [string, string] = ["child", "bundle"];

/** Most bytes of one answer: a bundle and its source map, each about as long as the files. */
const MAX_ANSWER_BYTES = 192 * 1024 * 1024;

/** Milliseconds until a started child must be ready; esbuild takes about half a second. */
const START_MS = 10_000;

/** V8 flags of the compiled program, for children that run from source. */
export const V8_FLAGS = "--v8-flags=--disallow-code-generation-from-strings,--liftoff-only";

/**
 * Returns the command of the bundler: the compiled program in this role, or `deno run` with its first file. It has no permissions and
 * no environment except the location of Deno's cache.
 */
export function bundlerCommand(): ChildCommand {
  const command = Deno.execPath();
  if (Deno.build.standalone) return { command, args: [...BUNDLER_ROLE], env: {} };
  const entry = new URL("./bundler_source.js", import.meta.url).href;
  return {
    command,
    args: ["run", "--quiet", "--no-prompt", "--cached-only", V8_FLAGS, entry],
    env: cacheEnv(),
  };
}

/** Returns the environment variables by which Deno finds its cache, for children that run from source. */
export function cacheEnv(): Record<string, string> {
  const env: Record<string, string> = {};
  for (const name of ["DENO_DIR", "HOME", "XDG_CACHE_HOME", "LOCALAPPDATA", "USERPROFILE", "SystemRoot"]) {
    try {
      const value = Deno.env.get(name);
      if (value !== undefined) env[name] = value;
    } catch {
      // not readable: not passed on
    }
  }
  return env;
}

/** Creates a bundler in a child process, which starts with the first request. */
export function createBundlerProcess(options: BundlerProcessOptions = {}): Bundler {
  return new BundlerProcess(options);
}

class BundlerProcess implements Bundler {
  readonly #deadline_ms: number;
  readonly #idle_ms: number;
  readonly #command: () => ChildCommand;
  readonly #queue = new BundlerQueue(() => this.#scheduleIdleStop());
  readonly #failed = new FailedSources();
  #child: Child | undefined;
  #idle: ReturnType<typeof setTimeout> | undefined;
  #closed = false;

  constructor({ deadline_ms = 10_000, idle_ms = 60_000, command = bundlerCommand }: BundlerProcessOptions) {
    this.#deadline_ms = deadline_ms;
    this.#idle_ms = idle_ms;
    this.#command = command;
  }

  prepare(): void {
    if (this.#closed) return;
    try {
      this.#start();
      if (this.#queue.idle) this.#scheduleIdleStop();
    } catch {
      // reported by the next request
    }
  }

  async bundle({ files, ...request }: BundleRequest, { name, owner }: BundlerClient): Promise<BundleAnswer> {
    return await this.#queue.add({ owner, short: false }, async () => {
      const { answer, body } = await this.#request({ kind: "bundle", request }, files, name);
      const bundled = answer as BundleAnswer; // the answer to this kind of request
      return bundled.kind === "bundle" ? { ...bundled, code: new TextDecoder().decode(body) } : bundled;
    });
  }

  async imports(
    file: BundlerFile,
    options: ImportsOptions,
    { name, owner }: BundlerClient,
  ): Promise<readonly string[]> {
    return await this.#queue.add({ owner, short: true }, async () => {
      const { answer } = await this.#request({ kind: "imports", ...options }, [file], name);
      return answer.kind === "imports" ? answer.urls : [];
    });
  }

  async #request(task: ChildTask, files: readonly BundlerFile[], name: string): Promise<ChildReply> {
    clearTimeout(this.#idle);
    this.#failed.check(files, name);
    for (let attempt = 1;; attempt++) {
      const child = this.#start();
      const { used } = child;
      try {
        const reply = await child.request(task, files, this.#deadline_ms);
        if (reply.answer.kind !== "failed") return reply;
        await this.#stop(child);
        throw this.#failed.add(files, name, problemOfFailure(reply.answer.message));
      } catch (error) {
        if (error instanceof PreampError) throw error;
        await this.#stop(child);
        if (this.#closed) throw cannotBundle(name, "the server is closing");
        // a child that does not get ready is a problem of the host; a used one may have been killed, or be full of earlier work:
        // the source is not at fault, so try once more
        if ((used || !child.ready) && attempt === 1 && !(error instanceof BundlerTimeout && child.ready)) {
          continue;
        }
        if (!child.ready) throw cannotBundle(name, "the bundler did not start", error);
        throw this.#failed.add(
          files,
          name,
          error instanceof BundlerTimeout ? timeoutProblem(this.#deadline_ms) : PROCESS_ENDED,
        );
      }
    }
  }

  #start(): Child {
    if (this.#closed) throw cannotBundle("a module", "the server is closing");
    this.#child ??= startChild(this.#command());
    return this.#child;
  }

  #scheduleIdleStop(): void {
    clearTimeout(this.#idle);
    if (this.#closed) return;
    const idle = setTimeout(() => {
      if (this.#queue.idle && this.#child) void this.#stop(this.#child);
    }, this.#idle_ms);
    Deno.unrefTimer(idle); // does not keep the process alive
    this.#idle = idle;
  }

  async #stop(child: Child): Promise<void> {
    if (this.#child === child) this.#child = undefined;
    await child.kill();
    if (this.#queue.idle) return;
    this.prepare(); // for waiting requests
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#idle);
    const child = this.#child;
    if (child) await this.#stop(child);
    await this.#queue.done();
  }
}

class BundlerTimeout extends Error {}

const PROCESS_ENDED: BundlerFailure = {
  code: "module_load_failed",
  fact: "the bundler exited while it worked on it",
};

interface ChildReply {
  readonly answer: ChildAnswer;
  readonly body: Uint8Array;
}

class Child {
  /** Whether it has answered a request. */
  used = false;
  /** Whether esbuild is ready. Requests for imports do not need it. */
  ready = false;
  readonly #process: Deno.ChildProcess;
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #frames: FrameReader;
  #last_id = READY_ID;

  constructor(process: Deno.ChildProcess) {
    this.#process = process;
    this.#writer = process.stdin.getWriter();
    this.#writer.closed.catch(() => {}); // failed writes report the error
    this.#reader = process.stdout.getReader();
    this.#frames = new FrameReader(async () => (await this.#reader.read()).value ?? null, MAX_ANSWER_BYTES);
  }

  /** Sends one request; resolves to the answer. The timeout starts when the child is ready, if the request needs that. */
  async request(
    task: ChildTask,
    files: readonly BundlerFile[],
    deadline_ms: number,
  ): Promise<ChildReply> {
    if (!this.ready && task.kind === "bundle") await this.#within(START_MS, this.#receive(READY_ID));
    const id = ++this.#last_id;
    const listed = files.map(({ url, sha256, bytes }) => ({ url, sha256, length: bytes.length }));
    const message = encodeFrame({ ...task, id, files: listed }, files.map(({ bytes }) => bytes));
    const [, { header, body }] = await this.#within(
      this.ready ? deadline_ms : deadline_ms + START_MS,
      Promise.all([this.#writer.write(message), this.#receive(id)]),
    );
    this.used = true;
    return { answer: header.answer as ChildAnswer, body }; // written by our own program
  }

  async #receive(id: number): Promise<Frame> {
    for (;;) {
      const frame = await this.#frames.next();
      if (!frame) throw new Error("the bundler closed its output");
      if (frame.header.id === READY_ID) this.ready = true;
      if (frame.header.id === id) return frame;
      if (frame.header.id !== READY_ID) throw new Error("the bundler answered another request");
    }
  }

  async #within<T>(ms: number, answered: Promise<T>): Promise<T> {
    answered.catch(() => {}); // not awaited after a timeout
    this.#process.ref(); // keeps the process alive until the answer
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new BundlerTimeout("not done in time")), ms);
    });
    try {
      return await Promise.race([answered, late]);
    } finally {
      clearTimeout(timer);
      this.#process.unref();
    }
  }

  async kill(): Promise<void> {
    this.#process.ref();
    try {
      this.#process.kill("SIGKILL");
    } catch {
      // it has exited already
    }
    await this.#process.status;
    await this.#writer.abort().catch(() => {}); // the other end is closed
    await this.#reader.cancel().catch(() => {});
  }
}

function startChild({ command, args, env }: ChildCommand): Child {
  try {
    const process = new Deno.Command(command, {
      args: [...args],
      env,
      clearEnv: true,
      stdin: "piped",
      stdout: "piped",
      stderr: "null",
    }).spawn();
    process.unref();
    return new Child(process);
  } catch (error) {
    throw new PreampError(
      "module_load_failed",
      "Cannot bundle modules: this process may not start child processes; pass --allow-run, or use built-in modules",
      { cause: error },
    );
  }
}

function timeoutProblem(deadline_ms: number): BundlerFailure {
  return { code: "module_invalid", fact: `it timed out after ${deadline_ms / 1000} s` };
}

function cannotBundle(name: string, fact: string, cause?: unknown): PreampError {
  return new PreampError("module_load_failed", `Cannot bundle ${name}: ${fact}`, { cause });
}
