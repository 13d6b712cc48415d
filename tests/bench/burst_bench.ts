/**
 * A thousand callers at once: each opens a connection and posts a plan and a prompt. Measured are the answers
 * by status, connections without one, and how long `GET /healthz` takes meanwhile, beside a bare `Deno.serve`
 * in the same run.
 *
 *   deno run -A tests/bench/burst_bench.ts [callers]
 */
import { print, report, rounded, tableOf } from "./figures.ts";
import { HELLO_BODY, HELLO_HEADERS } from "./hello_request.ts";
import type { Sent } from "./http_client.ts";
import { preampProgram, ROOT, type ServerProcess, startServer } from "./processes.ts";
import { probe, type Probed } from "./probes.ts";

const callers = Number(Deno.args[0] ?? 1_000);
const LIMITS = { MAX_CONCURRENT_RUNS: "5000", MAX_RUNS_PER_KEY: "5000" };

const folder = await Deno.makeTempDir();
try {
  const env = Object.fromEntries(
    Object.entries(LIMITS).map(([name, value]) => [`PREAMP_LIMITS_${name}`, value]),
  );
  const figures: Record<string, { sent: Sent; healthz: Probed }> = {};
  {
    await using floor = await startServer({
      command: Deno.execPath(),
      args: ["run", "--allow-net", `${ROOT}tests/bench/floor_server.ts`],
    });
    figures["Deno.serve"] = await burst(floor);
  }
  for (const store of ["memory", "sqlite"] as const) {
    const program = await preampProgram({
      home: folder,
      store: store === "memory" ? store : `sqlite:${folder}/burst.db`,
      env,
    });
    await using server = await startServer(program);
    figures[`preamp serve, ${store}`] = await burst(server);
  }
  print(`${callers} callers at once`);
  print(tableOf(
    ["", "answers", "s", "p99 ms", "/healthz p50 ms", "p99 ms", "failed"],
    Object.entries(figures).map(([name, { sent, healthz }]) => [
      ...[name, JSON.stringify(sent.statuses), rounded(sent.ms / 1000), rounded(sent.p99_ms)],
      ...[rounded(healthz.p50_ms), rounded(healthz.p99_ms), healthz.failed],
    ]),
  ));
  report("burst", { callers, ...figures });
  const unanswered = Object.values(figures).some(({ sent, healthz }) =>
    Object.values(sent.statuses).reduce((sum, count) => sum + count, 0) < callers || healthz.failed > 0
  );
  if (unanswered) Deno.exitCode = 1;
} finally {
  await Deno.remove(folder, { recursive: true });
}

/** Sends one request over each of the connections, and asks for the server's health meanwhile. */
async function burst({ url }: ServerProcess): Promise<{ sent: Sent; healthz: Probed }> {
  const { hostname, port } = new URL(url);
  const request = `${folder}/request`;
  const headers = Object.entries(HELLO_HEADERS).map(([name, value]) => `${name}: ${value}\r\n`).join("");
  const length = new TextEncoder().encode(HELLO_BODY).length;
  await Deno.writeTextFile(
    request,
    `POST /v1/runs HTTP/1.1\r\nhost: localhost\r\n${headers}content-length: ${length}\r\n\r\n${HELLO_BODY}`,
  );
  const client = (count: number) =>
    new Deno.Command(Deno.execPath(), {
      args: [
        "run",
        "-A",
        `${ROOT}tests/bench/http_client.ts`,
        request,
        hostname,
        port,
        `${count}`,
        `${count}`,
      ],
      stderr: "inherit",
    }).output();
  await client(20); // the first requests load the program
  const sending = client(callers);
  const healthz = await probe(url, sending);
  return { sent: JSON.parse(new TextDecoder().decode((await sending).stdout)) as Sent, healthz };
}
