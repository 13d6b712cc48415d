/** Two real servers on one store: exactly one winner in every race. */
import { startServer } from "./program.ts";
import { RACE_FLAGS, RACES, runRounds } from "./races.ts";
import { KEYS, testOnStores } from "./shared_store.ts";

/** The bench does more: tests/bench/races_bench.ts. */
const ROUNDS = 100;

testOnStores("exactly one winner in every race", async (flags, t) => {
  const start = () => startServer([...flags, ...RACE_FLAGS], { env: KEYS });
  const servers = await Promise.all([start(), start()]);
  try {
    for (const [name, race] of Object.entries(RACES)) {
      await t.step(name, () => runRounds(race, servers, ROUNDS));
    }
  } finally {
    for (const server of servers) server.kill("SIGKILL"); // without a replay of each run
    for (const server of servers) await server.ended;
  }
});
