/** Sends requests from a separate process (`http_client.ts`) and measures their time. */
import { ROOT } from "./processes.ts";

/** A request to send many times. */
export interface Load {
  url: string;
  headers: Record<string, string>;
  body: string;
  requests: number;
  /** Number of persistent connections, each with one request at a time. */
  connections: number;
  /** Folder for a file with the request's bytes. */
  folder: string;
}

/** Resolves to the milliseconds from the first request to the last answer. @throws {Error} when a response is not 200. */
export async function sendRequests(load: Load): Promise<number> {
  const { hostname, port, pathname } = new URL(load.url);
  const headers = Object.entries({
    host: `${hostname}:${port}`,
    ...load.headers,
    "content-length": String(new TextEncoder().encode(load.body).length),
  });
  const head = headers.map(([name, value]) => `${name}: ${value}\r\n`).join("");
  const file = `${load.folder}/request.http`;
  await Deno.writeTextFile(file, `POST ${pathname} HTTP/1.1\r\n${head}\r\n${load.body}`);
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: [
      "run",
      "--no-prompt",
      "--allow-net",
      "--allow-read",
      `${ROOT}tests/bench/http_client.ts`,
      file,
      hostname,
      port,
      String(load.requests),
      String(load.connections),
    ],
  }).output();
  if (code !== 0) throw new Error(`Cannot measure ${load.url}: ${new TextDecoder().decode(stderr)}`);
  const { ms, statuses } = JSON.parse(new TextDecoder().decode(stdout)) as {
    ms: number;
    statuses: Record<string, number>;
  };
  if (statuses["200"] !== load.requests) {
    throw new Error(
      `Cannot measure ${load.url}: every answer must be 200: received ${JSON.stringify(statuses)}`,
    );
  }
  return ms;
}
