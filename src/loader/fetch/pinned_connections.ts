/**
 * Connections to addresses that were checked. A host is resolved once, every address it has is asked about, and what is
 * connected to is one of those: a name that changes its mind between check and use changes nothing (threats T1, T3). No
 * proxy is used.
 */
import { addressKind } from "../../policy/address_kinds.ts";
import { defaultPort } from "../../policy/url_prefixes.ts";
import { ByteReader } from "./http1_client.ts";

/** Resolves a host to all of its addresses. */
export type Lookup = (host: string) => Promise<readonly string[]>;

/** How connections are made. */
export interface ConnectionOptions {
  /** Default: the system's resolver. */
  lookup?: Lookup;
  /** Further certificate authorities, as PEM. */
  ca_certs?: readonly string[];
}

/** A connection that may be used again. */
export interface Connection {
  readonly reader: ByteReader;
  write(bytes: Uint8Array): Promise<void>;
  close(): void;
}

/** Throws when an address of a URL's host may not be connected to. */
export type CheckAddress = (url: URL, address: string) => void;

/** Connections to one host at a time; what browsers do. */
const MAX_PER_HOST = 6;
/** Milliseconds for one address before the next is tried. */
const ADDRESS_MS = 3_000;

/** The connections of one graph. */
export class Connections {
  readonly #lookup: Lookup;
  readonly #ca_certs: readonly string[];
  readonly #check: CheckAddress;
  readonly #hosts = new Map<string, Host>();

  constructor(options: ConnectionOptions, check: CheckAddress) {
    this.#lookup = options.lookup ?? systemLookup;
    this.#ca_certs = options.ca_certs ?? [];
    this.#check = check;
  }

  /** Resolves when a connection to the URL's host may be used, to what gives the turn back. */
  async acquire(url: URL, signal: AbortSignal): Promise<() => void> {
    const host = this.#host(url);
    await host.acquire();
    if (signal.aborted) host.release();
    signal.throwIfAborted();
    return () => host.release();
  }

  /**
   * Resolves to what `use` resolves to; it is given a connection to the URL's host. One that was used before may have been
   * closed by the other side meanwhile: then `use` is called again with a new one.
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

  /** Closes what is idle. */
  close(): void {
    for (const host of this.#hosts.values()) {
      for (const connection of host.idle.splice(0)) connection.close();
    }
  }

  #host(url: URL): Host {
    const key = `${url.protocol}//${url.host}`;
    let host = this.#hosts.get(key);
    if (!host) this.#hosts.set(key, host = new Host());
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
    const name = url.hostname.startsWith("[") ? url.hostname.slice(1, -1) : url.hostname;
    const addresses = addressKind(name) === "invalid" ? await this.#lookup(name) : [name];
    if (addresses.length === 0) throw new Error("the name has no address");
    for (const address of addresses) this.#check(url, address);
    return addresses;
  }

  async #connectTo(url: URL, address: string, signal: AbortSignal): Promise<Connection> {
    const port = Number(url.port || defaultPort(url.protocol));
    const tcp = await connectWithin(Deno.connect({ hostname: address, port }), ADDRESS_MS, signal);
    tcp.setNoDelay(true);
    if (url.protocol === "http:") return connectionOf(tcp);
    const hostname = url.hostname.startsWith("[") ? url.hostname.slice(1, -1) : url.hostname;
    const tls = await Deno.startTls(tcp, {
      hostname,
      alpnProtocols: ["http/1.1"],
      ...(this.#ca_certs.length > 0 ? { caCerts: [...this.#ca_certs] } : {}),
    });
    try {
      const abort = () => closeQuietly(tls);
      signal.addEventListener("abort", abort);
      await tls.handshake().finally(() => signal.removeEventListener("abort", abort));
    } catch (error) {
      closeQuietly(tls);
      throw error;
    }
    return connectionOf(tls);
  }
}

/** A connection that was kept has nothing to say any more: nothing of an answer was read from it. */
export class StaleConnection extends Error {}

/** What is known of one origin. */
class Host {
  readonly idle: Connection[] = [];
  addresses: Promise<readonly string[]> | undefined;
  #open = 0;
  readonly #waiting: (() => void)[] = [];

  async acquire(): Promise<void> {
    if (this.#open < MAX_PER_HOST) {
      this.#open++;
      return;
    }
    await new Promise<void>((resolve) => this.#waiting.push(resolve)); // whoever leaves hands its place on
  }

  release(): void {
    const next = this.#waiting.shift();
    if (next) next();
    else this.#open--;
  }
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

/** A connection that comes too late is closed. */
async function connectWithin(
  connecting: Promise<Deno.TcpConn>,
  ms: number,
  signal: AbortSignal,
): Promise<Deno.TcpConn> {
  const ended = Promise.withResolvers<never>();
  const timer = setTimeout(() => ended.reject(new Error("connecting takes too long")), ms);
  const abort = () => ended.reject(signal.reason);
  signal.addEventListener("abort", abort);
  try {
    return await Promise.race([connecting, ended.promise]);
  } catch (error) {
    connecting.then(closeQuietly, () => {}); // its failure was told, or nobody waits for it
    throw error;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", abort);
  }
}

async function systemLookup(host: string): Promise<string[]> {
  const { lookup } = await import("node:dns/promises");
  return (await lookup(host, { all: true })).map(({ address }) => address);
}
