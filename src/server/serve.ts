/** The app on a socket: listen, and stop in time. */
import type { App } from "./app.ts";
import { systemClock } from "./clock.ts";
import type { ConnectionLimits } from "./socket/connection.ts";
import { CONNECTION_LIMITS, listen } from "./socket/listener.ts";

/** Where to listen, and how long stopping may take. */
export interface ServeOptions {
  app: App;
  /** Address to listen on, such as `127.0.0.1` or `::1`. */
  host: string;
  /** 0 takes any free port. */
  port: number;
  /** How long connections are waited for; default {@link CONNECTION_LIMITS}. */
  connections?: Partial<ConnectionLimits>;
  /** Told once, when connections are accepted. */
  onListen?(address: { url: string; hostname: string; port: number }): void;
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
 * Listens until `signal` aborts, then stops: no new connections, streams end with a `retry:` hint, runs come to rest, waiting
 * requests are answered. Resolves when nothing is open, at the latest at the deadline; what is open then ends with the
 * process.
 *
 * @throws {Error} Deno's own when the address cannot be had.
 */
export async function serve(options: ServeOptions): Promise<void> {
  const { app, host, port, signal, grace_ms = GRACE_MS, deadline_ms = DEADLINE_MS } = options;
  const listener = listen({ hostname: host, port }, {
    answer: (request) => app.answer(request),
    clock: systemClock,
    limits: { ...CONNECTION_LIMITS, ...options.connections },
  });
  const { addr } = listener;
  options.onListen?.({ url: baseUrl(addr.hostname, addr.port), ...nameOf(addr) });

  await aborted(signal);
  // A connection ends when its answer does, an event stream's too: the app ends those.
  const stopped = Promise.allSettled([listener.stop(), app.drain(grace_ms)]);
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
