/** A proxy between a browser and a server, which cuts connections. */

/** A running proxy. */
export interface LoopbackProxy extends AsyncDisposable {
  /** Base URL, without a slash at the end. */
  readonly url: string;
  /** The server's URL, which may change. */
  target: string;
  /** Cuts all open connections. */
  cut(): void;
}

/** Forwards connections on a free port to the server at a URL. */
export function startProxy(target: string): LoopbackProxy {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const open = new Set<Deno.TcpConn>();
  const cut = () => {
    for (const connection of open) close(connection);
    open.clear();
  };

  async function forward(client: Deno.TcpConn): Promise<void> {
    open.add(client);
    let server: Deno.TcpConn | undefined;
    try {
      server = await Deno.connect({ hostname: "127.0.0.1", port: Number(new URL(proxy.target).port) });
      open.add(server);
      await Promise.all([
        client.readable.pipeTo(server.writable),
        server.readable.pipeTo(client.writable),
      ]);
    } catch {
      // a side has closed its connection, or the server is not there
    } finally {
      for (const connection of [client, server]) {
        if (connection === undefined) continue;
        close(connection);
        open.delete(connection);
      }
    }
  }

  const forwarded: Promise<void>[] = [];
  const accepting = (async () => {
    for await (const client of listener) forwarded.push(forward(client));
  })();
  const proxy: LoopbackProxy = {
    target,
    url: `http://127.0.0.1:${listener.addr.port}`,
    cut,
    async [Symbol.asyncDispose]() {
      listener.close();
      cut();
      await accepting;
      await Promise.all(forwarded);
    },
  };
  return proxy;
}

function close(connection: Deno.TcpConn): void {
  try {
    connection.close();
  } catch {
    // it is closed
  }
}
