/** Serves an app on a TCP port, with a graceful shutdown. */
import type { App } from "../app.ts";

/** Options of {@link serve}. */
export interface ServeOptions {
  app: App;
  /** Address to listen on, such as `127.0.0.1` or `::1`. */
  host: string;
  /** 0 selects a free port. */
  port: number;
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
 * connections still open then end with the process. `Deno.serve` has no timeout of headers and idle
 * connections: a reverse proxy has (src/docs/operating.md#behind-a-reverse-proxy).
 *
 * @throws {Error} Deno's error when the server cannot listen on the address.
 */
export async function serve(options: ServeOptions): Promise<void> {
  const { app, host, port, signal, grace_ms = GRACE_MS, deadline_ms = DEADLINE_MS } = options;
  const server = Deno.serve(
    { hostname: host, port, onListen() {}, onError: reportBroken },
    (request, info) => app.fetch(request, info),
  );
  const { addr } = server;
  options.onListen?.({ url: baseUrl(addr.hostname, addr.port), hostname: addr.hostname, port: addr.port });
  await Promise.race([server.finished, aborted(signal)]);
  let timer: ReturnType<typeof setTimeout> | undefined;
  const deadline = new Promise<void>((resolve) => timer = setTimeout(resolve, deadline_ms));
  await Promise.race([Promise.allSettled([app.drain(grace_ms)]), deadline]);
  // Stopping waits for every open response, including event streams, which drain() has ended.
  await Promise.race([Promise.allSettled([server.shutdown()]), deadline]);
  clearTimeout(timer);

  /** Deno's default handler writes to stderr. */
  function reportBroken(error: unknown): Response {
    options.onError?.(error);
    return new Response(null, { status: 500 });
  }
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
