/** The standard input and output of a server's process as a transport of the MCP client. */
import {
  deserializeMessage,
  type JSONRPCMessage,
  serializeMessage,
  type Transport,
} from "@modelcontextprotocol/client";
import { errorMessage } from "preamp/base";

/** A program that is a server. */
export interface ServerProgram {
  readonly path: string;
  readonly args: readonly string[];
  /** All of its variables. */
  readonly env: Record<string, string>;
}

/** Time in which a server may end by itself after its input was closed, and after it was asked to end. */
const END_MS = 500;
const TERM_MS = 2_000;
const NEWLINE = 10;
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
  readonly #readers: ReadableStreamDefaultReader<Uint8Array>[] = [];

  /** @param max_bytes Most bytes of one message. */
  constructor(program: ServerProgram, max_bytes: number) {
    this.#program = program;
    this.#max_bytes = max_bytes;
  }

  // deno-lint-ignore require-await -- the interface wants a promise, which a failure rejects
  async start(): Promise<void> {
    const { path, args, env } = this.#program;
    const child = new Deno.Command(path, {
      args: [...args],
      env,
      clearEnv: true,
      detached: true, // the leader of a group, so that all can be stopped
      stdin: "piped",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
    this.#child = child;
    this.pid = child.pid;
    this.#input = child.stdin.getWriter();
    void this.#read(child.stdout);
    void this.#readErrors(child.stderr);
    child.status.then(() => this.onclose?.());
  }

  async send(message: JSONRPCMessage): Promise<void> {
    if (this.#input === null) throw new Error("The server is not running");
    await this.#input.write(new TextEncoder().encode(serializeMessage(message)));
  }

  async close(): Promise<void> {
    const child = this.#child;
    if (child === null) return;
    this.#child = null;
    this.#input?.close().catch(() => {}); // the server has ended
    this.#input = null;
    if (!await endsWithin(child, END_MS)) {
      signalGroup(child, "SIGTERM");
      await endsWithin(child, TERM_MS);
    }
    signalGroup(child, "SIGKILL"); // the server, if it did not end, and what it has started
    await child.status;
    // a program that left the group may have the outputs open
    for (const reader of this.#readers) await reader.cancel().catch(() => {}); // it has ended
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

  async #read(stream: ReadableStream<Uint8Array>): Promise<void> {
    const line: Uint8Array[] = [];
    let bytes = 0;
    try {
      for await (let chunk of this.#chunks(stream)) {
        for (let at = chunk.indexOf(NEWLINE); at >= 0; at = chunk.indexOf(NEWLINE)) {
          const text = new TextDecoder();
          const parts = [...line.splice(0), chunk.subarray(0, at)];
          this.#receive(parts.map((part) => text.decode(part, { stream: true })).join("") + text.decode());
          chunk = chunk.subarray(at + 1);
          bytes = 0;
        }
        line.push(chunk);
        bytes += chunk.length;
        if (bytes > this.#max_bytes) throw new Error(`A message has more than ${this.#max_bytes} bytes`);
      }
    } catch (error) {
      this.failure = errorMessage(error);
      this.onerror?.(error as Error);
      void this.close();
    }
  }

  /** Passes a message on. Another line, such as a log line of a careless server, is left out. */
  #receive(line: string): void {
    let message: JSONRPCMessage;
    try {
      message = deserializeMessage(line);
    } catch {
      return;
    }
    this.onmessage?.(message);
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

async function endsWithin(child: Deno.ChildProcess, ms: number): Promise<boolean> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<false>((resolve) => timer = setTimeout(() => resolve(false), ms));
  const ended = await Promise.race([child.status.then(() => true), late]);
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
