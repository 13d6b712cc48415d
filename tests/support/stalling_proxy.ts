/** A TCP proxy whose connections can be lost without a sign, as behind a firewall that forgets them. */
export interface StallingProxy extends Disposable {
  /** The URL of the server, with the address of the proxy. */
  readonly url: string;
  /** Number of connections so far, and all text that clients have sent. */
  readonly seen: { connections: number; sent: string };
  /** From now on the connections that are open forward nothing, and stay open. */
  stall(): void;
}

/** Starts a proxy on loopback. `url`: that of a server on loopback. */
export function stallingProxy(url: string): StallingProxy {
  const { hostname, port } = new URL(url);
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const links = new Set<Link>();
  const seen = { connections: 0, sent: "" };
  const accept = async () => {
    for await (const client of listener) {
      seen.connections++;
      links.add(linked([client, await Deno.connect({ hostname, port: +port })], seen));
    }
  };
  accept().catch(() => {}); // closed
  const proxied = new URL(url);
  proxied.port = String(listener.addr.port);
  return {
    url: proxied.href,
    seen,
    stall: () => links.forEach((link) => link.open = new Promise(() => {})),
    [Symbol.dispose]() {
      listener.close();
      for (const end of [...links].flatMap(({ ends }) => ends)) {
        try {
          end.close();
        } catch {
          // it was closed
        }
      }
    },
  };
}

/** Two connections whose bytes are forwarded while `open` is resolved. */
interface Link {
  open: Promise<void>;
  readonly ends: readonly Deno.TcpConn[];
}

function linked(ends: [Deno.TcpConn, Deno.TcpConn], seen: StallingProxy["seen"]): Link {
  const link: Link = { open: Promise.resolve(), ends };
  const forward = (from: Deno.TcpConn, to: Deno.TcpConn) => {
    const gate = new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
      async transform(bytes, controller) {
        await link.open;
        if (from === ends[0]) seen.sent += new TextDecoder("latin1").decode(bytes);
        controller.enqueue(bytes);
      },
    });
    from.readable.pipeThrough(gate).pipeTo(to.writable).catch(() => {}); // one end was closed
  };
  forward(ends[0], ends[1]);
  forward(ends[1], ends[0]);
  return link;
}
