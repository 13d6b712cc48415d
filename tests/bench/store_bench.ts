/**
 * What a lasting store costs: runs per second through `createPreamp().fetch` for each store, with 1 and 32
 * requests at once, compared with the memory store; and what a crash loses: a process that appends to a log
 * is killed with SIGKILL, and every entry that it had acknowledged must be there.
 *
 *   deno run -A tests/bench/store_bench.ts [runs] [kills]
 *   deno run -A tests/bench/store_bench.ts 0 100   # only kills
 */
import { createPreamp, defaultPolicy, openStore, type Store } from "../../src/server/mod.ts";
import { POSTGRES, startPostgres } from "../support/postgres.ts";
import { print, report, tableOf } from "./figures.ts";
import { HELLO_BODY } from "./hello_request.ts";

const runs = Number(Deno.args[0] ?? 1_000);
const kills = Number(Deno.args[1] ?? 20);

/** Requests at once. */
const CONCURRENT = [1, 32] as const;

const folder = await Deno.makeTempDir();
await using database = POSTGRES === null ? null : await startPostgres();
const stores: Record<string, string> = {
  sqlite: `sqlite:${folder}/runs.db`,
  kv: `kv:${folder}/kv.db`,
  ...(database ? { postgres: database.url } : {}),
};
try {
  const figures: Record<string, number> = {};
  if (runs > 0) await measureRuns(figures);
  if (database === null) print("Postgres is not installed here: not measured");
  for (const [name, url] of Object.entries(stores)) {
    const { acknowledged, lost } = await killWhileAppending(name, url);
    print(`${name}: killed ${kills} times, ${acknowledged} entries acknowledged, ${lost} lost`);
    figures[`${name}_lost`] = lost;
  }
  report("store", figures);
} finally {
  await Deno.remove(folder, { recursive: true });
}

async function measureRuns(figures: Record<string, number>): Promise<void> {
  const memory = await runsPerSecond(undefined);
  const rows = [row("memory", memory, memory)];
  for (const [name, url] of Object.entries(stores)) {
    const rates = await runsPerSecond(await openStore(url));
    rows.push(row(name, rates, memory));
    rates.forEach((rate, index) => figures[`${name}_${CONCURRENT[index]}`] = rate / memory[index]!); // as many
  }
  print(tableOf(["store", "runs/s, 1 at once", "runs/s, 32 at once", "of memory, 1", "of memory, 32"], rows));
}

function row(name: string, rates: number[], memory: number[]): (string | number)[] {
  return [name, ...rates, ...rates.map((rate, index) => rate / memory[index]!)]; // as many
}

async function runsPerSecond(store: Store | undefined): Promise<number[]> {
  const policy = defaultPolicy();
  policy.rates = { requests_per_minute: 0, runs_per_minute: 0 };
  policy.limits.max_runs_per_key = policy.limits.max_concurrent_runs = 1_000;
  await using preamp = createPreamp({ authenticate: null, log: null, policy, ...(store ? { store } : {}) });
  const rates: number[] = [];
  for (const concurrent of CONCURRENT) {
    await send(preamp.fetch, runs / 10, concurrent); // warms up
    const started = performance.now();
    await send(preamp.fetch, runs, concurrent);
    rates.push(runs / (performance.now() - started) * 1000);
  }
  return rates;
}

async function send(
  fetch: (request: Request) => Response | Promise<Response>,
  count: number,
  concurrent: number,
) {
  let left = count;
  const one = async () => {
    while (left-- > 0) {
      const headers = { "content-type": "application/json" };
      const response = await fetch(
        new Request("http://localhost/v1/runs", { method: "POST", headers, body: HELLO_BODY }),
      );
      const { status } = await response.json();
      if (status !== "completed") throw new Error(`a run ended as ${status}`);
    }
  };
  await Promise.all(Array.from({ length: concurrent }, one));
}

/** Kills processes that append; counts the acknowledged entries and those that are not there afterwards. */
async function killWhileAppending(
  name: string,
  url: string,
): Promise<{ acknowledged: number; lost: number }> {
  let [acknowledged, lost] = [0, 0];
  for (let kill = 0; kill < kills; kill++) {
    const log = `${name}-${kill}`;
    const child = new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", new URL("./append_forever.ts", import.meta.url).pathname, url, log],
      stdout: "piped",
      stderr: "inherit",
    }).spawn();
    let last = 0;
    const reading = (async () => {
      for await (const text of child.stdout.pipeThrough(new TextDecoderStream())) {
        last = Number(text.trimEnd().split("\n").at(-1)) || last;
        if (last > 50 + Math.random() * 500) child.kill("SIGKILL");
      }
    })();
    await Promise.all([child.status, reading.catch(() => {})]);
    const store = await openStore(url);
    const found = await store.entries(log, 0, Number.MAX_SAFE_INTEGER) ?? [];
    await store.close();
    acknowledged += last;
    lost += Math.max(0, last - found.length);
  }
  return { acknowledged, lost };
}
