/**
 * Listeners as a process of their own, so that they answer whatever the tests are busy with: one that guests
 * may be granted, and two, TCP and a unix socket, that must not be reached. Arguments: path of the unix
 * socket, path of the secret. The first line says where they are, as JSON; each line after it is a connection
 * that should not have been. Ends with its stdin.
 */

function say(line: string): void {
  Deno.stdout.writeSync(new TextEncoder().encode(`${line}\n`));
}

/** Answers every HTTP request and reports it. */
async function accept(listener: Deno.Listener, name: string): Promise<void> {
  const body = "trespassed";
  const head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n";
  const answer = new TextEncoder().encode(`${head}content-length: ${body.length}\r\n\r\n${body}`);
  for await (const connection of listener) {
    say(name);
    respond(connection, answer).catch(() => {}); // the client closed the connection
  }
}

async function respond(connection: Deno.Conn, answer: Uint8Array): Promise<void> {
  using _ = connection;
  await connection.read(new Uint8Array(4096));
  await connection.write(answer);
}

/** What may be granted: a page, and redirects to what may not. */
function answerOpen(request: Request, closed: string, secret: string): Response {
  const { pathname, searchParams } = new URL(request.url);
  const redirect = (location: string) =>
    new Response(null, { status: Number(searchParams.get("status") ?? 302), headers: { location } });
  if (pathname === "/redirect") return redirect(closed);
  if (pathname === "/redirect_to_file") return redirect(`file://${secret}`);
  return new Response("You may fetch this.");
}

if (import.meta.main) {
  const [socket = "", secret = ""] = Deno.args;
  const closed = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const closed_url = `http://127.0.0.1:${(closed.addr as Deno.NetAddr).port}/`;
  const open = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen() {} },
    (request) => answerOpen(request, closed_url, secret),
  );
  accept(closed, "tcp").catch(() => Deno.exit(1));
  accept(Deno.listen({ transport: "unix", path: socket }), "unix").catch(() => Deno.exit(1));
  say(JSON.stringify({ open_url: `http://127.0.0.1:${open.addr.port}/`, closed_url }));
  for await (const _ of Deno.stdin.readable); // until the parent process closes stdin
  Deno.exit(0);
}
