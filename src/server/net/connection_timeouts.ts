/**
 * TCP proxy in front of `Deno.serve`, in the same process. Deno's server has no header or idle timeout and
 * cannot close a connection with an unread body (Deno 2.6 to 2.9: a pending read keeps it open until the
 * client disconnects).
 *
 * The proxy accepts client connections, enforces those timeouts and forwards bytes to a loopback listener;
 * requests that did not come through the proxy get 403. It does not parse HTTP: the request handler reports
 * when a request starts and ends. Costs about 10 µs of processor time per request, which `--behind-proxy`
 * saves; `node:http` costs more (src/docs/performance.md#cost-of-a-request).
 */
import type { SystemClock } from "../../process/system_clock.ts";

/** Timeouts of a client connection, in milliseconds. */
export interface ConnectionTimeouts {
  /** From the first byte of a request until its header is complete. */
  header_ms: number;
  /** Without an active request. */
  idle_ms: number;
  /**
   * After the last response: bytes of the client are discarded, so that the client can read that response.
   */
  linger_ms: number;
}

/** The default timeouts: a connection that sends nothing is closed within 15 s. */
export const CONNECTION_TIMEOUTS: ConnectionTimeouts = {
  header_ms: 10_000,
  idle_ms: 15_000,
  linger_ms: 1_000,
};

/** A client connection, for the handler of its requests. */
export interface Connection {
  /** Address of the client. */
  readonly remoteAddr: Deno.NetAddr;
  /** Settles when the client has taken the bytes that wait for it; null: none wait. Never rejects. */
  readonly forwarding: Promise<void> | null;
  /**
   * Reports the start of a request. The returned function reports that its response was sent, and if the
   * connection ends.
   */
  begin(): (last: boolean) => void;
}

/** A listening proxy. */
export interface TcpProxy {
  readonly addr: Deno.NetAddr;
  /**
   * Returns the connection that is forwarded from this loopback port; undefined if the proxy did not open it.
   */
  connectionOf(port: number): Connection | undefined;
  /** Accepts no more connections; resolves when the open ones have ended. */
  stop(): Promise<void>;
}

/** Milliseconds without a byte after which the rest of a completed response counts as forwarded. */
const QUIET_MS = 50;
/**
 * The same before its first byte, which the server of a busy process sends late, and while the proxy stops:
 * the stopping server closes its connections itself, after their last byte.
 */
const LONG_QUIET_MS = 2_000;
const SMALL_BUFFER = 4 * 1024;
const LARGE_BUFFER = 64 * 1024;

/**
 * Listens on `address` and forwards connections to `port` on loopback.
 *
 * @throws {Error} Deno's error when it cannot listen.
 */
export function startTcpProxy(
  address: { hostname: string; port: number },
  port: number,
  clock: SystemClock,
  timeouts: ConnectionTimeouts = CONNECTION_TIMEOUTS,
): TcpProxy {
  const listener = Deno.listen(address);
  const connections = new Set<ProxiedConnection>();
  const by_port = new Map<number, ProxiedConnection>();
  const all_closed = Promise.withResolvers<void>();
  let stopped = false;

  async function accept(): Promise<void> {
    while (!stopped) {
      let client: Deno.TcpConn;
      try {
        client = await listener.accept();
      } catch (error) {
        if (stopped) return;
        if (error instanceof Deno.errors.BadResource) return;
        await pause(QUIET_MS); // no file descriptor left, or the client disconnected early: keep accepting
        continue;
      }
      const connection = new ProxiedConnection(client, port, { clock, timeouts, by_port });
      connections.add(connection);
      connection.run().finally(() => remove(connection));
    }
  }

  function remove(connection: ProxiedConnection): void {
    connections.delete(connection);
    if (stopped && connections.size === 0) all_closed.resolve();
  }

  function pause(ms: number): Promise<void> {
    return new Promise((resolve) => void clock.later(ms, resolve));
  }

  accept();
  return {
    addr: listener.addr as Deno.NetAddr, // of a TCP listener
    connectionOf: (port) => by_port.get(port),
    stop() {
      if (!stopped) listener.close();
      stopped = true;
      for (const connection of connections) connection.endWhenIdle();
      if (connections.size === 0) all_closed.resolve();
      return all_closed.promise;
    },
  };
}

interface ProxiedConnectionDeps {
  clock: SystemClock;
  timeouts: ConnectionTimeouts;
  by_port: Map<number, ProxiedConnection>;
}

/** Forwards the bytes of one client connection. */
class ProxiedConnection implements Connection {
  readonly remoteAddr: Deno.NetAddr;
  forwarding: Promise<void> | null = null;
  readonly #client: Deno.TcpConn;
  readonly #port: number;
  readonly #deps: ProxiedConnectionDeps;
  #server: Deno.TcpConn | undefined;
  #cancel_deadline: (() => void) | undefined;
  /** Number of active requests. */
  #active = 0;
  #waits_for_header = false;
  /** True once bytes of the latest response have been forwarded. */
  #answered = false;
  /** True if the connection ends as soon as it has no active request. */
  #stopping = false;
  /** True if no more requests are accepted. */
  #ending = false;
  #closed = false;
  /** True if the client has closed its side. */
  #client_done = false;
  readonly #closing = Promise.withResolvers<void>();
  #cancel_quiet_timer: (() => void) | undefined;

  constructor(client: Deno.TcpConn, port: number, deps: ProxiedConnectionDeps) {
    this.remoteAddr = client.remoteAddr;
    this.#client = client;
    this.#port = port;
    this.#deps = deps;
    client.setNoDelay();
    this.#closeIn(deps.timeouts.idle_ms);
  }

  begin(): (last: boolean) => void {
    this.#active++;
    this.#waits_for_header = false;
    this.#answered = false;
    this.#cancel_deadline?.();
    let ended = false;
    return (last) => {
      if (ended) return;
      ended = true;
      this.#active--;
      if (last || this.#stopping && this.#active === 0) {
        this.#ending = true;
        this.#awaitQuiet();
      } else if (this.#active === 0) this.#closeIn(this.#deps.timeouts.idle_ms);
    };
  }

  /** Ends the connection once its requests are answered and the responses are forwarded. */
  endWhenIdle(): void {
    this.#stopping = true;
    if (this.#active > 0 || this.#ending) return;
    if (!this.#server) return this.close(); // it never sent a byte
    this.#ending = true;
    this.#awaitQuiet();
  }

  /** Closes the connection in `ms` milliseconds, unless a later call changes or cancels this. */
  #closeIn(ms: number): void {
    if (this.#closed) return;
    this.#cancel_deadline?.();
    this.#cancel_deadline = this.#deps.clock.later(ms, () => this.close());
  }

  /** Forwards bytes in both directions; resolves when the connection is closed. Never rejects. */
  run(): Promise<void> {
    // A read error closes both sockets; the handler sees it as an aborted request.
    this.#fromClient().catch(() => this.close());
    return this.#closing.promise;
  }

  async #fromClient(): Promise<void> {
    let buffer = new Uint8Array(SMALL_BUFFER);
    for (;;) {
      const length = await this.#client.read(buffer);
      if (length === null) break;
      if (this.#ending) continue; // discarded: see linger_ms
      if (this.#active === 0 && !this.#waits_for_header) {
        this.#waits_for_header = true;
        this.#closeIn(this.#deps.timeouts.header_ms);
      }
      await writeAll(this.#server ?? await this.#connect(), buffer.subarray(0, length));
      if (length === buffer.length && length < LARGE_BUFFER) buffer = new Uint8Array(LARGE_BUFFER);
    }
    this.#client_done = true;
    if (this.#server && !this.#ending) await this.#server.closeWrite();
    else this.close();
  }

  /** Connects to the server on the client's first byte, so that an idle client costs one connection. */
  async #connect(): Promise<Deno.TcpConn> {
    const server = await Deno.connect({ hostname: "127.0.0.1", port: this.#port });
    if (this.#closed) {
      server.close();
      throw new Deno.errors.ConnectionAborted("closed while connecting");
    }
    server.setNoDelay();
    this.#server = server;
    this.#deps.by_port.set(server.localAddr.port, this);
    this.#fromServer(server).catch(() => this.close());
    return server;
  }

  async #fromServer(server: Deno.TcpConn): Promise<void> {
    let buffer = new Uint8Array(SMALL_BUFFER);
    for (;;) {
      const length = await server.read(buffer);
      if (length === null) break;
      this.#cancel_quiet_timer?.();
      const writing = writeAll(this.#client, buffer.subarray(0, length));
      this.forwarding = writing.catch(() => {}); // thrown below
      await writing;
      this.forwarding = null;
      this.#answered = true;
      if (this.#ending) this.#awaitQuiet();
      if (length === buffer.length && length < LARGE_BUFFER) buffer = new Uint8Array(LARGE_BUFFER);
    }
    await this.#endGracefully();
  }

  #awaitQuiet(): void {
    this.#cancel_quiet_timer?.();
    this.#cancel_quiet_timer = this.#deps.clock.later(
      this.#answered && !this.#stopping ? QUIET_MS : LONG_QUIET_MS,
      () => void this.#endGracefully().catch(() => this.close()),
    );
  }

  /**
   * Closes the writing side, then waits up to `linger_ms` for the client to close. Closing at once while the
   * client sends would reset the connection, and the client would lose the response.
   */
  async #endGracefully(): Promise<void> {
    if (this.#closed) return;
    this.#ending = true;
    this.#closeIn(this.#deps.timeouts.linger_ms);
    this.#closeServer();
    await this.#client.closeWrite();
    if (this.#client_done) this.close();
  }

  #closeServer(): void {
    const server = this.#server;
    if (!server) return;
    this.#server = undefined;
    this.#deps.by_port.delete(server.localAddr.port);
    closeQuietly(server);
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#cancel_deadline?.();
    this.#cancel_quiet_timer?.();
    this.#closeServer();
    closeQuietly(this.#client);
    this.#closing.resolve();
  }
}

async function writeAll(connection: Deno.TcpConn, bytes: Uint8Array): Promise<void> {
  for (let offset = 0; offset < bytes.length;) offset += await connection.write(bytes.subarray(offset));
}

function closeQuietly(connection: Deno.TcpConn): void {
  try {
    connection.close();
  } catch (error) {
    if (!(error instanceof Deno.errors.BadResource)) throw error; // already closed
  }
}
