/** The socket that listens: takes connections, closes those that waited too long, and stops. Knows no HTTP. */
import type { ServerClock } from "../clock.ts";
import { Connection, type ConnectionLimits, type ConnectionOptions } from "./connection.ts";

/** threats.md T11: closed within 15 s. */
export const CONNECTION_LIMITS: ConnectionLimits = { header_ms: 10_000, idle_ms: 15_000, linger_ms: 1_000 };

/** What listens. */
export interface Listener {
  readonly addr: Deno.NetAddr;
  /** Takes no more connections; resolves when those there are have ended. */
  stop(): Promise<void>;
}

/** Longest time between two looks at the connections, in milliseconds. */
const LOOK_MS = 500;
/** Milliseconds until connections are accepted again when that failed. */
const PAUSE_MS = 50;

/** Listens, and serves whoever connects. @throws {Error} Deno's own when the address cannot be had. */
export function listen(
  address: { hostname: string; port: number },
  options: Omit<ConnectionOptions, "host">,
): Listener {
  const { clock, limits } = options;
  const listener = Deno.listen(address);
  const addr = listener.addr as Deno.NetAddr; // of a TCP listener
  const host = `${addr.hostname.includes(":") ? `[${addr.hostname}]` : addr.hostname}:${addr.port}`;
  const connections = new Set<Connection>();
  const gone = Promise.withResolvers<void>();
  const look_ms = Math.min(LOOK_MS, limits.header_ms / 4, limits.idle_ms / 4, limits.linger_ms / 4);
  let looking = false;
  let stopped = false;

  async function accept(): Promise<void> {
    while (!stopped) {
      let client: Deno.TcpConn;
      try {
        client = await listener.accept();
      } catch (error) {
        if (stopped || error instanceof Deno.errors.BadResource) return;
        await pause(clock); // no descriptor left, or a client that left while it came: others are served on
        continue;
      }
      const connection = new Connection(client, { ...options, host });
      connections.add(connection);
      if (!looking) look();
      connection.run().finally(() => leave(connection));
    }
  }

  /** One timer for all connections: each would set and clear its own several times for a request. None is closed later than it says. */
  function look(): void {
    const due = clock.monotonic() + look_ms;
    for (const connection of connections) connection.check(due);
    looking = connections.size > 0;
    if (looking) clock.timer(look_ms, look);
  }

  function leave(connection: Connection): void {
    connections.delete(connection);
    if (stopped && connections.size === 0) gone.resolve();
  }

  accept();
  return {
    addr,
    stop() {
      if (!stopped) listener.close();
      stopped = true;
      for (const connection of connections) connection.endWhenIdle();
      if (connections.size === 0) gone.resolve();
      return gone.promise;
    },
  };
}

function pause(clock: ServerClock): Promise<void> {
  return new Promise((resolve) => void clock.timer(PAUSE_MS, resolve));
}
