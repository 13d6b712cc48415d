/**
 * Durable runs over HTTP: requests per second and the 99th percentile of `POST /v1/runs` through
 * `preamp serve` with each store, 1, 8 and 32 at once, compared with `Deno.serve` and Hono that read the same
 * request and return the same bytes, and with `Deno.serve` that also stores one row durably. An answered run
 * is durable.
 *
 *   deno run -A tests/bench/store_requests_bench.ts [requests]
 */
import { POSTGRES, startPostgres } from "../support/postgres.ts";
import { sendRequests } from "./client_process.ts";
import { type Cell, print, report, tableOf } from "./figures.ts";
import { HELLO_BODY, HELLO_HEADERS } from "./hello_request.ts";
import {
  preampProgram,
  processorMs,
  type Program,
  ROOT,
  type ServerProcess,
  startServer,
} from "./processes.ts";

const requests = Number(Deno.args[0] ?? 2_000);
const CONCURRENT = [1, 8, 32] as const;
/** Part of the requests that warms up, and that one connection sends alone. */
const WARM_UP_PART = 0.2;
const ALONE_PART = 0.25;
/** Runs per second on two cores with SQLite. */
const TARGET = 2_000;

interface Figure {
  per_s: number;
  p99_ms: number;
  /** Processor time of the server for a request; null where it cannot be measured. */
  cpu_us: number | null;
}

const folder = await Deno.makeTempDir();
await using database = POSTGRES === null ? null : await startPostgres({ durable: true });
try {
  const memory = await preampProgram({ home: folder, store: "memory" });
  const bytes = `${folder}/answer.json`;
  const floor = (script: string, ...args: string[]): Program => ({
    command: Deno.execPath(),
    args: ["run", "--no-prompt", "-A", `${ROOT}tests/bench/${script}`, ...args],
  });
  const figures: Record<string, Figure[]> = {};
  {
    await using server = await startServer(memory);
    await Deno.writeTextFile(bytes, await answerOf(server));
    await Deno.writeTextFile(`${folder}/raw.json`, rawAnswer(await Deno.readTextFile(bytes)));
  }
  const programs: Record<string, Program> = {
    "Deno.serve, same bytes": floor("floor_server.ts", `${folder}/raw.json`),
    "Hono, same JSON": floor("floor_hono.ts", bytes),
    "Deno.serve, one row in SQLite": floor("floor_durable.ts", bytes, `${folder}/floor.db`),
    "preamp, memory": memory,
    "preamp, SQLite": await preampProgram({ home: folder, store: `sqlite:${folder}/runs.db` }),
    ...(database ? { "preamp, Postgres": await preampProgram({ home: folder, store: database.url }) } : {}),
  };
  for (const [name, program] of Object.entries(programs)) figures[name] = await measure(program);
  print(`POST /v1/runs, ${requests} requests, one completion; target: ${TARGET} runs/s with SQLite`);
  print(tableOf(
    [
      "",
      ...CONCURRENT.flatMap((count) => [`req/s, ${count} at once`, "p99 ms", "server's processor µs"]),
      "of preamp, memory, 32 at once",
    ],
    Object.entries(figures).map(([name, all]): Cell[] => [
      name,
      ...all.flatMap(({ per_s, p99_ms, cpu_us }) => [per_s, p99_ms, cpu_us ?? "-"]),
      all.at(-1)!.per_s / figures["preamp, memory"]!.at(-1)!.per_s, // one for each count
    ]),
  ));
  if (database === null) print("Postgres is not installed here: not measured");
  report("store_requests", { requests, concurrent: CONCURRENT, figures });
} finally {
  await Deno.remove(folder, { recursive: true });
}

/** Resolves to the figures of a server with 1, 8 and 32 requests at once. */
async function measure(program: Program): Promise<Figure[]> {
  await using server = await startServer(program);
  const figures: Figure[] = [];
  await send(server, Math.ceil(requests * WARM_UP_PART), 8);
  for (const count of CONCURRENT) {
    const sent = Math.ceil(count === 1 ? requests * ALONE_PART : requests);
    figures.push(await send(server, sent, count));
  }
  return figures;
}

async function send(server: ServerProcess, count: number, connections: number): Promise<Figure> {
  const before = await processorMs(server.pid);
  const load = { url: `${server.url}/v1/runs`, headers: HELLO_HEADERS, body: HELLO_BODY, folder };
  const { ms, p99_ms } = await sendRequests({ ...load, requests: count, connections });
  const after = await processorMs(server.pid);
  const cpu_us = before === null || after === null ? null : (after - before) * 1_000 / count;
  return { per_s: count / ms * 1_000, p99_ms, cpu_us };
}

/** Resolves to the answer of a run, which the floors return too. */
async function answerOf(server: ServerProcess): Promise<string> {
  const response = await fetch(`${server.url}/v1/runs`, {
    method: "POST",
    headers: HELLO_HEADERS,
    body: HELLO_BODY,
  });
  const text = await response.text();
  if (response.status === 200 && JSON.parse(text).status === "completed") return text;
  throw new Error(`Cannot measure: the run must complete: received ${response.status} ${text}`);
}

function rawAnswer(text: string): string {
  return JSON.stringify({ headers: { "content-type": "application/json" }, body: text });
}
