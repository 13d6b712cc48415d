/** The published server `server-everything` over HTTP on loopback, and a proxy that cuts its streams. */
import { eventsOf } from "../../modules/tool-mcp/lines.ts";
import { freePort } from "./free_port.ts";

const PACKAGE = "npm:@modelcontextprotocol/server-everything@2026.8.31";

/** A started server. */
export interface EverythingServer {
  readonly url: string;
  /** Kills it. */
  kill(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Starts the server. Resolves when it listens. */
export async function startEverything(
  transport: "streamableHttp" | "sse",
  port = freePort(),
): Promise<EverythingServer> {
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "--quiet", "--no-config", "--no-lock", "--node-modules-dir=none", "-A", PACKAGE, transport],
    env: { PORT: String(port) },
    stdin: "null",
    stdout: "null",
    stderr: "piped",
  }).spawn();
  const listening = Promise.withResolvers<void>();
  const reading = (async () => {
    let text = "";
    for await (const part of child.stderr.pipeThrough(new TextDecoderStream())) {
      text += part;
      if (/listening|running on port/i.test(text)) listening.resolve();
    }
    listening.reject(new Error(`server-everything did not start: ${text}`));
  })();
  await listening.promise;
  const kill = async () => {
    try {
      child.kill("SIGKILL");
    } catch {
      // it has ended
    }
    await child.status;
    await reading;
  };
  const path = transport === "sse" ? "/sse" : "/mcp";
  return { url: `http://127.0.0.1:${port}${path}`, kill, [Symbol.asyncDispose]: kill };
}

/** A proxy in front of a server. */
export interface CuttingProxy {
  readonly url: string;
  /** How many streams of answers it ends after their first event from now on. */
  cuts: number;
  /** Requests that took up a stream. */
  readonly taken_up: string[];
  [Symbol.asyncDispose](): Promise<void>;
}

/** Starts a proxy that ends streams of answers after their first event. */
export function startProxy(target: string): CuttingProxy {
  const taken_up: string[] = [];
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, async (request) => {
    const last = request.headers.get("last-event-id");
    if (last !== null) taken_up.push(last);
    const { method, headers, body } = request;
    const response = await fetch(target, { method, headers, body }).catch(() => null);
    if (response === null) return new Response("The server is not there", { status: 502 });
    const is_stream = response.headers.get("content-type")?.includes("text/event-stream");
    if (request.method !== "POST" || !is_stream || proxy.cuts === 0) return response;
    proxy.cuts--;
    const events = eventsOf(response.body!, 1_000_000);
    const { value } = await events.next();
    await events.return(undefined);
    const { id, data } = value!;
    const text = `${id === undefined ? "" : `id: ${id}\n`}${data === "" ? "data: \n" : `data: ${data}\n`}\n`;
    return new Response(text, { headers: { "content-type": "text/event-stream" } });
  });
  const proxy: CuttingProxy = {
    url: `http://127.0.0.1:${server.addr.port}/mcp`,
    cuts: 0,
    taken_up,
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
  return proxy;
}
