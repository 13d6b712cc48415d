/** A request as its handlers see it: what they read of a `Request`, and nothing that only a `Request` can be. */

/** A request, however it came; every `Request` is one. */
export interface IncomingRequest {
  readonly method: string;
  /** Absolute. */
  readonly url: string;
  /** Names in lower case. */
  readonly headers: RequestHeaders;
  /** Aborts when the client leaves; a `Request` of Deno's server also when it was answered. */
  readonly signal: AbortSignal;
  /** Null when there is none. */
  readonly body: ReadableStream<Uint8Array> | null;
  /** Resolves to the whole body. */
  bytes(): Promise<Uint8Array>;
  /** The whole body, when it came together with the header: nobody needs to wait for it. */
  readonly whole?: Uint8Array;
}

/** The header fields of a request. */
export interface RequestHeaders {
  get(name: string): string | null;
}
