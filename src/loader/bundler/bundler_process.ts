/**
 * The bundler child as the server sees it: started when it is first needed, ended a minute after it was last, and ended at
 * once when it fails on a source or takes too long: what fails in esbuild leaves it in a state in which it fails on everything.
 * One question at a time, so that it is known which source is at fault; that source is then refused for a while.
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

/** How the child is started and held. */
export interface BundlerProcessOptions {
  /** Milliseconds one bundle may take (threats T36). Default 10 s. */
  deadline_ms?: number;
  /** Milliseconds until an unused child is ended. Default 60 s (architecture.md, Dependencies). */
  idle_ms?: number;
  /** The program to start. Default: {@link bundlerCommand}. */
  command?: () => ChildCommand;
}

/** A program and how it is started. */
export interface ChildCommand {
  command: string;
  args: readonly string[];
  env: Record<string, string>;
}

/** First two words of the command line of the compiled program in this role. */
export const BUNDLER_ROLE: readonly [string, string] = ["child", "bundle"];

/** Bytes of one answer: a bundle is about as long as its files, its map as long again. */
const MAX_ANSWER_BYTES = 192 * 1024 * 1024;

/** Milliseconds until a started child must be ready; esbuild takes about half a second to begin. */
const START_MS = 10_000;

/** The flags that the compiled program has baked in, for children that run from source (architecture.md, Compiling). */
export const V8_FLAGS = "--v8-flags=--disallow-code-generation-from-strings,--liftoff-only";

/**
 * Returns how this program is started as a bundler: the compiled one by its role, `deno run` by a file of ours. Neither gets
 * a permission or an environment; Deno itself needs to know where its cache is.
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

/** Returns the variables by which Deno finds its cache: a child that runs from source needs them. */
export function cacheEnv(): Record<string, string> {
  const env: Record<string, string> = {};
  for (const name of ["DENO_DIR", "HOME", "XDG_CACHE_HOME", "LOCALAPPDATA", "USERPROFILE", "SystemRoot"]) {
    try {
      const value = Deno.env.get(name);
      if (value !== undefined) env[name] = value;
    } catch {
      // not permitted to be read: then it is not passed on
    }
  }
  return env;
}

/** Returns a bundler in a process of its own; nothing is started before it is asked. */
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
      // reported when something is to be bundled
    }
  }

  async bundle({ files, ...request }: BundleRequest, { name, owner }: BundlerClient): Promise<BundleAnswer> {
    return await this.#queue.add({ owner, short: false }, async () => {
      const { answer, body } = await this.#request({ kind: "bundle", request }, files, name);
      const bundled = answer as BundleAnswer; // what that kind of request is answered with
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

  async #request(question: ChildTask, files: readonly BundlerFile[], name: string): Promise<ChildReply> {
    clearTimeout(this.#idle);
    this.#failed.check(files, name);
    for (let attempt = 1;; attempt++) {
      const child = this.#start();
      const { used } = child;
      try {
        const answered = await child.request(question, files, this.#deadline_ms);
        if (answered.answer.kind !== "failed") return answered;
        await this.#stop(child);
        throw this.#failed.add(files, name, problemOfFailure(answered.answer.message));
      } catch (error) {
        if (error instanceof PreampError) throw error;
        await this.#stop(child);
        if (this.#closed) throw cannotBundle(name, "the server is closing");
        // a child that does not get ready is this host's fault; one that was used before may have been ended from outside
        // since, or be full of what it was asked before: neither says anything about the source
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
    Deno.unrefTimer(idle); // it keeps no process alive
    this.#idle = idle;
  }

  async #stop(child: Child): Promise<void> {
    if (this.#child === child) this.#child = undefined;
    await child.kill();
    if (this.#queue.idle) return;
    this.prepare(); // others wait
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
  fact: "the bundler ended while it worked on it",
};

interface ChildReply {
  readonly answer: ChildAnswer;
  readonly body: Uint8Array;
}

class Child {
  /** Whether it has answered anything yet. */
  used = false;
  /** Whether it can bundle; it can say what a file imports before that. */
  ready = false;
  readonly #process: Deno.ChildProcess;
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #frames: FrameReader;
  #last_id = READY_ID;

  constructor(process: Deno.ChildProcess) {
    this.#process = process;
    this.#writer = process.stdin.getWriter();
    this.#writer.closed.catch(() => {}); // a write that fails says so itself
    this.#reader = process.stdout.getReader();
    this.#frames = new FrameReader(async () => (await this.#reader.read()).value ?? null, MAX_ANSWER_BYTES);
  }

  /** Resolves to the answer. Asked one question at a time. Its time begins when the child is ready, if it must be. */
  async request(
    question: ChildTask,
    files: readonly BundlerFile[],
    deadline_ms: number,
  ): Promise<ChildReply> {
    if (!this.ready && question.kind === "bundle") await this.#within(START_MS, this.#receive(READY_ID));
    const id = ++this.#last_id;
    const listed = files.map(({ url, sha256, bytes }) => ({ url, sha256, length: bytes.length }));
    const message = encodeFrame({ ...question, id, files: listed }, files.map(({ bytes }) => bytes));
    const [, { header, body }] = await this.#within(
      this.ready ? deadline_ms : deadline_ms + START_MS,
      Promise.all([this.#writer.write(message), this.#receive(id)]),
    );
    this.used = true;
    return { answer: header.answer as ChildAnswer, body }; // our own program wrote it
  }

  async #receive(id: number): Promise<Frame> {
    for (;;) {
      const frame = await this.#frames.next();
      if (!frame) throw new Error("the bundler closed its output");
      if (frame.header.id === READY_ID) this.ready = true;
      if (frame.header.id === id) return frame;
      if (frame.header.id !== READY_ID) throw new Error("the bundler answered another question");
    }
  }

  async #within<T>(ms: number, answered: Promise<T>): Promise<T> {
    answered.catch(() => {}); // after a timeout nothing waits for it
    this.#process.ref(); // while an answer is waited for, the server stays
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
      // it is gone already
    }
    await this.#process.status;
    await this.#writer.abort().catch(() => {}); // its other end is gone
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
      "Cannot bundle modules: this process may not start itself: give it --allow-run, or use built-in modules",
      { cause: error },
    );
  }
}

function timeoutProblem(deadline_ms: number): BundlerFailure {
  return { code: "module_invalid", fact: `it was not done within ${deadline_ms / 1000} s` };
}

function cannotBundle(name: string, fact: string, cause?: unknown): PreampError {
  return new PreampError("module_load_failed", `Cannot bundle ${name}: ${fact}`, { cause });
}
