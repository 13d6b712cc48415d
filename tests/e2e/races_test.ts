/** Two real servers on one store: exactly one winner in every race. */
import { startServer } from "./program.ts";
import { RACE_FLAGS, RACES, runRounds } from "./races.ts";
import { KEYS, testOnStores } from "./shared_store.ts";

/** Rounds of a race; the bench does more: tests/bench/races_bench.ts. */
const ROUNDS = 100;
/** Of races that a store without comparisons or leases loses within 13 rounds; others take up to 70. */
const FEWER_ROUNDS: Readonly<Record<string, number>> = {
  "requests with one idempotency key": 50,
  "runs in one session": 50,
};

testOnStores("exactly one winner in every race", async (flags, t) => {
  const start = () => startServer([...flags, ...RACE_FLAGS], { env: KEYS });
  const servers = await Promise.all([start(), start()]);
  try {
    for (const [name, race] of Object.entries(RACES)) {
      await t.step(name, () => runRounds(race, servers, FEWER_ROUNDS[name] ?? ROUNDS));
    }
  } finally {
    for (const server of servers) server.kill("SIGKILL"); // without a replay of each run
    for (const server of servers) await server.ended;
  }
});
