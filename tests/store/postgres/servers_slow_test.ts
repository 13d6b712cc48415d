/**
 * Owners of leases in Postgres that have died, and those that live: their clocks are arguments of these
 * tests.
 */
import pg from "pg";
import { openPostgresStore } from "../../../src/store/postgres/postgres_store.ts";
import type { Store } from "../../../src/store/store.ts";
import { assert, assertEquals } from "../../assert.ts";
import { endChild } from "../../support/child_process.ts";
import { POSTGRES, startPostgres } from "../../support/postgres.ts";

/** Milliseconds of a heartbeat, and after which it is late. */
const LIVES_MS = 60_000;
const LATE_MS = 2_000;

/** Repeats `action` until it resolves to something; a test that hangs is ended from outside. */
async function until<T>(action: () => Promise<T | null>): Promise<T> {
  while (true) {
    const found = await action();
    if (found !== null) return found;
  }
}

/** A database with a connection to it, and stores whose clock is `now_ms`. */
interface Subject {
  readonly url: string;
  readonly client: { query(text: string): Promise<{ rows: Record<string, unknown>[] }> };
  now_ms: number;
  open(): Promise<Store>;
}

async function withDatabase(test: (subject: Subject) => Promise<void>): Promise<void> {
  await using database = await startPostgres();
  const { url } = database;
  const client = new pg.Client({ connectionString: url });
  const stores: Store[] = [];
  const subject: Subject = {
    url,
    client,
    now_ms: 1,
    async open() {
      const store = await openPostgresStore(url, { now: () => subject.now_ms });
      stores.push(store);
      return store;
    },
  };
  try {
    await client.connect();
    await test(subject);
  } finally {
    await Promise.all([client.end(), ...stores.map((store) => store.close())]);
  }
}

const ignore = POSTGRES === null;

Deno.test({
  name: "the leases of a killed process are free when its heartbeat is late; those of a stopped one are not",
  ignore,
  fn: () =>
    withDatabase(async (subject) => {
      const { url, client, open } = subject;
      const [one, two] = [await open(), await open()];
      const script = new URL("../lease_owner.ts", import.meta.url).href;
      const child = new Deno.Command(Deno.execPath(), {
        args: ["run", "--no-check", "--allow-all", script, url, "dead"],
        stdout: "piped",
      }).spawn();
      const said = child.stdout.getReader();
      try {
        await said.read(); // the lease is acquired
        await until(async () => {
          const { rows } = await client.query("SELECT 1 FROM preamp.servers WHERE is_locked");
          return rows.length > 0 ? true : null;
        });
        const find = async () => (await one.heartbeat("one", LIVES_MS)).deaths;
        await two.heartbeat("two", LIVES_MS);
        child.kill("SIGSTOP");
        subject.now_ms += LATE_MS;
        assertEquals([await find(), await one.acquire("lease", "one"), await one.free(["lease", "other"])], [
          ...[false, null, ["other"]],
        ]);
        subject.now_ms = 1;
        child.kill("SIGCONT");
        child.kill("SIGKILL");
        await child.status;
        assertEquals([await find(), await one.acquire("lease", "one")], [false, null]); // it is not late
        subject.now_ms += LATE_MS;
        await until(async () => await find() || null); // its connection ends
        assertEquals(await one.free(["lease"]), ["lease"]);
        assertEquals(await one.acquire("lease", "one", false), null); // until its time is over
        const tokens = await Promise.all([one.acquire("lease", "one"), two.acquire("lease", "two")]);
        assertEquals(tokens.filter((token) => token === null).length, 1); // one of them has it
        assertEquals((await one.heartbeat("dead", LIVES_MS)).lives, false);
      } finally {
        endChild(child, "SIGKILL");
        await Promise.all([said.cancel(), child.status]);
      }
    }),
});

Deno.test({
  name: "a process whose lock is lost locks again; behind a pooler, where it has none, its row alone decides",
  ignore,
  fn: () =>
    withDatabase(async (subject) => {
      const { client, open } = subject;
      const [store, other] = [await open(), await open()];
      const beat = () => store.heartbeat("one", LIVES_MS);
      const holder = async () => {
        await beat();
        const { rows } = await client.query(
          "SELECT pid FROM pg_locks, preamp.servers WHERE locktype = 'advisory' AND owner = 'one' AND is_locked",
        );
        return rows.length === 1 ? rows[0]!.pid : null;
      };
      const pid = await until(holder);
      await client.query(`SELECT pg_terminate_backend(${pid})`);
      await until(async () => {
        const again = await holder();
        return again === pid ? null : again;
      });
      await store.acquire("lease", "one");
      // as behind a pooler
      await client.query("UPDATE preamp.servers SET is_locked = FALSE, owner = 'pooled' WHERE owner = 'one'");
      await client.query("UPDATE preamp.leases SET owner = 'pooled'");
      subject.now_ms += LATE_MS;
      assertEquals((await other.heartbeat("other", LIVES_MS)).deaths, false);
      assertEquals(await other.acquire("lease", "other"), null);
      subject.now_ms = 1 + LIVES_MS;
      assertEquals((await other.heartbeat("other", LIVES_MS)).deaths, true);
      assert(await other.acquire("lease", "other") !== null);
    }),
});

Deno.test({
  name: "a store that is closed says that its owners have ended, and holds no lock",
  ignore,
  fn: () =>
    withDatabase(async ({ client, open }) => {
      const [store, other] = [await open(), await open()];
      await store.heartbeat("one", LIVES_MS);
      await store.acquire("lease", "one");
      await store.close();
      assertEquals((await other.heartbeat("other", LIVES_MS)).deaths, true);
      assertEquals(await other.acquire("lease", "other", false) !== null, true);
      const { rows } = await client.query("SELECT is_dead FROM preamp.servers WHERE owner = 'one'");
      assertEquals(rows, [{ is_dead: true }]);
    }),
});

Deno.test({
  name: "beside the program before this one: neither takes a lease of the other while that lives",
  ignore,
  fn: () =>
    withDatabase(async (subject) => {
      const { client, open } = subject;
      const store = await open();
      await store.heartbeat("new", LIVES_MS);
      await store.acquire("lease of new", "new");
      // the condition under which that program takes a lease, its clock given
      const { rows } = await client.query(
        "SELECT until_ms - 1 AS left, (SELECT count(*)::int FROM preamp.leases WHERE name LIKE 'owner/%') AS owners " +
          "FROM preamp.leases WHERE until_ms <= 1 + 300000 OR until_ms < 1 + 3200",
      );
      assertEquals(rows, []); // minutes are left
      await client.query(
        "INSERT INTO preamp.leases (name, owner, token, until_ms) VALUES ('lease of old', 'old', 1, 5000)",
      );
      subject.now_ms = 4_999; // it renews the lease each 1.5 s
      await store.heartbeat("new", LIVES_MS);
      assertEquals([await store.free(["lease of old"]), await store.acquire("lease of old", "new")], [
        [],
        null,
      ]);
      subject.now_ms = 5_000;
      assertEquals(await store.free(["lease of old"]), ["lease of old"]);
      assert(await store.acquire("lease of old", "new") !== null);
    }),
});
