/**
 * Requests per second, their 99th percentile and processor time: `POST /v1/runs` with an inline plan (one
 * answer, no tool, memory store, JSON) over `createPreamp().fetch` and through `preamp serve`, compared with
 * a bare `Deno.serve` and with Hono that parse the same body and return the same bytes. Client and servers
 * are separate processes; the number of requests is fixed.
 *
 *   deno run -A tests/bench/http_bench.ts [requests] [rounds]
 */
import { type Cell, median, print, report, tableOf } from "./figures.ts";
import { HELLO_BODY, HELLO_HEADERS } from "./hello_request.ts";
import { sendRequests } from "./client_process.ts";
import {
  preampProgram,
  processorMs,
  type Program,
  residentMb,
  ROOT,
  type ServerProcess,
  startServer,
} from "./processes.ts";

/** Persistent connections. */
const CONNECTIONS = 8;
/** Requests to each server before the first round: V8 optimises a run for thousands of requests. */
const WARM_UP_REQUESTS = 20_000;
/** Parts of the floor's requests that `fetch` and `preamp serve` reach. */
const TARGETS: Readonly<Record<string, number>> = { "createPreamp().fetch": 0.25, "preamp serve": 0.18 };

/** One round of one server; processor time is null where it cannot be measured. */
interface Figures {
  readonly per_s: number;
  readonly p99_ms: number;
  readonly cpu_us: number | null;
}

const requests = Number(Deno.args[0] ?? 2_000);
const rounds = Number(Deno.args[1] ?? 5);

/** Headers that depend on the connection or the time. */
const PER_CONNECTION: ReadonlySet<string> = new Set([
  "connection",
  "content-length",
  "date",
  "transfer-encoding",
]);

const folder = await Deno.makeTempDir();
try {
  const serve = await preampProgram({ home: folder, store: "memory" });
  await using preamp = await startServer(serve);
  const { raw, json } = await answerFiles(preamp.url);
  await using over_fetch = await startServer(script("fetch_server.ts"));
  await using hono = await startServer(script("floor_hono.ts", json));
  await using floor = await startServer(script("floor_server.ts", raw));
  const servers: Readonly<Record<string, ServerProcess>> = {
    "Deno.serve": floor,
    Hono: hono,
    "createPreamp().fetch": over_fetch,
    "preamp serve": preamp,
  };
  const rounds_of = new Map<string, Figures[]>(Object.keys(servers).map((name) => [name, []]));
  for (const server of Object.values(servers)) await measure(server, WARM_UP_REQUESTS);
  for (let round = 0; round < rounds; round++) {
    for (const [name, server] of Object.entries(servers)) {
      rounds_of.get(name)?.push(await measure(server, requests));
    }
  }
  printFigures(rounds_of, await residentMb(preamp.pid));
} finally {
  await Deno.remove(folder, { recursive: true });
}

/** Returns a server of this folder. */
function script(name: string, ...args: string[]): Program {
  return {
    command: Deno.execPath(),
    args: ["run", "--no-prompt", "-A", `${ROOT}tests/bench/${name}`, ...args],
  };
}

/**
 * Resolves to files for the floors: the runtime's response to the request with its headers, and its JSON
 * alone.
 */
async function answerFiles(url: string): Promise<{ raw: string; json: string }> {
  const response = await fetch(`${url}/v1/runs`, {
    method: "POST",
    headers: HELLO_HEADERS,
    body: HELLO_BODY,
  });
  const text = await response.text();
  if (response.status !== 200 || JSON.parse(text).status !== "completed") {
    throw new Error(`Cannot measure: the run must complete: received ${response.status} ${text}`);
  }
  const headers = Object.fromEntries([...response.headers].filter(([name]) => !PER_CONNECTION.has(name)));
  const files = { raw: `${folder}/raw.json`, json: `${folder}/answer.json` };
  await Deno.writeTextFile(files.raw, JSON.stringify({ headers, body: text }));
  await Deno.writeTextFile(files.json, text);
  return files;
}

async function measure({ pid, url }: ServerProcess, requests: number): Promise<Figures> {
  const before = await processorMs(pid);
  const load = {
    url: `${url}/v1/runs`,
    headers: HELLO_HEADERS,
    body: HELLO_BODY,
    folder,
    requests,
    connections: CONNECTIONS,
  };
  const { ms, p99_ms } = await sendRequests(load);
  const after = await processorMs(pid);
  return {
    per_s: requests / ms * 1000,
    p99_ms,
    cpu_us: before === null || after === null ? null : (after - before) / requests * 1000,
  };
}

function printFigures(rounds_of: ReadonlyMap<string, readonly Figures[]>, rss_mb: number | null): void {
  const middle = ([name, all]: [string, readonly Figures[]]) => ({
    name,
    per_s: median(all.map(({ per_s }) => per_s)),
    p99_ms: median(all.map(({ p99_ms }) => p99_ms)),
    cpu_us: all.some(({ cpu_us }) => cpu_us === null) ? null : median(all.map(({ cpu_us }) => cpu_us ?? NaN)),
  });
  const figures = [...rounds_of].map(middle);
  const floor = figures[0]!; // Deno.serve
  const rows = figures.map(({ name, per_s, p99_ms, cpu_us }): Cell[] => [
    name,
    per_s,
    per_s / floor.per_s,
    TARGETS[name] === undefined ? "" : `≥ ${TARGETS[name]}`,
    p99_ms,
    cpu_us ?? "",
    cpu_us === null || floor.cpu_us === null ? "" : cpu_us / floor.cpu_us,
  ]);
  print(`POST /v1/runs, ${requests} requests over ${CONNECTIONS} connections, median of ${rounds} rounds`);
  const heading = ["", "requests/s", "of Deno.serve", "target", "p99 ms", "processor µs", "× Deno.serve"];
  print(tableOf(heading, rows));
  report("http", { requests, rounds, connections: CONNECTIONS, servers: figures, rss_mb_after: rss_mb });
}
