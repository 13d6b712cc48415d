/**
 * Requests per second: `POST /v1/runs` with an inline plan (one answer, no tool, memory store, JSON), compared with a bare
 * `Deno.serve` that reads the same body and returns the same bytes. Client and servers are separate processes; the number of
 * requests is fixed.
 *
 *   deno run -A tests/bench/http_bench.ts [requests] [rounds]
 */
import { median, print, report, tableOf } from "./figures.ts";
import { sendRequests } from "./client_process.ts";
import { type Program, residentMb, ROOT, startArguments, startServer } from "./processes.ts";

/** Persistent connections; fewer than `max_runs_per_key` (16), so that no run is refused. */
const CONNECTIONS = 8;

const requests = Number(Deno.args[0] ?? 2_000);
const rounds = Number(Deno.args[1] ?? 5);

const body = JSON.stringify({
  prompt: "Hello",
  plan: {
    session: { orchestrator: "loop-basic", context: "context-simple" },
    providers: [{ module: "provider-mock", config: { response: "Hello from the bench." } }],
  },
});

/** Headers that depend on the connection or the time. */
const PER_CONNECTION: ReadonlySet<string> = new Set([
  "connection",
  "content-length",
  "date",
  "transfer-encoding",
]);

const folder = await Deno.makeTempDir();
try {
  await using preamp = await startServer(await preampProgram());
  await using behind_proxy = await startServer(await preampProgram("--behind-proxy"));
  await using floor = await startServer(await floorProgram(preamp.url));
  const servers = { floor, preamp, behind_proxy };
  const rates: Record<keyof typeof servers, number[]> = { floor: [], preamp: [], behind_proxy: [] };
  for (let round = -1; round < rounds; round++) { // the first round warms up and is not counted
    for (const name of ["floor", "preamp", "behind_proxy"] as const) {
      const rate = await measure(servers[name].url);
      if (round >= 0) rates[name].push(rate);
    }
  }
  printFigures(
    { floor: median(rates.floor), preamp: median(rates.preamp), behind_proxy: median(rates.behind_proxy) },
    await residentMb(preamp.pid),
  );
} finally {
  await Deno.remove(folder, { recursive: true });
}

/** Returns `preamp serve` without rate limits, with further flags. */
async function preampProgram(...flags: string[]): Promise<Program> {
  return {
    command: Deno.execPath(),
    args: [...await startArguments(), "--port", "0", "--store", "memory", "--no-auth", ...flags],
    env: {
      PREAMP_HOME: folder,
      PREAMP_RATES_REQUESTS_PER_MINUTE: "0",
      PREAMP_RATES_RUNS_PER_MINUTE: "0",
      NO_COLOR: "1",
    },
  };
}

/** Returns a server that returns the runtime's response to this request. */
async function floorProgram(url: string): Promise<Program> {
  const response = await fetch(`${url}/v1/runs`, { method: "POST", headers: headersOf(), body });
  const text = await response.text();
  if (response.status !== 200) {
    throw new Error(`Cannot measure: the run must return 200: received ${response.status} ${text}`);
  }
  if (JSON.parse(text).status !== "completed") {
    throw new Error(`Cannot measure: the run must complete: received ${text}`);
  }
  const headers = Object.fromEntries([...response.headers].filter(([name]) => !PER_CONNECTION.has(name)));
  const file = `${folder}/answer.json`;
  await Deno.writeTextFile(file, JSON.stringify({ headers, body: text }));
  return {
    command: Deno.execPath(),
    args: ["run", "--no-prompt", "--allow-net", "--allow-read", `${ROOT}tests/bench/floor_server.ts`, file],
  };
}

/** Resolves to requests per second. */
async function measure(url: string): Promise<number> {
  const { ms } = await sendRequests({
    url: `${url}/v1/runs`,
    headers: headersOf(),
    body,
    folder,
    requests,
    connections: CONNECTIONS,
  });
  return requests / ms * 1000;
}

function headersOf(): Record<string, string> {
  return { "content-type": "application/json", accept: "application/json" };
}

function printFigures(
  rates: { floor: number; preamp: number; behind_proxy: number },
  rss_mb: number | null,
): void {
  const { floor, preamp, behind_proxy } = rates;
  print(`POST /v1/runs, ${requests} requests over ${CONNECTIONS} connections, median of ${rounds} rounds`);
  print(tableOf(["", "requests/s", "µs/request", "ratio"], [
    ["Deno.serve, same bytes", floor, 1e6 / floor, 1],
    ["preamp serve", preamp, 1e6 / preamp, floor / preamp],
    ["preamp serve --behind-proxy", behind_proxy, 1e6 / behind_proxy, floor / behind_proxy],
  ]));
  report("http", {
    requests,
    rounds,
    connections: CONNECTIONS,
    requests_per_s: rates,
    ratio: floor / preamp,
    ratio_behind_proxy: floor / behind_proxy,
    rss_mb_after: rss_mb,
  });
}
