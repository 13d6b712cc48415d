/**
 * Races between two servers on one store, many times: decisions about one approval, one idempotency key, one
 * session, cancelling while the run ends. Prints the races per second; fails when a race has no winner or
 * more than one.
 *
 *   deno run -A tests/bench/races_bench.ts [rounds]
 */
import { startServer } from "../e2e/program.ts";
import { inFolder } from "../support/folder.ts";
import { RACE_FLAGS, RACES, runRounds } from "../e2e/races.ts";
import { KEYS } from "../e2e/shared_store.ts";
import { POSTGRES, startPostgres } from "../support/postgres.ts";
import { print, report, tableOf } from "./figures.ts";

const rounds = Number(Deno.args[0] ?? 1_000);

const rows: (string | number)[][] = [];
const figures: Record<string, number> = {};
await inFolder((folder) => race("sqlite", `sqlite:${folder}/runs.db`));
if (POSTGRES !== null) {
  await using database = await startPostgres();
  await race("postgres", database.url);
} else print("Postgres is not installed here: not measured");
print(tableOf(["store", "race", "rounds", "rounds/s"], rows));
report("races", figures);

async function race(store: string, url: string): Promise<void> {
  const start = () => startServer(["--store", url, ...RACE_FLAGS], { env: KEYS });
  const servers = await Promise.all([start(), start()]);
  try {
    for (const [name, body] of Object.entries(RACES)) {
      const started = performance.now();
      await runRounds(body, servers, rounds);
      const rate = rounds / (performance.now() - started) * 1000;
      rows.push([store, name, rounds, rate]);
      figures[`${store}_${name.replaceAll(" ", "_")}`] = rate;
    }
  } finally {
    for (const server of servers) server.kill("SIGKILL");
    for (const server of servers) await server.ended;
  }
}
