/**
 * Connects only to addresses that were checked. A host is resolved once and all its addresses are checked, so
 * a DNS answer that changes later has no effect. Does not use proxies.
 */
import { untilAborted } from "../abortable.ts";
import { ByteReader } from "./http1_client.ts";
import { addressKind } from "./ip_address.ts";

/** Options of {@link Connections}. */
export interface ConnectionOptions {
  /** Resolves a host to all its addresses. Default: the system's resolver. */
  lookup?: (host: string) => Promise<readonly string[]>;
  /** Additional certificate authorities, as PEM. */
  ca_certs?: readonly string[];
}

/** A reusable connection. */
export interface Connection {
  readonly reader: ByteReader;
  write(bytes: Uint8Array): Promise<void>;
  close(): void;
}

/** Milliseconds to connect to one address before the next is tried. */
const ADDRESS_MS = 3_000;

/** Connections of one graph. */
export class Connections {
  readonly #options: ConnectionOptions;
  readonly #check: (url: URL, address: string) => void;
  readonly #hosts = new Map<string, Host>();

  /** @param check Throws if the address of a URL's host is not allowed. */
  constructor(options: ConnectionOptions, check: (url: URL, address: string) => void) {
    this.#options = options;
    this.#check = check;
  }

  /**
   * Calls `use` with a connection to the URL's host and resolves to its value. If a reused connection was
   * closed by the server, `use` is called again with a new one.
   */
  async use<T>(
    url: URL,
    signal: AbortSignal,
    use: (connection: Connection) => Promise<{ value: T; reusable: boolean }>,
  ): Promise<T> {
    const host = this.#host(url);
    for (;;) {
      const idle = host.idle.pop();
      const connection = idle ?? await this.#connect(url, host, signal);
      const abort = () => connection.close();
      signal.addEventListener("abort", abort);
      try {
        const { value, reusable } = await use(connection);
        if (reusable && !signal.aborted) host.idle.push(connection);
        else connection.close();
        return value;
      } catch (error) {
        connection.close();
        if (!idle || signal.aborted || !(error instanceof StaleConnection)) throw error;
      } finally {
        signal.removeEventListener("abort", abort);
      }
    }
  }

  /** Closes idle connections. */
  close(): void {
    for (const host of this.#hosts.values()) {
      for (const connection of host.idle.splice(0)) connection.close();
    }
  }

  #host(url: URL): Host {
    const key = `${url.protocol}//${url.host}`;
    let host = this.#hosts.get(key);
    if (!host) this.#hosts.set(key, host = { idle: [] });
    return host;
  }

  async #connect(url: URL, host: Host, signal: AbortSignal): Promise<Connection> {
    host.addresses ??= this.#addressesOf(url);
    const addresses = await host.addresses;
    let failure: unknown;
    for (const address of addresses) {
      signal.throwIfAborted();
      try {
        return await this.#connectTo(url, address, signal);
      } catch (error) {
        failure = error;
      }
    }
    throw failure;
  }

  async #addressesOf(url: URL): Promise<readonly string[]> {
    const { lookup = systemLookup } = this.#options;
    const name = hostOf(url);
    const addresses = addressKind(name) === "invalid" ? await lookup(name) : [name];
    if (addresses.length === 0) throw new Error("the name has no address");
    for (const address of addresses) this.#check(url, address);
    return addresses;
  }

  async #connectTo(url: URL, address: string, signal: AbortSignal): Promise<Connection> {
    const port = Number(url.port || (url.protocol === "https:" ? 443 : 80));
    const tcp = await connectWithin(Deno.connect({ hostname: address, port }), ADDRESS_MS, signal);
    tcp.setNoDelay(true);
    if (url.protocol === "http:") return connectionOf(tcp);
    const { ca_certs = [] } = this.#options;
    const hostname = hostOf(url);
    const tls = await Deno.startTls(tcp, { hostname, alpnProtocols: ["http/1.1"], caCerts: [...ca_certs] });
    try {
      await untilAborted(signal, tls.handshake());
    } catch (error) {
      closeQuietly(tls);
      throw error;
    }
    return connectionOf(tls);
  }
}

/** Returns the host of a URL, an IPv6 address without brackets. */
function hostOf({ hostname }: URL): string {
  return hostname.startsWith("[") ? hostname.slice(1, -1) : hostname;
}

/**
 * Thrown when a reused connection was closed before any response byte. The request may be retried on a new
 * connection.
 */
export class StaleConnection extends Error {}

/** Connections and addresses of one origin. */
interface Host {
  readonly idle: Connection[];
  addresses?: Promise<readonly string[]>;
}

function connectionOf(conn: Deno.Conn): Connection {
  return {
    reader: new ByteReader((buffer) => conn.read(buffer)),
    async write(bytes) {
      for (let at = 0; at < bytes.length;) at += await conn.write(bytes.subarray(at));
    },
    close: () => closeQuietly(conn),
  };
}

function closeQuietly(conn: Deno.Conn): void {
  try {
    conn.close();
  } catch {
    // closed already
  }
}

/** Resolves to the connection, or rejects after `ms` or on abort; a late connection is closed. */
async function connectWithin(
  connecting: Promise<Deno.TcpConn>,
  ms: number,
  signal: AbortSignal,
): Promise<Deno.TcpConn> {
  try {
    return await untilAborted(AbortSignal.any([signal, AbortSignal.timeout(ms)]), connecting);
  } catch (error) {
    connecting.then(closeQuietly, () => {}); // its error was reported already
    throw error;
  }
}

/** Resolves a host to all its addresses with the resolver of the system. */
export async function systemLookup(host: string): Promise<string[]> {
  const { lookup } = await import("node:dns/promises");
  return (await lookup(host, { all: true })).map(({ address }) => address);
}
