/** Leases in Postgres of processes that have died, and of those that live: no clock moves in these tests. */
import pg from "pg";
import { openPostgresStore } from "../../../src/store/postgres/postgres_store.ts";
import { assert, assertEquals } from "../../assert.ts";
import { endChild } from "../../support/child_process.ts";
import { type Database, POSTGRES, startPostgres } from "../../support/postgres.ts";

/** Milliseconds of a lease that counts as late from the start, and of one that does not. */
const LATE_MS = 3_000;
const IN_TIME_MS = 60_000;

/** Opens a store whose clock stands still, so that no lease of it expires. */
const open = (url: string) => openPostgresStore(url, { now: () => 1 });

/** Repeats `action` until it resolves to something; a test that hangs is ended from outside. */
async function until<T>(action: () => Promise<T | null>): Promise<T> {
  while (true) {
    const found = await action();
    if (found !== null) return found;
  }
}

/** Calls `test` with a database, and a process that has a lease in it and a lock. */
async function withOwner(
  ttl_ms: number,
  test: (url: string, child: Deno.ChildProcess, database: Database) => Promise<void>,
): Promise<void> {
  await using database = await startPostgres();
  const { url } = database;
  const script = new URL("../lease_owner.ts", import.meta.url).href;
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "--no-check", "--allow-all", script, url, "dead", `${ttl_ms}`],
    stdout: "piped",
  }).spawn();
  const said = child.stdout.getReader();
  const client = new pg.Client({ connectionString: url });
  try {
    await said.read(); // the lease is acquired
    await client.connect();
    const own = "SELECT 1 FROM preamp.leases WHERE name = 'owner/dead'";
    await until(async () => (await client.query(own)).rows.length > 0 ? true : null);
    await test(url, child, database);
  } finally {
    endChild(child, "SIGKILL");
    await Promise.all([said.cancel(), child.status, client.end()]);
  }
}

const ignore = POSTGRES === null;

Deno.test({
  name: "the late lease of a killed process is free at once; that of a living or stopped process is not",
  ignore,
  fn: () =>
    withOwner(LATE_MS, async (url, child) => {
      const [one, two] = [await open(url), await open(url)];
      assertEquals([await one.acquire("lease", "one", LATE_MS), await one.free!(["lease", "other"])], [
        null,
        ["other"],
      ]);
      child.kill("SIGSTOP");
      assertEquals(await one.acquire("lease", "one", LATE_MS), null);
      child.kill("SIGCONT");
      child.kill("SIGKILL");
      await child.status;
      await until(async () => (await one.free!(["lease"])).length > 0 ? true : null); // its connection ends
      assertEquals(await one.acquire("lease", "one", IN_TIME_MS, false), null); // it waits for the expiry
      const tokens = await Promise.all([
        one.acquire("lease", "one", IN_TIME_MS),
        two.acquire("lease", "two", IN_TIME_MS),
      ]);
      assertEquals(tokens.filter((token) => token === null).length, 1); // one of them has it
      assertEquals(await one.renew("lease", "dead", LATE_MS), false);
      await Promise.all([one.close(), two.close()]);
    }),
});

Deno.test({
  name: "a lease that was renewed in time is its owner's, also when its lock is gone; locks come back",
  ignore,
  fn: () =>
    withOwner(IN_TIME_MS, async (url, child) => {
      const store = await open(url);
      child.kill("SIGKILL");
      await child.status;
      assertEquals([await store.acquire("lease", "one", LATE_MS), await store.free!(["lease"])], [null, []]);
      assert(await store.acquire("second", "one", LATE_MS) !== null);
      const client = new pg.Client({ connectionString: url });
      await client.connect();
      const holders = async () =>
        (await client.query("SELECT pid FROM pg_locks WHERE locktype = 'advisory'")).rows.map((
          { pid }: { pid: number },
        ) => pid);
      const [pid] = await until(async () => (await holders()).length === 1 ? await holders() : null);
      await client.query("SELECT pg_terminate_backend($1)", [pid]);
      const [again] = await until(async () => {
        const pids = await holders();
        return pids.length === 1 && pids[0] !== pid ? pids : null;
      });
      assert(again !== pid);
      await store.close();
      assertEquals(await holders(), []);
      const { rows } = await client.query("SELECT name FROM preamp.leases WHERE name = 'owner/one'");
      assertEquals(rows, []);
      await client.end();
    }),
});

Deno.test({
  name: "an owner that has no lock, as behind a pooler, keeps its late lease until it expires",
  ignore,
  fn: async () => {
    await using database = await startPostgres();
    const [store, other] = [await open(database.url), await open(database.url)];
    const client = new pg.Client({ connectionString: database.url });
    await client.connect();
    await client.query(
      "INSERT INTO preamp.leases (name, owner, token, until_ms) VALUES ('lease', 'old', 1, 100)",
    );
    assertEquals(await store.acquire("lease", "one", LATE_MS), null);
    await client.query("UPDATE preamp.leases SET until_ms = 1 WHERE name = 'lease'");
    assert(await store.acquire("lease", "one", LATE_MS) !== null);
    await Promise.all([store.close(), other.close(), client.end()]);
  },
});
