/**
 * Start: milliseconds from the start of a process to the response of its first run, and with each store until
 * it is ready (`GET /readyz`); idle memory; size of the executable. Ratios are to the first response of an
 * empty Deno server that is started the same way.
 *
 *   deno run -A tests/bench/start_bench.ts [rounds]
 */
import { POSTGRES, startPostgres } from "../support/postgres.ts";
import { type Cell, median, print, report, tableOf } from "./figures.ts";
import { HELLO_BODY } from "./hello_request.ts";
import { compiledProgram, type Program, residentMb, ROOT, startArguments, startServer } from "./processes.ts";

/** Idle seconds before memory is read. */
const REST_S = 1;

/** A server and its first request. */
interface Started extends Program {
  path: string;
  /** Body of a POST request; without it the request is a GET. */
  body?: string;
  /** Whether to read its memory at rest. Default: true. */
  rests?: boolean;
}

interface Figures {
  first_answer_ms: number;
  rss_mb: number | null;
}

const rounds = Number(Deno.args[0] ?? 7);
const home = await Deno.makeTempDir();
// A temporary home, so that the store is new and existing data is not used.
const env = { PREAMP_HOME: home, NO_COLOR: "1" };
const compiled = await compiledProgram();

/** A run with one answer and no tool. */
const run = {
  path: "/v1/runs",
  body: HELLO_BODY,
};

/** A generated key would be printed after the address, which is not read here. */
const flags = ["--port", "0", "--no-auth"];
const source = { command: Deno.execPath(), args: [...await startArguments(), ...flags], env };
const executable = compiled && { command: compiled.path, args: ["serve", ...flags], env };

await using database = POSTGRES === null ? null : await startPostgres();
/** The program with each store, asked whether it is ready. */
function untilReady(name: string, program: Program): [string, Started][] {
  const stores = {
    memory: "memory",
    SQLite: `sqlite:${home}/${name}.db`,
    ...(database ? { Postgres: database.url } : {}),
  };
  return Object.entries(stores).map(([store, url]) => [
    `${name}, ready with ${store}`,
    { ...program, args: [...program.args, "--store", url], path: "/readyz", rests: false },
  ]);
}

const programs: Record<string, Started> = {
  empty: {
    command: Deno.execPath(),
    args: ["run", "--no-prompt", "--allow-net", "--allow-read", `${ROOT}tests/bench/floor_server.ts`],
    path: "/",
  },
  source: { ...source, ...run },
  ...Object.fromEntries(untilReady("source", source)),
  ...(executable
    ? { compiled: { ...executable, ...run }, ...Object.fromEntries(untilReady("compiled", executable)) }
    : {}),
};

try {
  const names = Object.keys(programs);
  const taken = new Map<string, Figures[]>(names.map((name) => [name, []]));
  for (let round = -1; round < rounds; round++) { // the first round fills caches and is not counted
    for (const [name, program] of Object.entries(programs)) {
      const figures = await startOnce(program);
      if (round >= 0) taken.get(name)?.push(figures);
    }
  }
  printFigures(new Map([...taken].map(([name, figures]) => [name, mediansOf(figures)])));
} finally {
  await Deno.remove(home, { recursive: true });
}

async function startOnce(program: Started): Promise<Figures> {
  const start = performance.now();
  await using server = await startServer(program);
  const response = await fetch(server.url + program.path, requestOf(program));
  const text = await response.text();
  if (!response.ok || program.body !== undefined && JSON.parse(text).status !== "completed") {
    throw new Error(`Cannot measure ${program.command}: ${program.path} answered ${response.status} ${text}`);
  }
  const first_answer_ms = performance.now() - start;
  if (program.rests === false) return { first_answer_ms, rss_mb: null };
  await new Promise((resolve) => setTimeout(resolve, REST_S * 1000));
  return { first_answer_ms, rss_mb: await residentMb(server.pid) };
}

function requestOf({ body }: Started): RequestInit {
  return body === undefined ? {} : { method: "POST", headers: { "content-type": "application/json" }, body };
}

function mediansOf(figures: readonly Figures[]): Figures {
  const memory = figures.flatMap(({ rss_mb }) => rss_mb ?? []);
  return {
    first_answer_ms: median(figures.map(({ first_answer_ms }) => first_answer_ms)),
    rss_mb: memory.length > 0 ? median(memory) : null,
  };
}

function printFigures(medians: ReadonlyMap<string, Figures>): void {
  const floor = medians.get("empty");
  const rows: Cell[][] = [];
  const ratios: Record<string, { first_answer: number; rss: number | null }> = {};
  for (const [name, { first_answer_ms, rss_mb }] of medians) {
    const first_answer = first_answer_ms / (floor?.first_answer_ms ?? NaN);
    const rss = rss_mb === null ? null : rss_mb / (floor?.rss_mb ?? NaN);
    if (name !== "empty") ratios[name] = { first_answer, rss };
    const mb = name === "compiled" ? compiled?.mb ?? "" : "";
    rows.push([name, first_answer_ms, first_answer, rss_mb ?? "-", rss ?? "-", mb]);
  }
  print(`Start, median of ${rounds} rounds`);
  print(tableOf(["", "first answer ms", "ratio", "rss MB", "ratio", "executable MB"], rows));
  if (database === null) print("Postgres is not installed here: not measured");
  if (!compiled) print("dist/preamp does not exist; create it with `deno task compile`.");
  report("start", {
    rounds,
    medians: Object.fromEntries(medians),
    ratios,
    executable_mb: compiled?.mb ?? null,
  });
}
