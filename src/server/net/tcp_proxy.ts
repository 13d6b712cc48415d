/**
 * The socket in front of `Deno.serve`, in the same process. Deno's server has no deadline for a header, none for an idle
 * connection, and cannot let go of one whose body was not read to its end, `Connection: close` or not (Deno 2.6 to 2.9: a
 * pending read of the body keeps it open until the client leaves; threats.md T10, T11). So connections are accepted here, watched
 * here and closed here; their bytes pass through to a server on loopback that nobody else is let in to. Costs about 30 µs a
 * request. Knows bytes and time, no HTTP: when a request is under way is told by whoever handles it.
 */
import type { ServerClock } from "../clock.ts";
import { DeadlineSweeper, type HasDeadline } from "./deadline_sweeper.ts";

/** How long connections are waited for, in milliseconds. */
export interface ConnectionTimeouts {
  /** From the first byte of a request until it is there to be handled: its header. */
  header_ms: number;
  /** Without a request under way. */
  idle_ms: number;
  /** What an ended connection may still send, thrown away so that its client can read the last answer. */
  linger_ms: number;
}

/** threats.md T11: closed within 15 s. */
export const CONNECTION_TIMEOUTS: ConnectionTimeouts = {
  header_ms: 10_000,
  idle_ms: 15_000,
  linger_ms: 1_000,
};

/** One client's connection, as the handler of its requests sees it. */
export interface Connection {
  /** Says that a request is under way; the returned function, that its answer was sent, and whether it was the last one. */
  begin(): (last: boolean) => void;
}

/** What listens. */
export interface TcpProxy {
  readonly addr: Deno.NetAddr;
  /** Returns the connection whose bytes come from this port of loopback; undefined for a stranger's. */
  connectionOf(port: number): Connection | undefined;
  /** Takes no more connections; resolves when those there are have ended. */
  stop(): Promise<void>;
}

/** Milliseconds without a byte after which an answer that was sent whole has passed through. */
const QUIET_MS = 50;
/** How often deadlines of connections are looked at; more often when a limit is that short. */
const TICK_MS = 250;
const SMALL_BUFFER = 4 * 1024;
const LARGE_BUFFER = 64 * 1024;

/** Listens, and passes connections on to `port` of loopback. @throws {Error} Deno's own when the address cannot be had. */
export function startTcpProxy(
  address: { hostname: string; port: number },
  port: number,
  clock: ServerClock,
  limits: ConnectionTimeouts = CONNECTION_TIMEOUTS,
): TcpProxy {
  const listener = Deno.listen(address);
  const connections = new Set<ProxiedConnection>();
  const by_port = new Map<number, ProxiedConnection>();
  const watch = new DeadlineSweeper(clock, Math.min(TICK_MS, ...Object.values(limits).map((ms) => ms / 8)));
  const gone = Promise.withResolvers<void>();
  let stopped = false;

  async function accept(): Promise<void> {
    while (!stopped) {
      let client: Deno.TcpConn;
      try {
        client = await listener.accept();
      } catch (error) {
        if (stopped) return;
        if (error instanceof Deno.errors.BadResource) return;
        await pause(QUIET_MS); // no descriptor left, or a client that left while it came: others are served on
        continue;
      }
      const passage = new ProxiedConnection(client, port, { clock, limits, by_port, watch });
      connections.add(passage);
      passage.run().finally(() => leave(passage));
    }
  }

  function leave(passage: ProxiedConnection): void {
    connections.delete(passage);
    if (stopped && connections.size === 0) gone.resolve();
  }

  function pause(ms: number): Promise<void> {
    return new Promise((resolve) => void clock.timer(ms, resolve));
  }

  accept();
  return {
    addr: listener.addr as Deno.NetAddr, // of a TCP listener
    connectionOf: (port) => by_port.get(port),
    stop() {
      if (!stopped) listener.close();
      stopped = true;
      for (const passage of connections) passage.endWhenIdle();
      if (connections.size === 0) gone.resolve();
      return gone.promise;
    },
  };
}

interface PassageOptions {
  clock: ServerClock;
  limits: ConnectionTimeouts;
  by_port: Map<number, ProxiedConnection>;
  watch: DeadlineSweeper;
}

/** One connection and its way through. */
class ProxiedConnection implements Connection, HasDeadline {
  readonly #client: Deno.TcpConn;
  readonly #port: number;
  readonly #options: PassageOptions;
  #server: Deno.TcpConn | undefined;
  deadline = Infinity;
  /** Requests under way. */
  #active = 0;
  /** When the latest answer was sent: the last of its bytes may not have passed through yet. */
  #answered_at = -Infinity;
  #waits_for_header = false;
  /** Whether it ends as soon as no request is under way. */
  #stopping = false;
  /** Whether an answer was the last one. */
  #ending = false;
  #closed = false;
  /** Whether the client has said that nothing follows. */
  #client_done = false;
  readonly #gone = Promise.withResolvers<void>();
  #stop_quiet: (() => void) | undefined;

  constructor(client: Deno.TcpConn, port: number, options: PassageOptions) {
    this.#client = client;
    this.#port = port;
    this.#options = options;
    client.setNoDelay();
    this.#due(options.limits.idle_ms);
    options.watch.add(this);
  }

  begin(): (last: boolean) => void {
    this.#active++;
    this.#waits_for_header = false;
    this.deadline = Infinity;
    let ended = false;
    return (last) => {
      if (ended) return;
      ended = true;
      this.#active--;
      this.#answered_at = this.#options.clock.monotonic();
      if (last || this.#stopping && this.#active === 0) {
        this.#ending = true;
        this.#awaitQuiet();
      } else if (this.#active === 0) this.#due(this.#options.limits.idle_ms);
    };
  }

  /** Ends the connection once its requests are answered, and their answers have passed through. */
  endWhenIdle(): void {
    this.#stopping = true;
    if (this.#active > 0 || this.#ending) return;
    if (this.#options.clock.monotonic() - this.#answered_at >= QUIET_MS) return this.close();
    this.#ending = true;
    this.#awaitQuiet();
  }

  /** Closed in so many milliseconds, unless something comes. */
  #due(ms: number): void {
    this.deadline = this.#options.clock.monotonic() + ms;
  }

  /** Passes bytes both ways; resolves when the connection is closed. Never rejects. */
  run(): Promise<void> {
    // broken: whoever handles its request is told by the other half's end
    this.#fromClient().catch(() => this.close());
    return this.#gone.promise;
  }

  async #fromClient(): Promise<void> {
    let buffer = new Uint8Array(SMALL_BUFFER);
    for (;;) {
      const length = await this.#client.read(buffer);
      if (length === null) break;
      if (this.#ending) continue; // lingers: nobody reads it any more
      if (this.#active === 0 && !this.#waits_for_header) {
        this.#waits_for_header = true;
        this.#due(this.#options.limits.header_ms);
      }
      await writeAll(this.#server ?? await this.#connect(), buffer.subarray(0, length));
      if (length === buffer.length && length < LARGE_BUFFER) buffer = new Uint8Array(LARGE_BUFFER);
    }
    this.#client_done = true;
    if (this.#server && !this.#ending) await this.#server.closeWrite();
    else this.close();
  }

  /** A connection that never sends anything costs no second one. */
  async #connect(): Promise<Deno.TcpConn> {
    const server = await Deno.connect({ hostname: "127.0.0.1", port: this.#port });
    if (this.#closed) {
      server.close();
      throw new Deno.errors.ConnectionAborted("closed while it was connected");
    }
    server.setNoDelay();
    this.#server = server;
    this.#options.by_port.set(server.localAddr.port, this);
    this.#fromServer(server).catch(() => this.close());
    return server;
  }

  async #fromServer(server: Deno.TcpConn): Promise<void> {
    let buffer = new Uint8Array(SMALL_BUFFER);
    for (;;) {
      const length = await server.read(buffer);
      if (length === null) break;
      this.#stop_quiet?.();
      await writeAll(this.#client, buffer.subarray(0, length));
      if (this.#ending) this.#awaitQuiet();
      if (length === buffer.length && length < LARGE_BUFFER) buffer = new Uint8Array(LARGE_BUFFER);
    }
    await this.#letGo();
  }

  #awaitQuiet(): void {
    this.#stop_quiet?.();
    this.#stop_quiet = this.#options.clock.timer(
      QUIET_MS,
      () => void this.#letGo().catch(() => this.close()),
    );
  }

  /**
   * Says that nothing follows, then waits a little for the client to leave: closing while it sends would reset the connection, and
   * take the answer with it before it was read.
   */
  async #letGo(): Promise<void> {
    if (this.#closed) return;
    this.#ending = true;
    this.#due(this.#options.limits.linger_ms);
    this.#closeServer();
    await this.#client.closeWrite();
    if (this.#client_done) this.close();
  }

  #closeServer(): void {
    const server = this.#server;
    if (!server) return;
    this.#server = undefined;
    this.#options.by_port.delete(server.localAddr.port);
    closeQuietly(server);
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#options.watch.delete(this);
    this.#stop_quiet?.();
    this.#closeServer();
    closeQuietly(this.#client);
    this.#gone.resolve();
  }
}

async function writeAll(connection: Deno.TcpConn, bytes: Uint8Array): Promise<void> {
  for (let offset = 0; offset < bytes.length;) offset += await connection.write(bytes.subarray(offset));
}

function closeQuietly(connection: Deno.TcpConn): void {
  try {
    connection.close();
  } catch (error) {
    if (!(error instanceof Deno.errors.BadResource)) throw error; // the other side was quicker
  }
}
