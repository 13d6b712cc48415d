/** Serves an app on a TCP port, with a graceful shutdown. */
import type { App } from "../app.ts";
import { endsConnectionOf } from "../middleware/check_host.ts";
import { endsConnection } from "../problems.ts";
import { type SystemClock, systemClock } from "../../process/system_clock.ts";
import {
  CONNECTION_TIMEOUTS,
  type ConnectionTimeouts,
  startTcpProxy,
  type TcpProxy,
} from "./connection_timeouts.ts";

/** Options of {@link serve}. */
export interface ServeOptions {
  app: App;
  /** Address to listen on, such as `127.0.0.1` or `::1`. */
  host: string;
  /** 0 selects a free port. */
  port: number;
  /**
   * True when a reverse proxy holds the connections of clients: `Deno.serve` listens on the address itself,
   * without timeouts of headers and idle connections. Default false.
   */
  behind_proxy?: boolean;
  /** Timeouts of connections; default {@link CONNECTION_TIMEOUTS}. Not used with `behind_proxy`. */
  connections?: Partial<ConnectionTimeouts>;
  /** Clock of the timeouts of connections; default the system clock. */
  clock?: SystemClock;
  /** Called once, when the server accepts connections. */
  onListen?(address: { url: string; hostname: string; port: number }): void;
  /** Called when a response fails after the app returned it, such as a broken stream. Default: ignored. */
  onError?(error: unknown): void;
  /** Aborting it stops the server. */
  signal?: AbortSignal;
  /** Milliseconds for runs to reach a durable entry; default 3000. */
  grace_ms?: number;
  /** Maximum milliseconds of the whole shutdown; default 4500, since Deno Deploy allows 5 s. */
  deadline_ms?: number;
}

const GRACE_MS = 3000;
const DEADLINE_MS = 4500;

/**
 * Listens until `signal` aborts, then shuts down: drains the app (see {@link App.drain}), which answers
 * meanwhile, then accepts no new connections. Resolves when all connections are closed, or at the deadline;
 * connections still open then end with the process.
 *
 * @throws {Error} Deno's error when the server cannot listen on the address.
 */
export async function serve(options: ServeOptions): Promise<void> {
  const { app, signal, grace_ms = GRACE_MS, deadline_ms = DEADLINE_MS } = options;
  const { addr, finished, stop } = await (options.behind_proxy ? listenDirectly : listenWithTimeouts)(
    options,
  );
  const { hostname, port } = addr;
  options.onListen?.({ url: baseUrl(hostname, port), hostname, port });
  await Promise.race([finished, aborted(signal)]);
  let timer: ReturnType<typeof setTimeout> | undefined;
  const deadline = new Promise<void>((resolve) => timer = setTimeout(resolve, deadline_ms));
  await Promise.race([Promise.allSettled([app.drain(grace_ms)]), deadline]);
  // Stopping waits for every open response, including event streams, which drain() has ended.
  await Promise.race([Promise.allSettled([stop()]), deadline]);
  clearTimeout(timer);
}

/** A server that accepts connections. */
interface Listening {
  addr: Deno.NetAddr;
  /** Resolves if the server ends by itself. */
  finished: Promise<void>;
  /** Accepts no more connections; resolves when the open ones have ended. */
  stop(): Promise<unknown>;
}

// deno-lint-ignore require-await -- rejects when it cannot listen
async function listenDirectly({ app, host, port, ...options }: ServeOptions): Promise<Listening> {
  const server = Deno.serve(
    { hostname: host, port, onListen() {}, onError: errorHandler(options) },
    (request, info) => app.fetch(request, info),
  );
  return { addr: server.addr, finished: server.finished, stop: () => server.shutdown() };
}

async function listenWithTimeouts({ app, host, port, signal, ...options }: ServeOptions): Promise<Listening> {
  const inner = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen() {}, onError: errorHandler(options) },
    answer,
  );
  let proxy: TcpProxy;
  try {
    const timeouts = { ...CONNECTION_TIMEOUTS, ...options.connections };
    proxy = startTcpProxy(
      { hostname: host, port },
      inner.addr.port,
      options.clock ?? systemClock(),
      timeouts,
    );
  } catch (error) {
    await inner.shutdown();
    throw error;
  }

  async function answer(request: Request, info: Deno.ServeHandlerInfo<Deno.NetAddr>): Promise<Response> {
    const connection = proxy.connectionOf(info.remoteAddr.port);
    if (!connection) return new Response(null, { status: 403 }); // did not come through the proxy
    const end = connection.begin();
    const response = await app.fetch(request, connection);
    const last = endsConnection(response.status) || signal?.aborted === true || endsConnectionOf(request); // perf: reading a header of a response makes it slower to send
    info.completed.then(() => end(last), () => end(true)); // a failed response is the last one
    return response;
  }

  function stop(): Promise<unknown> {
    const proxy_stopped = proxy.stop();
    return Promise.all([inner.shutdown(), proxy_stopped]);
  }

  return { addr: proxy.addr, finished: inner.finished, stop };
}

/** Returns the handler of broken responses; Deno's default handler writes to stderr. */
function errorHandler({ onError }: Pick<ServeOptions, "onError">): (error: unknown) => Response {
  return (error) => {
    onError?.(error);
    return new Response(null, { status: 500 });
  };
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
