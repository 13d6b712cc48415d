/**
 * Runs the bundler in a child process, which starts on demand and stops after a minute without work. A
 * failure or timeout stops it at once, because a failed esbuild fails on every later source. It serves one
 * request at a time, so that the failing source is known; that source is then refused for a while.
 */
import { encodeFrame } from "../../process/frames.ts";
import { Child, ownEnv, ownProgram } from "../../process/child_process.ts";
import { LateError } from "../../process/system_clock.ts";
import { PreampError } from "../../sdk/errors.ts";
import { type BundlerFailure, BundlerQueue, FailedSources, problemOfFailure } from "./bundler_queue.ts";
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
  /** Milliseconds of its own time that the child may take for one bundle. Default 10 s. */
  deadline_ms?: number;
  /** Milliseconds until an unused child is stopped. Default 60 s. */
  idle_ms?: number;
  /** Starts the child. Default: {@link startBundlerChild}. */
  start?: () => Child;
}

/** Frame header of a request: bundle all files, or find the imports of the first one. */
export type ChildRequest =
  & { readonly id: number; readonly files: readonly { url: string; sha256: string; length: number }[] }
  & ChildTask;

/** A request without its files. */
type ChildTask =
  | { readonly kind: "bundle"; readonly request: Omit<BundleRequest, "files"> }
  | { readonly kind: "imports" } & ImportsOptions;

/**
 * Frame header of an answer. `ready` has the number 0, since requests are numbered from 1. After `failed` the
 * child exits.
 */
export interface ChildMessage {
  readonly id: number;
  readonly answer: ChildAnswer;
}

export type ChildAnswer =
  | BundleAnswer
  | { readonly kind: "imports"; readonly urls: readonly string[] }
  | { readonly kind: "failed"; readonly message: string }
  /** esbuild is ready. */
  | { readonly kind: "ready" };

/** Most bytes of one answer: a bundle and its source map, each about as long as the files. */
export const MAX_ANSWER_BYTES: number = 192 * 1024 * 1024;

/** Milliseconds of its own time until a started child must be ready; esbuild takes about half a second. */
const START_MS = 10_000;

/**
 * Limits of a child, because a stranger's files can make it use all memory. A graph of 20 MiB needs about
 * half of them.
 */
const LIMITS = { memory_mb: 1_024, cpu_s: 30 };

/**
 * Starts the bundler's child. It has no permissions, and no environment except the location of Deno's cache.
 */
export function startBundlerChild(): Child {
  return new Child({
    ...ownProgram({ name: "bundle", entry: new URL("./bundler_source.js", import.meta.url).href }),
    env: ownEnv(),
    limits: LIMITS,
    limit: () => MAX_ANSWER_BYTES,
  });
}

/** Creates a bundler in a child process, which starts with the first request. */
export function createBundlerProcess(options: BundlerProcessOptions = {}): Bundler {
  return new BundlerProcess(options);
}

class BundlerProcess implements Bundler {
  readonly #deadline_ms: number;
  readonly #idle_ms: number;
  readonly #spawn: () => Child;
  readonly #queue = new BundlerQueue(() => this.#scheduleIdleStop());
  readonly #failed = new FailedSources();
  #child: BundlerChild | undefined;
  #idle: ReturnType<typeof setTimeout> | undefined;
  #closed = false;

  constructor({ deadline_ms = 10_000, idle_ms = 60_000, start = startBundlerChild }: BundlerProcessOptions) {
    this.#deadline_ms = deadline_ms;
    this.#idle_ms = idle_ms;
    this.#spawn = start;
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
    client: BundlerClient,
  ): Promise<readonly string[]> {
    const { name, owner } = client;
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
        // a child that does not get ready is a problem of the host; a used one may have been killed, or be
        // full of earlier work: the source is not at fault, so try once more
        if ((used || !child.ready) && attempt === 1 && !(error instanceof LateError && child.ready)) {
          continue;
        }
        if (!child.ready) throw cannotBundle(name, "the bundler did not start", error);
        throw this.#failed.add(files, name, error instanceof LateError ? this.#timeout : PROCESS_ENDED);
      }
    }
  }

  get #timeout(): BundlerFailure {
    return { code: "module_invalid", fact: `it timed out after ${this.#deadline_ms / 1000} s of work` };
  }

  #start(): BundlerChild {
    if (this.#closed) throw cannotBundle("a module", "the server is closing");
    try {
      return this.#child ??= new BundlerChild(this.#spawn());
    } catch (error) {
      throw new PreampError(
        "module_load_failed",
        "Cannot bundle modules: this process may not start child processes; pass --allow-run, or use built-in modules",
        { cause: error },
      );
    }
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

  async #stop(child: BundlerChild): Promise<void> {
    if (this.#child === child) this.#child = undefined;
    await child.close();
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

const PROCESS_ENDED: BundlerFailure = {
  code: "module_load_failed",
  fact: "the bundler exited while it worked on it",
};

interface ChildReply {
  readonly answer: ChildAnswer;
  readonly body: Uint8Array;
}

/** One child process with esbuild. */
class BundlerChild {
  /** Whether it has answered a request. */
  used = false;
  /** Whether esbuild is ready. Requests for imports do not need it. */
  ready = false;
  readonly #child: Child;
  #last_id = 0;

  constructor(child: Child) {
    this.#child = child;
    child.unref();
  }

  /**
   * Sends one request; resolves to the answer. The timeout starts when the child is ready, if the request
   * needs that.
   */
  async request(task: ChildTask, files: readonly BundlerFile[], deadline_ms: number): Promise<ChildReply> {
    this.#child.ref(); // keeps the process alive until the answer
    try {
      if (!this.ready && task.kind === "bundle") {
        await this.#child.within(START_MS, this.#receive(0));
      }
      const id = ++this.#last_id;
      const listed = files.map(({ url, sha256, bytes }) => ({ url, sha256, length: bytes.length }));
      const request: ChildRequest = { ...task, id, files: listed };
      const message = encodeFrame(JSON.stringify(request), files.map(({ bytes }) => bytes));
      const [, reply] = await this.#child.within(
        this.ready ? deadline_ms : deadline_ms + START_MS,
        Promise.all([this.#child.write(message), this.#receive(id)]),
      );
      this.used = true;
      return reply;
    } finally {
      this.#child.unref();
    }
  }

  async #receive(wanted: number): Promise<ChildReply> {
    for (;;) {
      const frame = await this.#child.next();
      if (!frame) throw new Error(`the bundler closed its output: ${this.#child.stderr.slice(-1_000)}`);
      const { id, answer } = JSON.parse(frame.text) as ChildMessage; // written by our own program
      if (answer.kind === "ready") this.ready = true;
      if (id === wanted) return { answer, body: frame.body };
      if (answer.kind !== "ready") throw new Error("the bundler answered another request");
    }
  }

  async close(): Promise<void> {
    await this.#child.close();
  }
}

function cannotBundle(name: string, fact: string, cause?: unknown): PreampError {
  return new PreampError("module_load_failed", `Cannot bundle ${name}: ${fact}`, { cause });
}
