/**
 * Live streams through `preamp serve`: 200 clients read a run each, whose model makes 50 deltas a second.
 * Every delta must arrive, once and in order. Measured are the milliseconds from the making of a delta to its
 * arrival at the client and the server's processor time, compared with a bare `Deno.serve` that writes the
 * same deltas on the same clock.
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
  await Deno.writeTextFile(`${folder}/clock.json`, JSON.stringify(PLAN));
  const floor = await measure({
    command: Deno.execPath(),
    args: [
      "run",
      "--no-prompt",
      "--allow-net",
      `${ROOT}tests/bench/floor_clock.ts`,
      `${deltas}`,
      `${interval_ms}`,
    ],
  });
  const env = {
    PREAMP_PLANS: folder,
    PREAMP_MODULES_INLINE: MODULE,
    PREAMP_LIMITS_MAX_DURATION_S: String(seconds + 60),
  };
  const preamp = await measure(
    await preampProgram({ home: `${folder}/home`, store: storeUrl(store), env }),
  );
  print(`${streams} streams of ${PER_SECOND} deltas/s for ${seconds} s, store ${store}`);
  print(tableOf(
    [
      "",
      "deltas",
      "lost",
      "reordered",
      "gaps",
      "p50 ms",
      "p99 ms",
      "max ms",
      "server's cores",
      "processor µs/delta",
    ],
    [rowOf("Deno.serve", floor), rowOf("preamp serve", preamp), [
      "added; target ≤ 2 and 25",
      "",
      "",
      "",
      "",
      preamp.p50_ms - floor.p50_ms,
      preamp.p99_ms - floor.p99_ms,
      "",
      "",
      "",
    ]],
  ));
  report("live_streams", { seconds, streams, store, floor, preamp });
  if (preamp.lost + preamp.reordered + preamp.gaps > 0) Deno.exitCode = 1;
} finally {
  await Deno.remove(folder, { recursive: true });
}

function storeUrl(name: string): string {
  return name === "sqlite" ? `sqlite:${folder}/runs.db` : name;
}

async function measure(program: Program): Promise<Figures> {
  await using server = await startServer(program);
  const before = await processorMs(server.pid);
  const start = performance.now();
  const read = await readStreams(server);
  const ms = performance.now() - start;
  const after = await processorMs(server.pid);
  const cpu_ms = before === null || after === null ? null : after - before;
  return {
    ...read,
    cores: cpu_ms && cpu_ms / ms,
    cpu_us: cpu_ms && cpu_ms * 1_000 / read.marks,
  };
}

async function readStreams(server: ServerProcess): Promise<Read> {
  const headers = { "content-type": "application/json", accept: "text/event-stream" };
  const body = JSON.stringify({ prompt: "Count.", plan_ref: "clock" });
  const load = { url: `${server.url}/v1/runs`, headers, body, folder };
  return await runClient<Read>("live_streams_client.ts", load, [streams, deltas]);
}

function rowOf(name: string, figures: Figures): Cell[] {
  const { marks, lost, reordered, gaps, p50_ms, p99_ms, max_ms, cores, cpu_us } = figures;
  return [name, marks, lost, reordered, gaps, p50_ms, p99_ms, max_ms, cores ?? "-", cpu_us ?? "-"];
}
