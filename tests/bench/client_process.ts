/** Runs clients in separate processes, so that their work is not measured. */
import type { Sent } from "./http_client.ts";
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

/** Sends the requests. Resolves to their times. @throws {Error} when a response is not 200. */
export async function sendRequests(load: Load): Promise<Sent> {
  const sent = await runClient<Sent>("http_client.ts", load, [load.requests, load.connections]);
  if (sent.statuses["200"] === load.requests) return sent;
  throw new Error(
    `Cannot measure ${load.url}: every answer must be 200: received ${JSON.stringify(sent.statuses)}`,
  );
}

/**
 * Runs a client of this folder with a file of the request's bytes, host, port and `args`. Resolves to its one
 * JSON line.
 */
export async function runClient<Figures>(
  script: string,
  { url, headers, body, folder }: Pick<Load, "url" | "headers" | "body" | "folder">,
  args: readonly number[],
): Promise<Figures> {
  const { hostname, port, pathname } = new URL(url);
  const all = Object.entries({
    host: `${hostname}:${port}`,
    ...headers,
    "content-length": String(new TextEncoder().encode(body).length),
  });
  const head = all.map(([name, value]) => `${name}: ${value}\r\n`).join("");
  const file = `${folder}/request.http`;
  await Deno.writeTextFile(file, `POST ${pathname} HTTP/1.1\r\n${head}\r\n${body}`);
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: [
      "run",
      "--no-prompt",
      "--allow-net",
      "--allow-read",
      `${ROOT}tests/bench/${script}`,
      file,
      hostname,
      port,
      ...args.map(String),
    ],
  }).output();
  if (code !== 0) throw new Error(`Cannot measure ${url}: ${new TextDecoder().decode(stderr)}`);
  return JSON.parse(new TextDecoder().decode(stdout)) as Figures;
}
