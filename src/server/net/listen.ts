/** The app on a socket: listen, and stop in time. */
import type { App } from "../app.ts";
import { systemClock } from "../clock.ts";
import { CONNECTION_TIMEOUTS, type ConnectionTimeouts, startTcpProxy, type TcpProxy } from "./tcp_proxy.ts";

/** Where to listen, and how long stopping may take. */
export interface ServeOptions {
  app: App;
  /** Address to listen on, such as `127.0.0.1` or `::1`. */
  host: string;
  /** 0 takes any free port. */
  port: number;
  /** How long connections are waited for; default {@link CONNECTION_TIMEOUTS}. */
  connections?: Partial<ConnectionTimeouts>;
  /** Told once, when connections are accepted. */
  onListen?(address: { url: string; hostname: string; port: number }): void;
  /** Told of an answer that failed after the app had given it, such as a stream that broke. Default: nothing is told. */
  onError?(error: unknown): void;
  /** Stops the server when it aborts. */
  signal?: AbortSignal;
  /** Milliseconds runs get to reach a resting place; default 3000. */
  grace_ms?: number;
  /** Milliseconds after which nothing is waited for; default 4500, within Deno Deploy's 5 s (http.md, Running). */
  deadline_ms?: number;
}

const GRACE_MS = 3000;
const DEADLINE_MS = 4500;

/**
 * Listens until `signal` aborts, then stops: no new connections, runs come to rest, their readers get `run:end`, other streams end
 * with a `retry:` hint, waiting requests are answered. Resolves when nothing is open, at the latest at the deadline; what is open then ends with the
 * process.
 *
 * @throws {Error} Deno's own when the address cannot be had.
 */
export async function serve(options: ServeOptions): Promise<void> {
  const { app, host, port, signal, grace_ms = GRACE_MS, deadline_ms = DEADLINE_MS } = options;
  const onError = (error: unknown) => { // Deno's own writes to stderr
    options.onError?.(error);
    return new Response(null, { status: 500 });
  };
  const inner = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {}, onError }, answer);
  let front: TcpProxy;
  try {
    const limits = { ...CONNECTION_TIMEOUTS, ...options.connections };
    front = startTcpProxy({ hostname: host, port }, inner.addr.port, systemClock, limits);
  } catch (error) {
    await inner.shutdown();
    throw error;
  }
  options.onListen?.({ url: baseUrl(front.addr.hostname, front.addr.port), ...nameOf(front.addr) });

  async function answer(request: Request, info: Deno.ServeHandlerInfo<Deno.NetAddr>): Promise<Response> {
    const connection = front.connectionOf(info.remoteAddr.port);
    if (!connection) return new Response(null, { status: 403 }); // past the front, where nothing is watched
    const end = connection.begin();
    const response = await app.fetch(request, info);
    const last = response.headers.get("connection") === "close";
    info.completed.then(() => end(last), () => end(true)); // broken off: there is nothing to wait for
    return response;
  }

  await Promise.race([inner.finished, aborted(signal)]);
  const gone = front.stop();
  // shutdown() waits for every open answer, an event stream's too: the app ends those.
  const stopped = Promise.allSettled([inner.shutdown(), app.drain(grace_ms), gone]);
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<void>((resolve) => timer = setTimeout(resolve, deadline_ms));
  await Promise.race([stopped, late]);
  clearTimeout(timer);
}

function nameOf({ hostname, port }: Deno.NetAddr): { hostname: string; port: number } {
  return { hostname, port };
}

function baseUrl(hostname: string, port: number): string {
  return `http://${hostname.includes(":") ? `[${hostname}]` : hostname}:${port}`;
}

function aborted(signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    signal?.addEventListener("abort", () => resolve(), { once: true });
  });
}
