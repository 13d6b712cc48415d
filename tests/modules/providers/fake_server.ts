/** A loopback server that plays recorded responses byte by byte, and keeps the requests it received. */
import type { JsonObject } from "preamp";

/** One received request. */
export interface ReceivedRequest {
  readonly method: string;
  /** Path with the query. */
  readonly path: string;
  readonly headers: Headers;
  /** The JSON body; null without one. */
  readonly body: JsonObject;
}

/** Answers a request; `count` is its number, from 0. */
export type Answer = (request: ReceivedRequest, count: number) => Response | Promise<Response>;

/** A running server. */
export interface FakeServer extends AsyncDisposable {
  /** Its address without a trailing slash. */
  readonly url: string;
  readonly requests: ReceivedRequest[];
}

/** Starts a server; dispose it at the end of the test. */
export function fakeServer(answer: Answer): FakeServer {
  const requests: ReceivedRequest[] = [];
  const stop = new AbortController();
  const server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, signal: stop.signal, onListen() {}, onError: () => new Response(null) },
    async (incoming) => {
      const { pathname, search } = new URL(incoming.url);
      const text = await incoming.text();
      const request = {
        method: incoming.method,
        path: pathname + search,
        headers: incoming.headers,
        body: text === "" ? null : JSON.parse(text),
      };
      requests.push(request);
      return await answer(request, requests.length - 1);
    },
  );
  return {
    url: `http://127.0.0.1:${server.addr.port}`,
    requests,
    async [Symbol.asyncDispose]() {
      stop.abort();
      await server.finished;
    },
  };
}
