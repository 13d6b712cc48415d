/**
 * Stalled readers: clients open the event stream of a run with much output and read nothing. Measured are the
 * server's memory for each of them, how it grows while the run continues, the 99th percentile of other
 * requests, and the time that the server needs to stop while the streams are open. The same run without
 * readers is the floor.
 *
 *   deno run -A tests/bench/slow_readers_bench.ts [readers] [seconds]
 */
import { print, report, tableOf } from "./figures.ts";
import { preampProgram, residentMb, type ServerProcess, startServer } from "./processes.ts";
import { probe, type Probed } from "./probes.ts";

const readers = Number(Deno.args[0] ?? 200);
const seconds = Number(Deno.args[1] ?? 60); // the buffers of the sockets are full after about ten
/**
 * Milliseconds between two deltas, and their characters: enough to fill the buffers of the sockets within
 * some seconds.
 */
const INTERVAL_MS = 20;
const PADDING = 16_000;
/** Memory of a reader, growth of all of them in the second half, and time of the stop. */
const BOUNDS = { reader_mb: 1.5, growth_mb: 20, stop_s: 5 };
const MODULE = import.meta.resolve("./modules/provider_clock.ts");

const PLAN = {
  session: { orchestrator: "loop-streaming", context: "context-simple" },
  providers: [{
    module: "provider-clock",
    source: MODULE,
    config: { deltas: 10 * seconds * 1_000 / INTERVAL_MS, interval_ms: INTERVAL_MS, padding: PADDING },
  }],
};

/** Memory in MB: before, in the middle and at the end of the time with readers. */
interface Memory {
  before: number;
  middle: number;
  end: number;
}

const folder = await Deno.makeTempDir();
try {
  await Deno.writeTextFile(`${folder}/clock.json`, JSON.stringify(PLAN));
  const alone = await measure(await startStored("alone"), 0);
  const stalled = await measure(await startStored("stalled"), readers);
  const reader_mb = (stalled.memory.end - stalled.memory.before - (alone.memory.end - alone.memory.before)) /
    readers;
  const growth_mb = stalled.memory.end - stalled.memory.middle - (alone.memory.end - alone.memory.middle);
  print(`${readers} readers that read nothing of a run with ${PADDING / INTERVAL_MS} KB/s, ${seconds} s`);
  print(tableOf(["", "without readers", "with readers", "bound"], [
    ["memory before, MB", alone.memory.before, stalled.memory.before, ""],
    ["memory in the middle, MB", alone.memory.middle, stalled.memory.middle, ""],
    ["memory at the end, MB", alone.memory.end, stalled.memory.end, ""],
    ["of a reader, MB", "", reader_mb, `≤ ${BOUNDS.reader_mb}`],
    ["growth in the second half, MB", "", growth_mb, `≤ ${BOUNDS.growth_mb}`],
    ["p99 of other requests, ms", alone.probed.p99_ms, stalled.probed.p99_ms, ""],
    ["stopped after s", alone.stopped_s, stalled.stopped_s, `≤ ${BOUNDS.stop_s}`],
  ]));
  report("slow_readers", { readers, seconds, alone, stalled, reader_mb, growth_mb });
  if (reader_mb > BOUNDS.reader_mb || stalled.stopped_s > BOUNDS.stop_s) Deno.exitCode = 1;
} finally {
  await Deno.remove(folder, { recursive: true });
}

/** Starts a server with a store of its own: it would continue the run that another one left in it. */
async function startStored(name: string): Promise<ServerProcess> {
  const program = await preampProgram({
    home: `${folder}/${name}`,
    store: `sqlite:${folder}/${name}.db`,
    plans: folder,
    env: {
      PREAMP_MODULES_INLINE: MODULE,
      PREAMP_LIMITS_MAX_DURATION_S: String(20 * seconds),
    },
  });
  return await startServer(program);
}

/** Measures a run with `count` stalled readers, and stops the server. */
async function measure(
  server: ServerProcess,
  count: number,
): Promise<{ memory: Memory; probed: Probed; stopped_s: number }> {
  const streams: Deno.TcpConn[] = [];
  try {
    const response = await fetch(`${server.url}/v1/runs`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ prompt: "Count.", plan_ref: "clock", background: true }),
    });
    const { id } = await response.json() as { id?: string };
    if (response.status !== 202) {
      throw new Error(`Cannot measure: the run must start: received ${response.status}`);
    }
    await pause(2); // everything is loaded
    const before = await memoryOf(server);
    const { hostname, port } = new URL(server.url);
    const request =
      `GET /v1/runs/${id}/events HTTP/1.1\r\nHost: ${hostname}\r\nAccept: text/event-stream\r\n\r\n`;
    const end = pause(seconds);
    for (let opened = 0; opened < count; opened++) {
      const connection = await Deno.connect({ hostname, port: Number(port) });
      await connection.write(new TextEncoder().encode(request));
      streams.push(connection);
    }
    const probing = probe(server.url, end);
    await pause(seconds / 2);
    const middle = await memoryOf(server);
    const probed = await probing;
    const memory = { before, middle, end: await memoryOf(server) };
    const stopping = performance.now();
    await server[Symbol.asyncDispose]();
    return { memory, probed, stopped_s: (performance.now() - stopping) / 1_000 };
  } catch (error) {
    await server[Symbol.asyncDispose]();
    throw error;
  } finally {
    for (const connection of streams) connection.close();
  }
}

async function memoryOf({ pid }: ServerProcess): Promise<number> {
  return await residentMb(pid) ?? NaN;
}

function pause(seconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, seconds * 1_000));
}
