/**
 * One client's connection: its requests one after the other, each answered before the next is read, and never waited for longer
 * than the limits say. Who closes it, client or server, nothing of it is left.
 */
import type { Answer } from "../answer.ts";
import type { ServerClock } from "../clock.ts";
import type { IncomingRequest } from "../request.ts";
import { BadRequest, endOfHead, type Head, readHead } from "./head.ts";
import { Input } from "./input.ts";
import { Output, type Turn } from "./output.ts";
import { RequestBody } from "./request_body.ts";
import { SocketRequest } from "./socket_request.ts";

/** How long connections are waited for, in milliseconds. */
export interface ConnectionLimits {
  /** From the first byte of a request until its header is there. */
  header_ms: number;
  /** Without a request under way. */
  idle_ms: number;
  /** What an ended connection may still send, thrown away so that its client can read the last answer. */
  linger_ms: number;
}

/** What a connection is served with. */
export interface ConnectionOptions {
  /** Answers a request; must not reject. */
  answer: (request: IncomingRequest) => Promise<Answer>;
  clock: ServerClock;
  limits: ConnectionLimits;
  /** How the server is reached, for requests that do not say it. */
  host: string;
}

/** What a body may still have that nobody wanted; a client that has more to send is let go of. */
const MAX_UNREAD = 64 * 1024;

const CONTINUE = new TextEncoder().encode("HTTP/1.1 100 Continue\r\n\r\n");
const REFUSAL: Answer = { status: 400, headers: {}, body: null };

/** Serves one connection. */
export class Connection {
  readonly #connection: Deno.TcpConn;
  readonly #options: ConnectionOptions;
  readonly #input: Input;
  readonly #output: Output;
  /** When it is closed unless something happens; by the clock's monotonic time. */
  #deadline = 0;
  #request: SocketRequest | undefined;
  /** What is being streamed to the client. */
  #streaming: ReadableStreamDefaultReader<Uint8Array> | undefined;
  #stopping = false;
  #lingering = false;
  #closed = false;

  constructor(connection: Deno.TcpConn, options: ConnectionOptions) {
    this.#connection = connection;
    this.#options = options;
    this.#input = new Input(connection);
    this.#input.onEnd = () => this.#leave();
    this.#output = new Output(connection, () => this.#progress());
    connection.setNoDelay();
    this.#wait(options.limits.idle_ms);
  }

  /** Serves requests until the connection ends. Never rejects. */
  async run(): Promise<void> {
    try {
      while (await this.#serveNext());
      await this.#letGo();
    } catch {
      // broken: whoever works for its client was told by what it reads or by its signal
    } finally {
      this.#leave();
      this.close();
    }
  }

  /** Closes it when its time is over. */
  check(now: number): void {
    if (now >= this.#deadline) this.close();
  }

  /** Ends it once its request is answered. */
  endWhenIdle(): void {
    this.#stopping = true;
    if (!this.#request && !this.#lingering) this.close();
  }

  /** Ends it now. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    try {
      this.#connection.close();
    } catch (error) {
      if (!(error instanceof Deno.errors.BadResource)) throw error; // the client was quicker
    }
  }

  #wait(ms: number): void {
    this.#deadline = this.#options.clock.monotonic() + ms;
  }

  /** The client takes its answer, if slowly. One that streams to it waits for it as long as it likes (threats.md T27). */
  #progress(): void {
    if (this.#deadline !== Infinity) this.#wait(this.#options.limits.idle_ms);
  }

  /** The client is gone: nobody wants the answer. */
  #leave(): void {
    this.#request?.leave();
    const streaming = this.#streaming;
    if (!streaming) return;
    this.#streaming = undefined;
    this.close(); // a write that it does not take would never end
    streaming.cancel().catch(() => {}); // it failed already
  }

  /** Serves one request; resolves to whether another one may follow. */
  async #serveNext(): Promise<boolean> {
    let head: Head | null;
    try {
      head = await this.#nextHead();
    } catch (error) {
      if (!(error instanceof BadRequest)) throw error;
      await this.#output.send(REFUSAL, null, this.#turn({ minor: 1, method: "" }, true));
      return false;
    }
    if (head === null) return false;
    this.#deadline = Infinity; // how long a body is waited for, its reader knows; an answer takes what it takes
    const body = new RequestBody(this.#input, head.framing);
    if (head.expects_continue) body.onWait = () => void this.#output.write(CONTINUE).catch(() => {}); // the answer fails too
    body.onDone = () => void this.#input.fill(); // reads on: the next request, or that the client is gone
    const request = this.#request = new SocketRequest(head, body, this.#options.host);
    const answer = await this.#options.answer(request);
    const last = await this.#send(answer, head, body);
    this.#request = undefined;
    this.#wait(this.#options.limits.idle_ms);
    return !last;
  }

  /** Resolves to the header of the next request, or to null when none follows. */
  async #nextHead(): Promise<Head | null> {
    const input = this.#input;
    let seen = 0;
    for (let began = false;;) {
      let bytes = input.view();
      if (seen === 0) {
        while (bytes[0] === 13 && bytes[1] === 10) { // empty lines before a request are nothing (RFC 9112 §2.2)
          input.skip(2);
          bytes = input.view();
        }
      }
      const end = endOfHead(bytes, seen);
      if (end !== -1) {
        const head = readHead(bytes.subarray(0, end));
        input.skip(end);
        return head;
      }
      if (bytes.length > 0 && !began) {
        began = true;
        this.#wait(this.#options.limits.header_ms);
      }
      seen = bytes.length;
      if (!await input.fill()) return null;
    }
  }

  /** Sends an answer; resolves to whether it was the last one. */
  async #send(answer: Answer, head: Head, body: RequestBody): Promise<boolean> {
    const unread = !body.done && (head.expects_continue || body.left > MAX_UNREAD);
    const last = this.#stopping || !head.keep || unread || answer.headers.connection === "close" ||
      this.#input.ended && this.#input.length === 0;
    const { body: content } = answer;
    if (content instanceof ReadableStream) return await this.#stream(answer, content, head, last);
    this.#wait(this.#options.limits.idle_ms);
    await this.#output.send(answer, content, this.#turn(head, last));
    if (last || body.done) return last;
    this.#wait(this.#options.limits.header_ms);
    while (await body.read());
    return false;
  }

  async #stream(
    answer: Answer,
    content: ReadableStream<Uint8Array>,
    head: Head,
    last: boolean,
  ): Promise<boolean> {
    const ends = last || head.minor === 0; // without chunks the connection's end is the body's
    const reader = this.#streaming = content.getReader();
    if (this.#input.ended) this.#leave();
    await this.#output.stream(answer, reader, this.#turn(head, ends));
    this.#streaming = undefined;
    return ends;
  }

  #turn({ minor, method }: Pick<Head, "minor" | "method">, last: boolean): Turn {
    return { minor, last, headless: method === "HEAD", now: this.#options.clock.now() };
  }

  /**
   * Says that nothing follows, then waits a little for the client to leave: closing while it sends would reset the connection, and
   * take the answer with it before it was read.
   */
  async #letGo(): Promise<void> {
    if (this.#closed) return;
    this.#lingering = true;
    this.#wait(this.#options.limits.linger_ms);
    await this.#connection.closeWrite();
    do this.#input.skip(this.#input.length); while (await this.#input.fill());
  }
}
