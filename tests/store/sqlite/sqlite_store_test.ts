import { DatabaseSync } from "node:sqlite";
import { SqliteDatabase } from "../../../src/store/sqlite/database.ts";
import { openSqliteMaintenance } from "../../../src/store/sqlite/maintenance.ts";
import { purgePart } from "../../../src/store/sqlite/purge.ts";
import { openSqliteStore } from "../../../src/store/sqlite/sqlite_store.ts";
import { assert, assertEquals, assertRejects } from "../../assert.ts";
import { testFileStore, using, withFile } from "../../contracts/file_store.ts";
import { inFolder } from "../../support/folder.ts";
import { mountSmallDisk } from "../../support/small_disk.ts";

testFileStore("SqliteStore", openSqliteStore);

const entries = (count: number) => Array.from({ length: count }, (_, index) => ({ seq: index + 1 }));
const put = (key: string, expires_ms?: number) => ({
  put: { kind: "run", key, namespace: "a", value: { key }, ...(expires_ms ? { expires_ms } : {}) },
});

Deno.test("SqliteStore creates its folder and a file that only this user can read", () =>
  inFolder(async (folder) => {
    const path = `${folder}/deep/store.db`;
    await using(openSqliteStore(path), async (store) => await store.commit([put("x")]));
    const mode = async (file: string) => ((await Deno.stat(file)).mode ?? 0) & 0o777;
    assertEquals([await mode(path), await mode(path.replace("/store.db", ""))], [0o600, 0o700]);
  }));

Deno.test("SqliteStore refuses a file that is no database, of another program, or of a newer version", () =>
  withFile(async (path) => {
    await Deno.writeTextFile(
      path,
      "not a database, but long enough to have a header of one hundred bytes".repeat(3),
    );
    await assertRejects(() => openSqliteStore(path), Error, "file is not a database");
    await Deno.remove(path);
    const foreign = new DatabaseSync(path);
    foreign.exec("CREATE TABLE mine (x)");
    foreign.close();
    await assertRejects(() => openSqliteStore(path), Error, "database of another program");
    await Deno.remove(path);
    await using(openSqliteStore(path), async (store) => await store.commit([put("x")]));
    const newer = new DatabaseSync(path);
    newer.exec("PRAGMA user_version = 99");
    newer.close();
    await assertRejects(() => openSqliteStore(path), Error, "the file has version 99");
  }));

Deno.test("SqliteStore brings a file of the first version of the tables to this one, and packs its logs too", () =>
  withFile(async (path) => {
    const log = (after: number) => ({
      append: "log",
      after,
      entries: Array.from({ length: 40 }, (_, n) => ({ seq: after + n + 1, text: "word ".repeat(99) })),
    });
    await using(openSqliteStore(path), async (store) => await store.commit([put("x"), log(0)]));
    const file = new DatabaseSync(path);
    file.exec("ALTER TABLE records DROP COLUMN packed");
    file.exec(`
      CREATE TABLE first (log TEXT NOT NULL, seq INTEGER NOT NULL, json TEXT NOT NULL, PRIMARY KEY (log, seq))
        STRICT, WITHOUT ROWID;
      INSERT INTO first SELECT log, seq, json FROM entries;
      DROP TABLE entries;
      ALTER TABLE first RENAME TO entries`);
    file.exec("PRAGMA user_version = 1");
    file.close();
    const all = [...log(0).entries, ...log(40).entries];
    await using(openSqliteStore(path), async (store) => {
      assertEquals(await store.entries("log", 0, 100), log(0).entries);
      await store.commit([{ ...log(40), final_bytes: 40_000 }]);
      assertEquals(await store.entries("log", 0, 100), all);
    });
    const packed = new DatabaseSync(path);
    assertEquals(packed.prepare("SELECT seq, count, json FROM entries").all().map(({ ...row }) => row), [
      { seq: 80, count: 80, json: "" },
    ]);
    packed.close();
    await using(openSqliteStore(path), async (store) => {
      assertEquals(await store.entries("log", 0, 100), all);
      assertEquals((await store.get("run", "x"))?.value, { key: "x" });
    });
    const maintenance = await openSqliteMaintenance(path);
    const { problems, entries } = await maintenance.state();
    assertEquals([problems, entries], [[], 80]);
    await maintenance.close();
  }));

Deno.test("SqliteStore carries out calls in the order in which they were made", () =>
  withFile((path) =>
    using(openSqliteStore(path), async (store) => {
      const [, before, , after] = await Promise.all([
        store.commit([put("a")]),
        store.get("run", "a"),
        store.commit([{ delete: { kind: "run", key: "a" } }]),
        store.get("run", "a"),
      ]);
      assertEquals([before?.key, after], ["a", null]);
    })
  ));

Deno.test("changed() resolves when another process commits, and not for the store's own commits", () =>
  withFile((path) =>
    using(openSqliteStore(path), async (store) => {
      const other = await openSqliteStore(path);
      const stop = new AbortController();
      let woken = 0;
      const waiting = Promise.resolve(store.changed!(stop.signal)).then(() => woken++);
      for (const key of ["own 1", "own 2", "own 3"]) {
        const seen = other.changed!(stop.signal);
        await other.get("run", key); // it watches from now on
        await store.commit([put(key)]);
        await seen;
      }
      assertEquals(woken, 0);
      await other.commit([put("foreign")]);
      await waiting;
      assertEquals(woken, 1);
      const aborted = store.changed!(stop.signal);
      stop.abort();
      await aborted;
      await other.close();
    })
  ));

Deno.test("SqliteStore reports a full disk as storage_full, loses nothing, and writes again when there is space", () =>
  withFile((path) => {
    const database = new SqliteDatabase(path);
    const commit = (key: string, entries: string[]) =>
      database.run([{ method: "commit", args: [[{ append: key, after: 0, entries }], undefined] }], 0);
    const kept = ['{"seq":1}'];
    const large = Array.from(
      { length: 1_000 },
      (_, n) => JSON.stringify({ seq: n + 1, text: "x".repeat(1_000) }),
    );
    commit("kept", kept);
    database.query("PRAGMA max_page_count = 40"); // as a disk of 160 KiB
    let code: unknown;
    try {
      commit("large", large);
    } catch (error) {
      code = (error as { errcode?: number }).errcode;
    }
    assertEquals(code, 13); // SQLITE_FULL
    const read = (log: string) => database.run([{ method: "entries", args: [log, 0, 9] }], 0)[0];
    assertEquals(read("kept"), { value: kept });
    assertEquals(read("large"), { value: null });
    database.query("PRAGMA max_page_count = 100000");
    assertEquals(commit("large", large), [{ value: undefined }]);
    database.close();
  }));

Deno.test("a transaction that cannot begin or be committed fails with the code of SQLite, and the next one succeeds", () =>
  withFile((path) => {
    const database = new SqliteDatabase(path);
    const codeOfAppend = () => {
      try {
        const append = { append: "log", after: 0, entries: ['{"seq":1}'] };
        database.run([{ method: "commit", args: [[append], undefined] }], 0);
      } catch (error) {
        return (error as { errcode?: number }).errcode;
      }
    };
    database.query("PRAGMA busy_timeout = 0");
    using other = new DatabaseSync(path);
    other.exec("BEGIN IMMEDIATE");
    assertEquals(codeOfAppend(), 5); // SQLITE_BUSY
    other.exec("COMMIT");
    // checked at the commit, where a full disk is noticed too
    other.exec("CREATE TABLE parts (log REFERENCES logs (name) DEFERRABLE INITIALLY DEFERRED)");
    other.exec("CREATE TRIGGER part AFTER INSERT ON logs BEGIN INSERT INTO parts VALUES ('none'); END");
    assertEquals(codeOfAppend(), 787); // SQLITE_CONSTRAINT_FOREIGNKEY
    other.exec("DROP TRIGGER part");
    assertEquals(codeOfAppend(), undefined);
    database.close();
  }));

Deno.test("purge() deletes expired records and logs, in parts, and nothing else", () =>
  withFile(async (path) => {
    const database = new SqliteDatabase(path);
    const row = (key: string, expires_ms: number | null) => ({
      put: {
        kind: "run",
        key,
        namespace: "a",
        json: "{}",
        index_json: '{"open":"true"}',
        created_ms: 1,
        expires_ms,
      },
    });
    const log = (append: string, count: number) => ({
      append,
      after: 0,
      entries: entries(count).map((entry) => JSON.stringify(entry)),
    });
    database.run([{
      method: "commit",
      args: [[
        row("old", 10),
        row("young", 30),
        row("eternal", null),
        log("long", 2_500),
        { expireLog: "long", at_ms: 10 },
        log("young", 2),
        { expireLog: "young", at_ms: 30 },
      ], undefined],
    }], 0);
    let parts = 1;
    while (purgePart(database, 20)) parts++;
    assertEquals(parts, 3);
    database.close();
    const maintenance = await openSqliteMaintenance(path);
    const { bytes: before, ...state } = await maintenance.state();
    assertEquals(state, { problems: [], version: 2, records: 2, logs: 1, entries: 2 });
    await maintenance.vacuum(20);
    const { bytes } = await maintenance.state();
    assert(bytes < before);
    assertEquals((await Deno.stat(path)).size, bytes);
    await maintenance.close();
  }));

Deno.test("vacuum() lets another process commit between its parts", () =>
  withFile(async (path) => {
    await using(openSqliteStore(path), async (store) => {
      const many = Array.from({ length: 3_000 }, (_, index) => ({ seq: index + 1, text: "x".repeat(3_000) }));
      await store.commit([{ append: "log", after: 0, entries: many }, { expireLog: "log", at_ms: 10 }]);
    });
    const server = new SqliteDatabase(path);
    const maintenance = await openSqliteMaintenance(path);
    let commits = 0;
    const serving = setInterval(() => {
      const { kind, key, namespace } = put(`run ${++commits}`).put;
      const row = { kind, key, namespace, json: "{}", index_json: null, created_ms: 1, expires_ms: null };
      server.run([{ method: "commit", args: [[{ put: row }], undefined] }], 0);
    }, 5);
    await maintenance.vacuum(20);
    clearInterval(serving);
    server.close();
    const { bytes, records, entries } = await maintenance.state();
    assertEquals([records, entries], [commits, 0]);
    assert(commits > 0 && bytes < 1_000_000, `${commits} commits, ${bytes} bytes`);
    await maintenance.close();
  }));

Deno.test("state() of a damaged file lists the damage and what cannot be counted", () =>
  withFile(async (path) => {
    await using(openSqliteStore(path), async (store) => {
      const many = Array.from({ length: 2_000 }, (_, index) => ({ seq: index + 1, text: "x".repeat(1_000) }));
      await store.commit([put("x"), { append: "log", after: 0, entries: many }]);
    });
    using file = await Deno.open(path, { write: true });
    for (let page = 50; page < 400; page += 3) {
      await file.seek(page * 4096, Deno.SeekMode.Start);
      await file.write(new Uint8Array(512).fill(0xab));
    }
    const maintenance = await openSqliteMaintenance(path);
    const { problems, records, logs, entries } = await maintenance.state();
    assertEquals([records, logs, entries], [1, 1, 0]);
    assert(problems.length > 1 && problems.every((problem) => !problem.includes("\n")));
    assertEquals(problems.at(-1), "entries cannot be counted: database disk image is malformed");
    await maintenance.close();
  }));

Deno.test("state() finds logs without all their entries and entries without a log, but not those of a purge", () =>
  withFile(async (path) => {
    await using(openSqliteStore(path), async (store) => {
      for (const log of ["whole", "short", "lost", "expired"]) {
        await store.commit([{ append: log, after: 0, entries: entries(3) }]);
      }
      await store.commit([{ expireLog: "expired", at_ms: 1 }]);
    });
    const maintenance = await openSqliteMaintenance(path);
    assertEquals((await maintenance.state()).problems, []);
    const file = new DatabaseSync(path);
    file.exec("DELETE FROM entries WHERE seq = 2 AND log IN ('short', 'expired')");
    file.exec("DELETE FROM logs WHERE name = 'lost'");
    file.close();
    const { problems } = await maintenance.state();
    assertEquals(problems, ["log short has 2 of 3 entries", "log lost has 3 of 0 entries"]);
    await maintenance.close();
  }));

Deno.test("a store whose worker failed rejects the calls that wait and all later ones, and can be closed", async () => {
  const { Worker } = globalThis;
  const workers: FailingWorker[] = [];
  /** Opens the file, answers nothing else, and fails when the test says so. */
  class FailingWorker {
    onmessage: ((event: { data: unknown }) => void) | null = null;
    onerror: ((event: { message: string; preventDefault(): void }) => void) | null = null;
    constructor() {
      workers.push(this);
    }
    postMessage(message: object): void {
      if ("open" in message) queueMicrotask(() => this.onmessage?.({ data: { opened: true } }));
    }
    terminate(): void {}
  }
  const path = `${await Deno.makeTempDir()}/store.db`;
  globalThis.Worker = FailingWorker as unknown as typeof Worker;
  try {
    const store = await openSqliteStore(path);
    const calls = [store.get("run", "a"), store.get("run", "b")];
    workers[0]!.onerror!({ message: "out of memory", preventDefault() {} });
    for (const call of [...calls, store.get("run", "c")]) {
      await assertRejects(() => Promise.resolve(call), Error, "its worker failed: out of memory");
    }
    await store.close();
  } finally {
    globalThis.Worker = Worker;
    await Deno.remove(path.slice(0, path.lastIndexOf("/")), { recursive: true });
  }
});

Deno.test("SqliteStore with `check` refuses a file that is damaged behind its first pages", () =>
  withFile(async (path) => {
    const store = await openSqliteStore(path);
    for (let n = 0; n < 50; n++) {
      const entry = { seq: 1, text: "x".repeat(2_000) };
      await store.commit([{ append: `log ${n}`, after: 0, entries: [entry] }]);
    }
    await store.close();
    const file = await Deno.open(path, { write: true });
    await file.seek(-12 * 4096, Deno.SeekMode.End); // not where the next row comes
    await file.write(new Uint8Array(2 * 4096).fill(255));
    file.close();
    await (await openSqliteStore(path)).close();
    await assertRejects(() => openSqliteStore(path, { check: true }), Error, "disk image is malformed");
    // a large file is used meanwhile, and every operation fails once the damage was found
    const large = await openSqliteStore(path, { check: true, large_bytes: 0 });
    let reason: string | undefined;
    while ((reason = (await large.ready()).reason) === undefined) {
      await new Promise((done) => setTimeout(done, 1));
    }
    assertEquals(reason.includes("its file is damaged"), true, reason);
    await assertRejects(() => Promise.resolve(large.commit([put("a")])), Error, "its file is damaged");
    await large.close();
  }));

Deno.test("SqliteStore opens on a full disk: it reads, is not ready, and writes once there is space", async () => {
  await using disk = await mountSmallDisk();
  if (disk === null) return; // this process may not mount one
  const path = `${disk.path}/runs.db`;
  const first = await openSqliteStore(path);
  await first.commit([put("kept")]);
  await first.close();
  await disk.fill();
  const store = await openSqliteStore(path, { check: true });
  const free = await disk.fill(); // what the attempt to share it has left
  assertEquals((await store.get("run", "kept"))?.version, 1);
  const { ok, reason } = await store.ready();
  assertEquals([ok, reason], [
    false,
    "store not usable: Cannot write to the store: database or disk is full",
  ]);
  await assertRejects(async () => await store.commit([put("new")]), Error, "database or disk is full");
  await free();
  await store.commit([put("new")]);
  assertEquals(await store.ready(), { ok: true });
  const other = await openSqliteStore(path); // another process may open it again
  assertEquals((await other.get("run", "new"))?.version, 1);
  await other.close();
  await store.close();
});
