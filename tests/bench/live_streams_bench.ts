/**
 * Live streams through `preamp serve`: 200 clients read a run each, whose model makes 50 deltas a second, in
 * the server or as another server of Chat Completions. Every delta must arrive, once and in order. Measured
 * are the milliseconds from the making of a delta to its arrival at the client and the server's processor
 * time, compared with a bare `Deno.serve` that writes the same deltas on the same clock, and a bare relay.
 *
 *   deno run -A tests/bench/live_streams_bench.ts [seconds] [streams] [store]
 */
import { runClient } from "./client_process.ts";
import { type Cell, print, report, tableOf } from "./figures.ts";
import type { Read } from "./live_streams_client.ts";
import {
  preampProgram,
  processorMs,
  type Program,
  ROOT,
  type ServerProcess,
  startServer,
} from "./processes.ts";

const seconds = Number(Deno.args[0] ?? 60);
const streams = Number(Deno.args[1] ?? 200);
const store = Deno.args[2] ?? "sqlite";

const PER_SECOND = 50;
const deltas = seconds * PER_SECOND;
const interval_ms = 1_000 / PER_SECOND;
const MODULE = import.meta.resolve("./modules/provider_clock.ts");

/** A named plan: requests may not name modules of the server's disk. */
const PLAN = {
  session: { orchestrator: "loop-streaming", context: "context-simple" },
  providers: [{ module: "provider-clock", source: MODULE, config: { deltas, interval_ms } }],
};

interface Figures extends Read {
  /** Processor time of the server as a share of one core; null where it cannot be measured. */
  readonly cores: number | null;
  /** Processor time of the server for a delta, its run and its stream included. */
  readonly cpu_us: number | null;
}

const folder = await Deno.makeTempDir();
try {
  await using model = await startServer(script("clock_model.ts", `${deltas}`, `${interval_ms}`));
  const config = {
    base_url: `${model.url}/v1`,
    api_key: "none",
    model: "clock",
    context_window: 100_000_000,
  };
  const plans = { clock: PLAN, http: { ...PLAN, providers: [{ module: "provider-groq", config }] } };
  for (const [name, plan] of Object.entries(plans)) {
    await Deno.writeTextFile(`${folder}/${name}.json`, JSON.stringify(plan));
  }
  const env = {
    PREAMP_MODULES_INLINE: MODULE,
    PREAMP_LIMITS_MAX_DURATION_S: String(seconds + 60),
  };
  const program = await preampProgram({ home: `${folder}/home`, store: storeUrl(store), plans: folder, env });
  const rows: Readonly<Record<string, Figures>> = {
    "Deno.serve": await measure(script("floor_clock.ts", `${deltas}`, `${interval_ms}`), "clock"),
    "preamp serve": await measure(program, "clock"),
    "relay of an HTTP model": await measure(script("floor_relay.ts", model.url), "http"),
    "preamp serve, HTTP model": await measure(program, "http"),
  };
  print(`${streams} streams of ${PER_SECOND} deltas/s for ${seconds} s, store ${store}`);
  const columns = ["deltas", "lost", "reordered", "gaps", "p50 ms", "p99 ms", "max ms"];
  print(tableOf(
    ["", ...columns, "server's cores", "processor µs/delta"],
    Object.entries(rows).map(([name, figures]) => rowOf(name, figures)),
  ));
  report("live_streams", { seconds, streams, store, ...rows });
  const wrong = Object.values(rows).some(({ lost, reordered, gaps }) => lost + reordered + gaps > 0);
  if (wrong) Deno.exitCode = 1;
} finally {
  await Deno.remove(folder, { recursive: true });
}

/** Returns a server of this folder. */
function script(name: string, ...args: string[]): Program {
  const path = `${ROOT}tests/bench/${name}`;
  return { command: Deno.execPath(), args: ["run", "--no-prompt", "--allow-net", path, ...args] };
}

function storeUrl(name: string): string {
  return name === "sqlite" ? `sqlite:${folder}/runs.db` : name;
}

async function measure(program: Program, plan: string): Promise<Figures> {
  await using server = await startServer(program);
  const before = await processorMs(server.pid);
  const start = performance.now();
  const read = await readStreams(server, plan);
  const ms = performance.now() - start;
  const after = await processorMs(server.pid);
  const cpu_ms = before === null || after === null ? null : after - before;
  return {
    ...read,
    cores: cpu_ms && cpu_ms / ms,
    cpu_us: cpu_ms && cpu_ms * 1_000 / read.marks,
  };
}

async function readStreams(server: ServerProcess, plan: string): Promise<Read> {
  const headers = { "content-type": "application/json", accept: "text/event-stream" };
  const body = JSON.stringify({ prompt: "Count.", plan_ref: plan });
  const load = { url: `${server.url}/v1/runs`, headers, body, folder };
  return await runClient<Read>("live_streams_client.ts", load, [streams, deltas]);
}

function rowOf(name: string, figures: Figures): Cell[] {
  const { marks, lost, reordered, gaps, p50_ms, p99_ms, max_ms, cores, cpu_us } = figures;
  return [name, marks, lost, reordered, gaps, p50_ms, p99_ms, max_ms, cores ?? "-", cpu_us ?? "-"];
}
