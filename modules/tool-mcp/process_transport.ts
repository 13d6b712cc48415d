/** The standard input and output of a server's process as a transport of the MCP client. */
import { Buffer } from "node:buffer";
import {
  type JSONRPCMessage,
  ReadBuffer,
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
  readonly #buffer: ReadBuffer;
  #child: Deno.ChildProcess | null = null;
  #input: WritableStreamDefaultWriter<Uint8Array> | null = null;

  /** @param max_bytes Most bytes of one message. */
  constructor(program: ServerProgram, max_bytes: number) {
    this.#program = program;
    this.#buffer = new ReadBuffer({ maxBufferSize: max_bytes });
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
    this.#buffer.clear();
  }

  async #read(stream: ReadableStream<Uint8Array>): Promise<void> {
    try {
      for await (const chunk of stream) {
        this.#buffer.append(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength));
        for (;;) {
          const message = this.#next();
          if (message === null) break;
          if (message !== undefined) this.onmessage?.(message);
        }
      }
    } catch (error) { // a message that is too large: what follows would not be understood
      this.failure = errorMessage(error);
      this.onerror?.(error as Error);
      void this.close();
    }
  }

  /** Returns the next message; undefined for a line without a message, null if there is no further line. */
  #next(): JSONRPCMessage | null | undefined {
    try {
      return this.#buffer.readMessage();
    } catch (error) {
      this.onerror?.(error as Error);
      return undefined;
    }
  }

  async #readErrors(stream: ReadableStream<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder();
    try {
      for await (const chunk of stream) {
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
  } catch {
    // all have ended
  }
}
