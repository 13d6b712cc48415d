/** A request that came over a socket of ours, as handlers see it. What few of them ask for is made when it is asked for. */
import type { IncomingRequest, RequestHeaders } from "../request.ts";
import type { Head } from "./head.ts";
import type { RequestBody } from "./request_body.ts";

/** One request and its client. */
export class SocketRequest implements IncomingRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: RequestHeaders;
  readonly whole?: Uint8Array;
  readonly #body: RequestBody;
  #stream: ReadableStream<Uint8Array> | undefined;
  #leaving: AbortController | undefined;
  #left = false;

  /** Makes the request of a header and its body; `host` is how the server is reached when the header does not say it. */
  constructor(head: Head, body: RequestBody, host: string) {
    this.method = head.method;
    this.headers = head.headers;
    this.url = `http://${head.headers.get("host") ?? host}${head.target}`;
    this.#body = body;
    const whole = body.whole();
    if (whole) this.whole = whole;
  }

  get signal(): AbortSignal {
    this.#leaving ??= new AbortController();
    if (this.#left) this.#leaving.abort();
    return this.#leaving.signal;
  }

  /** Says that the client is gone. */
  leave(): void {
    this.#left = true;
    this.#leaving?.abort();
  }

  /** Chunks as they come, no sooner than they are asked for. */
  get body(): ReadableStream<Uint8Array> | null {
    if (this.whole) return this.whole.length === 0 ? null : new Response(this.whole as BodyInit).body;
    return this.#stream ??= new ReadableStream({
      pull: async (controller) => {
        const bytes = await this.#body.read();
        if (bytes) controller.enqueue(bytes);
        else controller.close();
      },
    }, { highWaterMark: 0 });
  }

  async bytes(): Promise<Uint8Array> {
    if (this.whole) return this.whole;
    const chunks: Uint8Array<ArrayBuffer>[] = [];
    for (let chunk; (chunk = await this.#body.read()) !== null;) chunks.push(chunk);
    return await new Blob(chunks).bytes();
  }
}
