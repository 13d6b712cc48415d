/**
 * Several servers on one database: durable runs per second of one, two and three `preamp serve` on one
 * Postgres, all busy; the processor time of a run in the servers and in Postgres; and what Postgres' backends
 * wait for meanwhile, which shows where the database is busy. Servers and Postgres share the cores of this
 * machine: runs/s grow with servers until those are used.
 *
 *   deno run -A tests/bench/replicas_bench.ts [requests for each server] [connections to each]
 */
import pg from "pg";
import { POSTGRES, startPostgres } from "../support/postgres.ts";
import { sendRequests } from "./client_process.ts";
import { print, report, tableOf } from "./figures.ts";
import { HELLO_BODY, HELLO_HEADERS } from "./hello_request.ts";
import {
  familyProcessorMs,
  preampProgram,
  processorMs,
  type ServerProcess,
  startServer,
} from "./processes.ts";

const requests = Number(Deno.args[0] ?? 2_000);
const connections = Number(Deno.args[1] ?? 16);
const SERVERS = [1, 2, 3] as const;
const SAMPLE_EVERY_MS = 50;

interface Figures {
  servers: number;
  runs_per_s: number;
  p99_ms: number;
  /** Processor time of a run in µs. */
  servers_us: number;
  postgres_us: number;
  /** Cores that were busy. */
  servers_cores: number;
  postgres_cores: number;
  /** What a backend that works on a statement does → mean number of such backends. */
  backends: Record<string, number>;
}

if (POSTGRES === null) {
  print("Postgres is not installed here: not measured");
  Deno.exit(0);
}
const folder = await Deno.makeTempDir();
await using database = await startPostgres({ durable: true });
try {
  const figures: Figures[] = [];
  for (const count of SERVERS) figures.push(await measure(count));
  const one = figures[0]!.runs_per_s; // SERVERS is not empty
  print(`Servers on one Postgres, ${requests} runs each over ${connections} connections`);
  print(tableOf(
    [
      "servers",
      "runs/s",
      "of one",
      "p99 ms",
      "servers' µs/run",
      "Postgres' µs/run",
      "servers' cores",
      "Postgres' cores",
      "working backends",
    ],
    figures.map((each) => [
      String(each.servers),
      each.runs_per_s,
      each.runs_per_s / one,
      each.p99_ms,
      each.servers_us,
      each.postgres_us,
      each.servers_cores,
      each.postgres_cores,
      Object.entries(each.backends).map(([state, mean]) => `${state} ${mean.toFixed(1)}`).join(", "),
    ]),
  ));
  report("replicas", { requests, connections, figures });
} finally {
  await Deno.remove(folder, { recursive: true });
}

async function measure(count: number): Promise<Figures> {
  await using stack = new AsyncDisposableStack();
  const servers: ServerProcess[] = [];
  for (let index = 0; index < count; index++) {
    const program = await preampProgram({ home: `${folder}/${index}`, store: database.url });
    servers.push(stack.use(await startServer(program)));
    await Deno.mkdir(`${folder}/${index}`, { recursive: true });
  }
  await load(servers, Math.ceil(requests / 5)); // warms up
  const sampling = new AbortController();
  const backends = sampleBackends(sampling.signal);
  const before = await times(servers);
  const start = performance.now();
  const sent = await load(servers, requests);
  const ms = performance.now() - start;
  const after = await times(servers);
  sampling.abort();
  const runs = requests * count;
  const [servers_ms, postgres_ms] = [after.servers - before.servers, after.postgres - before.postgres];
  return {
    servers: count,
    // the clients' own time, without that of their start
    runs_per_s: sent.reduce((sum, each) => sum + requests / each.ms * 1_000, 0),
    p99_ms: Math.max(...sent.map(({ p99_ms }) => p99_ms)),
    servers_us: servers_ms * 1_000 / runs,
    postgres_us: postgres_ms * 1_000 / runs,
    servers_cores: servers_ms / ms,
    postgres_cores: postgres_ms / ms,
    backends: await backends,
  };
}

function load(servers: readonly ServerProcess[], count: number) {
  return Promise.all(servers.map(({ url }, index) =>
    sendRequests({
      url: `${url}/v1/runs`,
      headers: HELLO_HEADERS,
      body: HELLO_BODY,
      folder: `${folder}/${index}`,
      requests: count,
      connections,
    })
  ));
}

async function times(servers: readonly ServerProcess[]): Promise<{ servers: number; postgres: number }> {
  const each = await Promise.all(servers.map(({ pid }) => processorMs(pid)));
  return {
    servers: each.reduce((sum: number, ms) => sum + (ms ?? NaN), 0),
    postgres: await familyProcessorMs(database.pid) ?? NaN,
  };
}

/**
 * Looks at Postgres' backends until the signal aborts. Resolves to the mean number of working ones by what
 * they do.
 */
async function sampleBackends(signal: AbortSignal): Promise<Record<string, number>> {
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  const counts = new Map<string, number>();
  let samples = 0;
  while (!signal.aborted) {
    const { rows } = await client.query<{ doing: string; count: number }>(
      `SELECT coalesce(wait_event_type || ':' || wait_event, 'running') AS doing, count(*)::int AS count
       FROM pg_stat_activity
       WHERE backend_type = 'client backend' AND state = 'active' AND pid <> pg_backend_pid() GROUP BY 1`,
    );
    for (const { doing, count } of rows) counts.set(doing, (counts.get(doing) ?? 0) + count);
    samples++;
    await new Promise((resolve) => setTimeout(resolve, SAMPLE_EVERY_MS));
  }
  await client.end();
  const means = [...counts].map(([doing, count]): [string, number] => [doing, count / samples]);
  return Object.fromEntries(means.filter(([, mean]) => mean >= 0.05).sort(([, a], [, b]) => b - a));
}
