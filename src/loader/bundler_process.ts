/**
 * The bundler child as the server sees it: started when it is first needed, ended a minute after it was last, killed when a
 * bundle takes too long, and started again. One bundle at a time, so that it is known whose fault it was.
 */
import { PreampError } from "../sdk/errors.ts";
import type { JsonObject } from "../sdk/json.ts";
import { encodeFrame, FrameReader } from "./frames.ts";
import type { BundleAnswer, Bundler, BundleRequest } from "./types.ts";

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

/** Milliseconds until a started child must answer its first request; esbuild takes about half a second to begin. */
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
  #child: Child | undefined;
  #idle: ReturnType<typeof setTimeout> | undefined;
  #last: Promise<unknown> = Promise.resolve();
  #waiting = 0;
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
      if (this.#waiting === 0) this.#rest();
    } catch {
      // told when something is to be bundled
    }
  }

  bundle(request: BundleRequest, name: string): Promise<BundleAnswer> {
    this.#waiting++;
    clearTimeout(this.#idle);
    const result = this.#last.then(() => this.#bundle(request, name)).finally(() => {
      if (--this.#waiting === 0) this.#rest();
    });
    this.#last = result.catch(() => {}); // told to whoever asked
    return result;
  }

  async #bundle(request: BundleRequest, name: string): Promise<BundleAnswer> {
    for (let attempt = 1;; attempt++) {
      const child = this.#start();
      try {
        return await child.ask(request, child.fresh ? this.#deadline_ms + START_MS : this.#deadline_ms);
      } catch (error) {
        await this.#end(child);
        if (error instanceof TooSlow) throw tooSlow(name, this.#deadline_ms);
        if (this.#closed) throw cannotBundle(name, "the server is closing");
        // a child may have been ended from outside since it was last used: once more, with a new one
        if (attempt === 2) throw cannotBundle(name, "the bundler ended", error);
      }
    }
  }

  #start(): Child {
    if (this.#closed) throw cannotBundle("a module", "the server is closing");
    this.#child ??= startChild(this.#command());
    return this.#child;
  }

  #rest(): void {
    clearTimeout(this.#idle);
    if (this.#closed) return;
    const idle = setTimeout(() => {
      if (this.#waiting === 0 && this.#child) void this.#end(this.#child);
    }, this.#idle_ms);
    Deno.unrefTimer(idle); // it keeps nobody alive
    this.#idle = idle;
  }

  async #end(child: Child): Promise<void> {
    if (this.#child === child) this.#child = undefined;
    await child.kill();
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#idle);
    const child = this.#child;
    if (child) await this.#end(child);
    await this.#last;
  }
}

class TooSlow extends Error {}

class Child {
  /** Whether it has answered nothing yet. */
  fresh = true;
  readonly #process: Deno.ChildProcess;
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #frames: FrameReader;
  #asked = 0;

  constructor(process: Deno.ChildProcess) {
    this.#process = process;
    this.#writer = process.stdin.getWriter();
    this.#writer.closed.catch(() => {}); // a write that fails says so itself
    this.#reader = process.stdout.getReader();
    this.#frames = new FrameReader(async () => (await this.#reader.read()).value ?? null, MAX_ANSWER_BYTES);
  }

  async ask(request: BundleRequest, deadline_ms: number): Promise<BundleAnswer> {
    const id = ++this.#asked;
    const { entry, redirects, failed, files } = request;
    const header = {
      id,
      entry,
      redirects,
      failed,
      files: files.map(({ url, bytes }) => ({ url, length: bytes.length })),
    };
    this.#process.ref(); // while somebody waits for it, the server stays
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new TooSlow("not done in time")), deadline_ms);
    });
    try {
      const answered = this.#exchange(id, encodeFrame(header, files.map(({ bytes }) => bytes)));
      answered.catch(() => {}); // after a timeout nobody waits for it
      return await Promise.race([answered, late]);
    } finally {
      clearTimeout(timer);
      this.#process.unref();
    }
  }

  async #exchange(id: number, message: Uint8Array): Promise<BundleAnswer> {
    const [, frame] = await Promise.all([this.#writer.write(message), this.#frames.next()]);
    if (!frame) throw new Error("the bundler closed its output");
    if (frame.header.id !== id) throw new Error("the bundler answered another question");
    this.fresh = false;
    const answer = frame.header.answer as JsonObject; // our own program wrote it
    if (answer.kind !== "bundle") return answer as unknown as BundleAnswer;
    return { ...answer, code: new TextDecoder().decode(frame.body) } as BundleAnswer;
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

function tooSlow(name: string, deadline_ms: number): PreampError {
  return new PreampError(
    "module_invalid",
    `Cannot bundle ${name}: it was not done within ${
      deadline_ms / 1000
    } s: make the module smaller or simpler`,
  );
}

function cannotBundle(name: string, fact: string, cause?: unknown): PreampError {
  return new PreampError("module_load_failed", `Cannot bundle ${name}: ${fact}`, { cause });
}
