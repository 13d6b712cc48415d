/** Makes the requests of the vendor's client, and keeps what the client does not pass on. */
import { isObject, LLMError } from "preamp/base";
import type { CallIo } from "preamp/provider";
import type { Transport } from "./client_types.ts";

/** Bytes at the end of a response that are kept. */
const TAIL_BYTES = 16_384;

/** The connection of one request. */
export class Connection {
  /** Options for the client. */
  readonly transport: Transport;
  readonly #io: CallIo;
  #response: Response | undefined;
  /** Last parts of the body. */
  #tail: Uint8Array[] = [];
  #tail_bytes = 0;

  /** Creates a connection; the client opens it. */
  constructor(io: CallIo) {
    this.#io = io;
    this.transport = {
      abortSignal: io.signal,
      httpOptions: { fetch: (input, init) => this.#fetch(input, init) },
    };
  }

  /** Returns the text at the end of the response. */
  tail(): string {
    return new TextDecoder().decode(new Uint8Array(this.#tail.flatMap((part) => [...part])));
  }

  /**
   * Runs a request. The client's errors have no headers and do not say whether a response had begun: a failure
   * after its begin is rejected as a `StreamError`, and the headers are added to errors of the API.
   */
  async run<T>(request: () => Promise<T>): Promise<T> {
    try {
      return await request();
    } catch (cause) {
      if (cause instanceof LLMError || this.#io.signal.aborted || !this.#response) throw cause;
      const { headers } = this.#response;
      if (isObject(cause) && cause.name === "ApiError") throw Object.assign(cause, { headers });
      const message = cause instanceof Error ? cause.message : String(cause);
      throw new LLMError("StreamError", `Cannot read the response of Gemini: ${message.slice(0, 300)}`, {
        cause,
      });
    }
  }

  async #fetch(input: Parameters<typeof fetch>[0], init?: RequestInit): Promise<Response> {
    const response = this.#response = await this.#io.fetch(input, init);
    if (!response.ok || response.body === null) return response;
    const reader = response.body.getReader();
    const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
      pull: async (controller) => {
        const { done, value } = await reader.read();
        if (done) return controller.close();
        this.#keep(value);
        controller.enqueue(value);
      },
      cancel: (reason) => reader.cancel(reason),
    }, { highWaterMark: 0 });
    const { status, headers } = response;
    return new Response(body, { status, headers });
  }

  #keep(part: Uint8Array): void {
    this.#tail.push(part);
    this.#tail_bytes += part.byteLength;
    while (this.#tail_bytes - this.#tail[0]!.byteLength >= TAIL_BYTES) {
      this.#tail_bytes -= this.#tail.shift()!.byteLength;
    }
  }
}
