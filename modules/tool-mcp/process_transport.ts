/** The standard input and output of a server's process as a transport of the MCP client. */
import type { JSONRPCMessage, Transport } from "@modelcontextprotocol/client";
import { errorMessage } from "preamp/base";
import { Inbox, type SentMessage } from "./inbox.ts";
import { linesOf } from "./lines.ts";

/** A program that is a server. */
export interface ServerProgram {
  readonly path: string;
  readonly args: readonly string[];
  /** All of its variables. */
  readonly env: Record<string, string>;
  /** Folder in which it starts; absent: that of this program. */
  readonly cwd?: string;
}

/** Time in which a server may end by itself after its input was closed, and after it was asked to end. */
const END_MS = 500;
const TERM_MS = 2_000;
/** Characters of the error output that are kept. */
const STDERR_CHARS = 2_000;

/** A server that runs as a process of this machine; it is started in a group, which is ended as one. */
export class ProcessTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: NonNullable<Transport["onmessage"]>;
  /** The client recognizes a process by `pid` and `stderr`. */
  pid: number | null = null;
  /** The end of what the server wrote to its error output. */
  stderr = "";
  /** Why the connection was ended; null: not by this end. */
  failure: string | null = null;
  readonly #program: ServerProgram;
  readonly #max_bytes: number;
  #child: Deno.ChildProcess | null = null;
  #input: WritableStreamDefaultWriter<Uint8Array> | null = null;
  readonly #inbox = new Inbox();
  readonly #closing = new AbortController();
  readonly #readers: ReadableStreamDefaultReader<Uint8Array>[] = [];

  /** @param max_bytes Most bytes of one message. */
  constructor(program: ServerProgram, max_bytes: number) {
    this.#program = program;
    this.#max_bytes = max_bytes;
  }

  // deno-lint-ignore require-await -- the interface wants a promise, which a failure rejects
  async start(): Promise<void> {
    const { path, args, env, cwd } = this.#program;
    const child = new Deno.Command(path, {
      args: [...args],
      env,
      clearEnv: true,
      ...(cwd === undefined ? {} : { cwd }),
      detached: true, // the leader of a group, so that all can be stopped
      stdin: "piped",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
    this.#child = child;
    this.pid = child.pid;
    this.#input = child.stdin.getWriter();
    const read = this.#read(child.stdout);
    const errors = this.#readErrors(child.stderr);
    void this.#end(child, read, errors);
  }

  async send(message: JSONRPCMessage): Promise<void> {
    if (this.#input === null) throw new Error("The server is not running");
    this.#inbox.sends(message as SentMessage);
    await this.#input.write(new TextEncoder().encode(`${JSON.stringify(message)}\n`));
  }

  async close(): Promise<void> {
    const child = this.#child;
    if (child === null) return;
    this.#child = null;
    this.#closing.abort(new Error("The connection was closed"));
    this.#input?.close().catch(() => {}); // the server has ended
    this.#input = null;
    if (!await endsWithin(child.status, END_MS)) {
      signalGroup(child, "SIGTERM");
      await endsWithin(child.status, TERM_MS);
    }
    signalGroup(child, "SIGKILL"); // the server, if it did not end, and what it has started
    await child.status;
    // a program that left the group may have the outputs open
    for (const reader of this.#readers) await reader.cancel().catch(() => {}); // it has ended
  }

  /**
   * Ends the connection when no answer can come any more: the server has closed its output, or has ended. A
   * program that it started may hold the output open; what was written before is read.
   */
  async #end(child: Deno.ChildProcess, read: Promise<void>, errors: Promise<void>): Promise<void> {
    const { signal } = this.#closing;
    let status: Deno.CommandStatus | undefined;
    const ended = child.status.then((value) => status = value);
    await Promise.race([
      read.then(() => this.failure === null && endsWithin(ended, END_MS)),
      ended.then(() => endsWithin(read, END_MS)),
    ]);
    if (!signal.aborted) {
      const how = status && `the server has ended (${status.signal ?? `exit code ${status.code}`})`;
      this.failure ??= how ?? "the server has closed its output";
    }
    void this.close();
    await endsWithin(errors, END_MS); // the last words of a server are part of what is reported
    this.onclose?.();
  }

  /** Yields what the server writes, until {@link close} at the latest. */
  async *#chunks(stream: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
    const reader = stream.getReader();
    this.#readers.push(reader);
    try {
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        yield value;
      }
    } finally {
      await reader.cancel().catch(() => {}); // it has ended
    }
  }

  /** Passes messages on. Other lines, such as log lines of a careless server, are left out. */
  async #read(stream: ReadableStream<Uint8Array>): Promise<void> {
    try {
      for await (const line of linesOf(this.#chunks(stream), this.#max_bytes)) {
        const messages = await this.#inbox.read(line, { signal: this.#closing.signal });
        for (const message of messages) this.onmessage?.(message as unknown as JSONRPCMessage);
      }
    } catch (error) {
      if (this.#closing.signal.aborted) return;
      this.failure = errorMessage(error);
      this.onerror?.(error as Error);
    }
  }

  async #readErrors(stream: ReadableStream<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder();
    try {
      for await (const chunk of this.#chunks(stream)) {
        this.stderr = (this.stderr + decoder.decode(chunk, { stream: true })).slice(-STDERR_CHARS);
      }
    } catch {
      // the server has ended
    }
  }
}

/** Resolves to whether a promise settles within a time. */
async function endsWithin(promise: Promise<unknown>, ms: number): Promise<boolean> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<false>((resolve) => timer = setTimeout(() => resolve(false), ms));
  const ended = await Promise.race([promise.then(() => true), late]);
  clearTimeout(timer);
  return ended;
}

function signalGroup(child: Deno.ChildProcess, signal: Deno.Signal): void {
  try {
    Deno.kill(-child.pid, signal);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return; // all have ended
    try {
      child.kill(signal); // a sandbox has no Deno.kill
    } catch {
      // the server has ended
    }
  }
}
