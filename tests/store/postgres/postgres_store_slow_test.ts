import pg from "pg";
import { FakeClock } from "../../../src/testing/clocks.ts";
import { createClient, createPool } from "../../../src/store/postgres/database.ts";
import { openPostgresMaintenance, WRONG_LOGS } from "../../../src/store/postgres/maintenance.ts";
import { Notifications } from "../../../src/store/postgres/notifications.ts";
import { openPostgresStore } from "../../../src/store/postgres/postgres_store.ts";
import { purgePart } from "../../../src/store/postgres/purge.ts";
import { errorCode } from "../../../src/sdk/errors.ts";
import type { Change } from "../../../src/store/store.ts";
import { assert, assertEquals, assertMatch, assertRejects } from "../../assert.ts";
import { testLeaseClocks } from "../../contracts/leases.ts";
import { testStore } from "../../contracts/store.ts";
import { HANGS_MS } from "../../support/clock.ts";
import { type Database, POSTGRES, startPostgres } from "../../support/postgres.ts";
import { stallingProxy } from "../../support/stalling_proxy.ts";

let database: Database | undefined;

if (POSTGRES === null) {
  Deno.test({ name: "PostgresStore: Postgres is not installed here", ignore: true, fn: () => {} });
} else {
  Deno.test.beforeAll(async () => {
    database = await startPostgres();
  });
  Deno.test.afterAll(async () => await database?.[Symbol.asyncDispose]());

  testStore("PostgresStore", async () => {
    const clock = new FakeClock();
    const now = () => clock.now();
    const url = await emptyDatabase();
    return {
      store: await openPostgresStore(url, { now }),
      advance: (ms) => clock.advance(ms),
      another: () => openPostgresStore(url, { now }),
    };
  });

  testLeaseClocks("PostgresStore", async (body) => {
    const url = await emptyDatabase();
    await body(() => openPostgresStore(url)); // the clock of the database decides, so there is no other to set
  });

  Deno.test("several processes may create the tables at once", async () => {
    const url = await emptyDatabase();
    const stores = await Promise.all([1, 2, 3, 4].map(() => openPostgresStore(url)));
    await stores[0]!.commit([{ put: { kind: "run", key: "x", namespace: "a", value: {} } }]);
    assertEquals((await stores[3]!.get("run", "x"))?.version, 1);
    for (const store of stores) await store.close();
  });

  Deno.test("openPostgresStore() refuses tables of a newer version", async () => {
    const url = await emptyDatabase();
    await (await openPostgresStore(url)).close();
    await execute(url, "UPDATE preamp.schema_version SET version = 99");
    await assertRejects(() => openPostgresStore(url), Error, "the database has version 99 of the tables");
  });

  Deno.test("changed() resolves when another process commits, and not for the store's own commits", async () => {
    const url = await emptyDatabase();
    const pool = createPool(url, { max: 2, timeout_ms: 60_000, named: true });
    const open = () => new Notifications(url, pool, HANGS_MS, HANGS_MS); // nothing but a commit ends a wait in time
    const [one, other] = [open(), open()];
    const stop = new AbortController();
    const { signal } = stop;
    await Promise.race([one.changed(signal), other.changed(signal)]); // the first notification: both listen
    let wakes = 0;
    let woken = Promise.withResolvers<void>();
    const counting = (async () => {
      for (; !signal.aborted; woken = Promise.withResolvers()) {
        await one.changed(signal);
        wakes++;
        woken.resolve();
      }
    })();
    for (let round = 0; round < 20; round++) {
      const seen = other.changed(signal);
      one.notify([]);
      await seen;
      const { promise } = woken;
      other.notify(["log"]);
      await promise;
    }
    assert(wakes <= 21, String(wakes)); // those of the other, and one of its start
    const store = await openPostgresStore(url);
    const seen = other.changed(signal);
    await store.commit([{ put: { kind: "run", key: "a", namespace: "a", value: {} } }]);
    await seen;
    await store.close();
    stop.abort();
    await Promise.all([counting, one.close(), other.close()]);
    await pool.end();
  });

  Deno.test("a database of the version before gets what counts open records, also from two servers at once", async () => {
    const url = await emptyDatabase();
    await (await openPostgresStore(url)).close();
    const client = createClient(url);
    await client.connect();
    await client.query("DROP FUNCTION preamp.count_open; DROP INDEX preamp.records_open");
    const stores = await Promise.all([openPostgresStore(url), openPostgresStore(url)]);
    const count = { kind: "run", namespace: "a", where: { caller: "k" } };
    const index = { caller: "k", open: "true" };
    await stores[0].commit([{ count, below: 1 }, {
      put: { kind: "run", key: "a", namespace: "a", value: {}, index },
    }]);
    await assertRejects(() => Promise.resolve(stores[1].commit([{ count, below: 1 }])), Error, "1 records");
    const { rows } = await client.query(
      "SELECT count(*) AS n FROM pg_indexes WHERE indexname = 'records_open'",
    );
    assertEquals(Number(rows[0]!.n), 1);
    await Promise.all([...stores.map((store) => store.close()), client.end()]);
  });

  Deno.test("changed() of a reader of one log does not resolve when other logs, records or leases change", async () => {
    const url = await emptyDatabase();
    const pool = createPool(url, { max: 2, timeout_ms: 60_000, named: true });
    const reading = new Notifications(url, pool, HANGS_MS, HANGS_MS);
    const { signal } = new AbortController();
    const store = await openPostgresStore(url);
    const put = { put: { kind: "run", key: "a", namespace: "a", value: {} } };
    let is_listening = false;
    const listening = reading.changed(signal).then(() => is_listening = true);
    while (!is_listening) await store.commit([put]);
    await listening;
    const asked = new Set<string>();
    let is_woken = false;
    const woken = reading.changed(signal, (name) => {
      asked.add(name);
      return name === "log";
    }).then(() => is_woken = true);
    await store.heartbeat("me", 60_000);
    await store.acquire("lease", "me");
    await store.commit([{ append: "another", after: 0, entries: [{ seq: 1 }] }, put]);
    await store.release("lease", "me");
    const token = (await store.acquire("of a commit", "me"))!;
    await store.commit([{ release: { lease: "of a commit", token } }]);
    while (asked.size < 4) await store.get("run", "a");
    assertEquals([[...asked].toSorted(), is_woken], [["another", "lease", "of a commit", "run"], false]);
    await store.commit([{ append: "log", after: 0, entries: [{ seq: 1 }] }]);
    await woken;
    await Promise.all([store.close(), reading.close()]);
    await pool.end();
  });

  Deno.test("a process that is alone sends no notifications of its commits, until it hears of another one", async () => {
    const url = await emptyDatabase();
    await (await openPostgresStore(url)).close();
    const pool = createPool(url, { max: 2, timeout_ms: 5_000, named: true });
    let sent = 0;
    const query = pool.query.bind(pool);
    const counted = Object.assign(Object.create(pool), {
      query: (...args: Parameters<typeof query>) => (sent++, query(...args)),
    });
    const stop = new AbortController();
    const one = new Notifications(url, counted, 300);
    const waiting = one.changed(stop.signal);
    const sendsAtCommit = async () => {
      const before = sent;
      one.notify(["log"]);
      for (const end = performance.now() + 20; performance.now() < end;) await query("SELECT 1");
      return sent > before;
    };
    const until = async (expected: boolean) => {
      let found = 0; // one after the other: now and then a process says that it is there
      for (let round = 0; round < 300 && found < 5; round++) {
        found = await sendsAtCommit() === expected ? found + 1 : 0;
      }
      return found === 5;
    };
    assertEquals([await sendsAtCommit(), await until(false)], [true, true]);
    const other = new Notifications(url, pool, 300);
    const others = other.changed(stop.signal);
    await waiting;
    assertEquals(await until(true), true);
    stop.abort();
    await others;
    await Promise.all([one.close(), other.close()]);
    await pool.end();
  });

  Deno.test("commits that wait for each other in a circle all succeed", async () => {
    const url = await emptyDatabase();
    const [one, two] = [await openPostgresStore(url), await openPostgresStore(url)];
    const put = (key: string) => ({ put: { kind: "run", key, namespace: "a", value: {} } });
    await one.commit([put("a"), put("b")]);
    await Promise.all(
      Array.from(
        { length: 40 },
        (_, n) => (n % 2 ? one.commit([put("a"), put("b")]) : two.commit([put("b"), put("a")])),
      ),
    );
    assertEquals((await one.get("run", "a"))?.version, 41);
    await one.close();
    await two.close();
  });

  Deno.test("a statement on a connection that was lost without a sign fails in time, and the next one succeeds", async () => {
    using proxy = stallingProxy(await emptyDatabase());
    const store = await openPostgresStore(proxy.url, { timeout_ms: 1_500 });
    const put = (key: string) => ({ put: { kind: "run", key, namespace: "a", value: {} } });
    await store.commit([put("a"), { append: "a", after: 0, entries: [{ seq: 1 }] }]);
    proxy.stall();
    const read = await assertRejects(async () => await store.get("run", "a"));
    assertEquals(
      [errorCode(read), (read as Error).message],
      ["overloaded", "Cannot use the store: the database failed: Query read timeout"],
    );
    assertEquals((await store.get("run", "a"))?.version, 1);
    proxy.stall();
    await assertRejects(async () => await store.commit([put("a"), put("b")]));
    await store.commit([put("a"), put("b")]);
    assertEquals([(await store.get("run", "a"))?.version, (await store.get("run", "b"))?.version], [2, 1]);
    await store.close();
  });

  Deno.test("connections that are lost in transactions fail their commits, and not the process", async () => {
    const gone = await startPostgres();
    const store = await openPostgresStore(gone.url);
    const put = (key: string) => ({ put: { kind: "run", key, namespace: "a", value: {} } });
    const committing = Array.from({ length: 10 }, async (_, n) => {
      while (true) await store.commit([put(`a${n}`), put(`b${n}`)]);
    });
    const failed = Promise.all(committing.map((commits) => assertRejects(() => commits)));
    for (let n = 0; n < 10; n++) await store.commit([put("c"), put("d")]);
    await gone[Symbol.asyncDispose]();
    assertEquals((await failed).length, 10);
    await store.close();
  });

  Deno.test("openPostgresStore() adds the columns that tables of an older program lack, and packs its logs too", async () => {
    const url = await emptyDatabase();
    const append = (after: number) => ({
      append: "log",
      after,
      entries: Array.from({ length: 40 }, (_, n) => ({ seq: after + n + 1, text: "word ".repeat(99) })),
    });
    const older = await openPostgresStore(url);
    await older.commit([append(0)]);
    await older.close();
    for (const column of ["packed", "count"]) {
      await execute(url, `ALTER TABLE preamp.entries DROP COLUMN ${column}`);
    }
    const store = await openPostgresStore(url);
    await store.commit([{ ...append(40), final_bytes: 40_000 }]);
    await store.commit([{ ...append(0), append: "deleted", final_bytes: 40_000 }]);
    await store.commit([{ deleteLog: "deleted" }]);
    const rows = async () => {
      const client = new pg.Client({ connectionString: url });
      await client.connect();
      const { rows } = await client.query("SELECT log, seq, count, json FROM preamp.entries");
      await client.end();
      return rows;
    };
    assertEquals((await rows()).length, 80); // servers of the version before can read the end
    const deadline = performance.now() + HANGS_MS;
    while ((await rows()).length > 1 && performance.now() < deadline) {
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    assertEquals(await rows(), [{ log: "log", seq: "80", count: "80", json: "" }]);
    assertEquals(await store.entries("log", 0, 200), [...append(0).entries, ...append(40).entries]);
    await store.close();
    const maintenance = await openPostgresMaintenance(url);
    const { problems, entries } = await maintenance.state();
    assertEquals([problems, entries], [[], 80]);
    await maintenance.close();
  });

  Deno.test("commits find logs by their index, in a database without statistics too", async () => {
    const url = await emptyDatabase();
    const store = await openPostgresStore(url);
    await execute(url, "INSERT INTO preamp.logs SELECT 'log ' || n, 0 FROM generate_series(1, 2000) AS n");
    for (let run = 0; run < 100; run++) {
      const append = (log: string, after: number) => ({ append: log, after, entries: [{ seq: after + 1 }] });
      await store.commit([append(`run ${run}`, 0)]);
      await store.commit([append(`run ${run}`, 1)]);
      const put = { kind: "run", key: `run ${run}`, namespace: "a", value: {} };
      await store.commit([append(`run ${run}`, 2), append("session", run), { put }]);
    }
    await store.close(); // which reports what its connections have read
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    const { rows } = await client.query(
      "SELECT seq_tup_read AS n FROM pg_stat_user_tables WHERE schemaname = 'preamp' AND relname = 'logs'",
    );
    await client.end();
    assert(Number(rows[0].n) < 20_000, `300 commits read ${rows[0].n} rows without an index`);
  });

  Deno.test("purgePart() deletes expired records and logs, in parts, and nothing else", async () => {
    const url = await emptyDatabase();
    const store = await openPostgresStore(url);
    const names = Array.from({ length: 25 }, (_, n) => `log ${n}`);
    const append = (log: string) => ({ append: log, after: 0, entries: [{ seq: 1 }, { seq: 2 }] });
    const put = (key: string) => ({ kind: "run", key, namespace: "a", value: {} });
    await store.commit([
      ...[...names, "young", "lasting"].map(append),
      ...names.map((log) => ({ expireLog: log, at_ms: 10 })),
      { expireLog: "young", at_ms: 30 },
      ...Array.from({ length: 1_500 }, (_, n) => ({ put: { ...put(`old ${n}`), expires_ms: 10 } })),
      { put: { ...put("young"), expires_ms: 30 } },
      { put: put("lasting") },
    ]);
    await store.close();
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    let parts = 1;
    while (await purgePart(client, 20)) parts++;
    const rows = async (table: string, column: string) => {
      const { rows } = await client.query(`SELECT ${column} AS name FROM preamp.${table} ORDER BY 1`);
      return rows.map(({ name }: { name: string }) => name);
    };
    assertEquals(parts, 2);
    assertEquals(await rows("records", "key"), ["lasting", "young"]);
    assertEquals(await rows("logs", "name"), ["lasting", "young"]);
    assertEquals(await rows("entries", "log"), ["lasting", "lasting", "young", "young"]);
    await client.end();
  });

  Deno.test("purgePart() ends a part after the log with which it reaches 5,000 entries", async () => {
    const url = await emptyDatabase();
    const store = await openPostgresStore(url);
    const entries = Array.from({ length: 3_000 }, (_, n) => ({ seq: n + 1 }));
    for (const log of ["a", "b", "c"]) {
      await store.commit([{ append: log, after: 0, entries }, { expireLog: log, at_ms: 10 }]);
    }
    await store.close();
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    const logs = [];
    do {
      const { rows } = await client.query("SELECT count(*)::int AS n FROM preamp.logs");
      logs.push(rows[0].n);
    } while (await purgePart(client, 20));
    assertEquals(logs, [3, 1, 0]);
    await client.end();
  });

  Deno.test("purgePart() keeps what another process prolongs while it waits for it", async () => {
    const url = await emptyDatabase();
    const store = await openPostgresStore(url);
    const [one, other] = [new pg.Client({ connectionString: url }), new pg.Client({ connectionString: url })];
    await Promise.all([one.connect(), other.connect()]);
    const expired: [table: string, changes: Change[]][] = [
      ["records", [{ put: { kind: "session", key: "s", namespace: "a", value: {}, expires_ms: 10 } }]],
      ["logs", [{ append: "log", after: 0, entries: [{ seq: 1 }] }, { expireLog: "log", at_ms: 10 }]],
    ];
    for (const [table, changes] of expired) {
      await store.commit(changes);
      await one.query("BEGIN");
      await one.query(`UPDATE preamp.${table} SET expires_ms = 1e15`);
      const purging = purgePart(other, 20);
      const isWaiting = async () =>
        (await one.query("SELECT 1 FROM pg_locks WHERE NOT granted")).rows.length > 0;
      for (let count = 0; count < 10_000 && !await isWaiting(); count++);
      await one.query("COMMIT");
      await purging;
      assertEquals((await one.query(`SELECT 1 FROM preamp.${table}`)).rows.length, 1);
    }
    await Promise.all([one.end(), other.end(), store.close()]);
  });

  Deno.test("store check finds logs without all their entries, and entries without a log", async () => {
    const url = await emptyDatabase();
    const store = await openPostgresStore(url);
    for (const log of ["whole", "short", "lost"]) {
      await store.commit([{ append: log, after: 0, entries: [1, 2, 3].map((seq) => ({ seq })) }]);
    }
    await store.close();
    await execute(url, "DELETE FROM preamp.entries WHERE seq = 2 AND log = 'short'");
    await execute(url, "DELETE FROM preamp.logs WHERE name = 'lost'");
    const maintenance = await openPostgresMaintenance(url);
    const { problems, entries } = await maintenance.state();
    await maintenance.close();
    assertEquals(problems, ["log short has 2 of 3 entries", "log lost has 3 of 0 entries"]);
    assertEquals(entries, 8);
  });

  Deno.test("store check joins entries and logs, so that its time grows with their number only", async () => {
    const url = await emptyDatabase();
    await (await openPostgresStore(url)).close();
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    const { rows } = await client.query(`EXPLAIN ${WRONG_LOGS}`);
    await client.end();
    assertMatch(JSON.stringify(rows), /Anti Join/);
  });

  Deno.test("store check finds tables without their constraints; a store with `check` refuses them", async () => {
    const url = await emptyDatabase();
    await (await openPostgresStore(url, { check: true })).close();
    await execute(url, "ALTER TABLE preamp.records DROP CONSTRAINT records_kind_key_key");
    const maintenance = await openPostgresMaintenance(url);
    assertEquals((await maintenance.state()).problems, ["table records lacks UNIQUE (kind, key)"]);
    await maintenance.close();
    await (await openPostgresStore(url)).close();
    await assertRejects(
      () => openPostgresStore(url, { check: true }),
      Error,
      "its tables are damaged: table records lacks UNIQUE (kind, key)",
    );
  });

  Deno.test("a database that takes no writes is not ready", async () => {
    const url = `${await emptyDatabase()}?options=-c%20default_transaction_read_only%3Don`;
    await (await openPostgresStore(database!.url)).close();
    const store = await openPostgresStore(url);
    assertEquals((await store.ready()).ok, false);
    await store.close();
  });

  Deno.test("errors of the database have its code and no address", async () => {
    const gone = await startPostgres();
    const store = await openPostgresStore(gone.url);
    await gone[Symbol.asyncDispose]();
    // of a connection that was closed
    assertEquals(errorCode(await assertRejects(async () => await store.get("run", "a"))), "overloaded");
    const error = await assertRejects(async () => await store.get("run", "a"));
    assertEquals(
      [errorCode(error), (error as Error).message],
      ["overloaded", "Cannot use the store: the database failed: ECONNREFUSED"],
    );
    await store.close();
  });

  Deno.test("ready() gives the reason when the database is gone, and no password", async () => {
    const gone = await startPostgres();
    const store = await openPostgresStore(gone.url.replace("preamp@", "preamp:hunter2@"));
    assertEquals((await store.ready()).ok, true);
    await gone[Symbol.asyncDispose]();
    const answer = await store.ready();
    assertEquals([
      answer.ok,
      answer.reason?.startsWith("store not reachable: "),
      answer.reason?.includes("hunter2"),
    ], [
      false,
      true,
      false,
    ]);
    await store.close();
  });
}

/** Returns the URL of the database after deleting all tables. */
async function emptyDatabase(): Promise<string> {
  await execute(database!.url, "DROP SCHEMA IF EXISTS preamp CASCADE");
  return database!.url;
}

async function execute(connectionString: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString });
  await client.connect();
  await client.query(statement);
  await client.end();
}
