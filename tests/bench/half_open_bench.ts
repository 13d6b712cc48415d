/**
 * Half-open connections: clients send the beginning of a header and never the rest. Measured are the server's
 * memory, the time until it has closed all of them, and the 99th percentile of other requests meanwhile,
 * compared with the time before.
 *
 *   deno run -A tests/bench/half_open_bench.ts [connections]
 */
import { print, report, tableOf } from "./figures.ts";
import type { HalfOpen } from "./half_open_client.ts";
import { preampProgram, residentMb, ROOT, type ServerProcess, startServer } from "./processes.ts";
import { probe } from "./probes.ts";

const connections = Number(Deno.args[0] ?? 5_000);
/** Bounds: the connections must be closed and other requests be answered within these. */
const CLOSED_S = 15;
const P99_MS = 50;
/** Seconds of requests before the connections. */
const BEFORE_S = 3;

const folder = await Deno.makeTempDir();
try {
  await using server = await startServer(await preampProgram({ home: folder, store: "memory" }));
  const before_mb = await residentMb(server.pid);
  const before = await probe(server.url, pause(BEFORE_S));
  const { half_open, during, open_mb } = await measure(server);
  const after_mb = await residentMb(server.pid);
  print(`${connections} connections whose header never ends`);
  print(tableOf(["", "value", "bound"], [
    ["closed connections", half_open.closed, connections],
    ["all open after s", half_open.opened_after_s, ""],
    ["all closed after s", half_open.closed_after_s, `≤ ${CLOSED_S} from the last`],
    ["memory before, MB", before_mb ?? "", ""],
    ["memory while open, MB", open_mb ?? "", ""],
    ["memory afterwards, MB", after_mb ?? "", ""],
    ["p99 of other requests before, ms", before.p99_ms, ""],
    ["p99 of other requests meanwhile, ms", during.p99_ms, `≤ ${P99_MS}`],
  ]));
  report("half_open", { connections, ...half_open, before_mb, open_mb, after_mb, before, during });
  const seconds = half_open.closed_after_s - half_open.opened_after_s;
  if (half_open.closed < connections || seconds > CLOSED_S || during.failed > 0) Deno.exitCode = 1;
} finally {
  await Deno.remove(folder, { recursive: true });
}

/** Opens the connections; resolves when the server has closed them. */
async function measure(server: ServerProcess) {
  const { hostname, port } = new URL(server.url);
  const child = new Deno.Command(Deno.execPath(), {
    args: [
      "run",
      "--no-prompt",
      "--allow-net",
      `${ROOT}tests/bench/half_open_client.ts`,
      hostname,
      port,
      String(connections),
      String(2 * CLOSED_S),
    ],
    stdout: "piped",
  }).spawn();
  const lines = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  const until = async (end: () => boolean) => {
    while (!end()) {
      const { value, done } = await lines.read();
      if (done) return;
      text += value;
    }
  };
  const ended = until(() => false);
  const probed = probe(server.url, ended);
  while (
    !text.includes("open\n") && (await Promise.race([ended.then(() => "ended"), pause(0.1)])) !== "ended"
  );
  const open_mb = await residentMb(server.pid);
  const during = await probed;
  await child.status;
  const line = text.split("\n")[1];
  if (!line) {
    throw new Error(`Cannot measure: the client must open ${connections} connections: printed ${text}`);
  }
  return { half_open: JSON.parse(line) as HalfOpen, during, open_mb };
}

function pause(seconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, seconds * 1_000));
}
