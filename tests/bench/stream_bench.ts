/**
 * Streams: one delta from the provider through hooks, log and SSE to an HTTP client (`POST /v1/runs` with a
 * named plan, `loop-streaming`, memory store), compared with a bare `Deno.serve` that streams the same
 * events, one write for each. Client and servers are separate processes.
 *
 *   deno run -A tests/bench/stream_bench.ts [streams] [rounds]
 */
import type { JsonObject } from "../../src/sdk/types.ts";
import { sendRequests } from "./client_process.ts";
import { median, print, report, tableOf } from "./figures.ts";
import { processorMs, ROOT, type ServerProcess, startArguments, startServer } from "./processes.ts";

const DELTAS = 1_000;
/** Config of `provider-mock`: one answer of {@link DELTAS} deltas. */
const STREAM: JsonObject = { response: "A delta of 20 chars ".repeat(DELTAS), chunk_chars: 20 };
const HEADERS = { "content-type": "application/json", accept: "text/event-stream" };

const streams = Number(Deno.args[0] ?? 30);
const rounds = Number(Deno.args[1] ?? 5);

const MODULES = import.meta.resolve("./modules/");

/** Name of the plan → handlers of each event. */
const PLANS: Readonly<Record<string, number>> = { hooks_0: 0, hooks_1: 1, hooks_10: 10 };

/** Time of one delta; the server's processor time is null where it cannot be measured. */
interface Figures {
  wall_us: number;
  cpu_us: number | null;
}

const folder = await Deno.makeTempDir();
try {
  for (const [name, handlers] of Object.entries(PLANS)) {
    await Deno.writeTextFile(`${folder}/${name}.json`, JSON.stringify(planOf(handlers)));
  }
  await using preamp = await startServer({
    command: Deno.execPath(),
    args: [...await startArguments(), "--port", "0", "--store", "memory", "--no-auth"],
    env: {
      PREAMP_HOME: `${folder}/home`,
      PREAMP_PLANS: folder,
      PREAMP_MODULES_INLINE: MODULES,
      PREAMP_RATES_REQUESTS_PER_MINUTE: "0",
      PREAMP_RATES_RUNS_PER_MINUTE: "0",
      NO_COLOR: "1",
    },
  });
  const events = `${folder}/events.txt`;
  let text = "";
  for (const plan of Object.keys(PLANS).toReversed()) text = await streamOf(preamp.url, plan);
  await Deno.writeTextFile(events, text);
  await using floor = await startServer({
    command: Deno.execPath(),
    args: ["run", "--no-prompt", "--allow-net", "--allow-read", `${ROOT}tests/bench/floor_stream.ts`, events],
  });
  const taken = new Map<string, Figures[]>(["floor", ...Object.keys(PLANS)].map((name) => [name, []]));
  for (let round = -1; round < rounds; round++) { // the first round warms up and is not counted
    for (const [name, figures] of taken) {
      const figure = await measure(name === "floor" ? floor : preamp, name);
      if (round >= 0) figures.push(figure);
    }
  }
  printFigures(taken);
} finally {
  await Deno.remove(folder, { recursive: true });
}

function planOf(handlers: number): JsonObject {
  const hook = { module: "hook-bench", source: `${MODULES}hook_bench.ts`, config: { handlers } };
  return {
    session: { orchestrator: "loop-streaming", context: "context-simple" },
    providers: [{ module: "provider-mock", config: STREAM }],
    hooks: handlers > 0 ? [hook] : [],
  };
}

function bodyOf(plan_ref: string): string {
  return JSON.stringify({ prompt: "Work it out.", plan_ref });
}

/** Resolves to the text of one stream. */
async function streamOf(url: string, plan: string): Promise<string> {
  const response = await fetch(`${url}/v1/runs`, { method: "POST", headers: HEADERS, body: bodyOf(plan) });
  const text = await response.text();
  const deltas = text.split("\nevent: content_block:delta\n").length - 1;
  if (response.status === 200 && deltas === DELTAS && text.includes('"status":"completed"')) return text;
  throw new Error(
    `Cannot measure: ${DELTAS} deltas must be streamed: received ${response.status}, ${deltas}`,
  );
}

async function measure(server: ServerProcess, plan: string): Promise<Figures> {
  const before = await processorMs(server.pid);
  const { ms } = await sendRequests({
    url: `${server.url}/v1/runs`,
    headers: HEADERS,
    body: bodyOf(plan),
    folder,
    requests: streams,
    connections: 1,
  });
  const after = await processorMs(server.pid);
  const deltas = streams * DELTAS;
  return {
    wall_us: ms * 1_000 / deltas,
    cpu_us: before === null || after === null ? null : (after - before) * 1_000 / deltas,
  };
}

function printFigures(taken: ReadonlyMap<string, readonly Figures[]>): void {
  const floor = taken.get("floor") ?? [];
  const figures = [...taken].map(([name, own]) => ({
    name,
    us: median(own.map(({ wall_us }) => wall_us)),
    ratio: median(own.map(({ wall_us }, round) => wall_us / (floor[round]?.wall_us ?? NaN))),
    server_us: middle(own.map(({ cpu_us }) => cpu_us)),
    server_ratio: middle(own.map(({ cpu_us }, round) => over(cpu_us, floor[round]?.cpu_us))),
  }));
  print(`Streams of ${DELTAS} deltas over HTTP, ${streams} a round, median of ${rounds} rounds`);
  print(tableOf(
    ["", "µs/delta", "ratio", "server's processor µs", "ratio"],
    figures.map(({ name, us, ratio, server_us, server_ratio }) => [
      name === "floor" ? "Deno.serve" : `hooks: ${PLANS[name]}`,
      us,
      ratio,
      server_us ?? "-",
      server_ratio ?? "-",
    ]),
  ));
  report("stream", { deltas: DELTAS, streams, rounds, figures });
}

function over(value: number | null, floor: number | null | undefined): number | null {
  return value === null || floor === null || floor === undefined ? null : value / floor;
}

function middle(values: readonly (number | null)[]): number | null {
  const known = values.filter((value) => value !== null);
  return known.length > 0 ? median(known) : null;
}
