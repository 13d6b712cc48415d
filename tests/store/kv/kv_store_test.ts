import { commit } from "../../../src/store/kv/commit.ts";
import { tryCommit } from "../../../src/store/kv/database.ts";
import { openKvMaintenance } from "../../../src/store/kv/maintenance.ts";
import { openKvStore } from "../../../src/store/kv/kv_store.ts";
import { purge } from "../../../src/store/kv/purge.ts";
import { assert, assertEquals, assertRejects } from "../../assert.ts";
import { testFileStore, using, withFile } from "../../contracts/file_store.ts";

testFileStore("KvStore", openKvStore);

const big = "é".repeat(400_000); // 800 kB
const put = (key: string, text = "", expires_ms?: number) => ({
  put: {
    kind: "run",
    key,
    namespace: "a",
    value: { key, text },
    index: { status: "open" },
    ...(expires_ms ? { expires_ms } : {}),
  },
});

/** Resolves to the second parts of all keys, with their numbers. */
async function keysOf(path: string): Promise<Record<string, number>> {
  const kv = await Deno.openKv(path);
  const counts: Record<string, number> = {};
  for await (const { key } of kv.list({ prefix: ["preamp"] })) {
    const name = String(key[1]);
    counts[name] = (counts[name] ?? 0) + 1;
  }
  kv.close();
  return counts;
}

Deno.test("a commit beyond the size of an atomic operation is atomic, and what it replaces is deleted by vacuum", () =>
  withFile(async (path) => {
    const entries = Array.from(
      { length: 3_000 },
      (_, index) => ({ seq: index + 1, text: "x".repeat(1_000) }),
    );
    await using(openKvStore(path), async (store) => {
      await store.commit([put("a", big), put("b", big), { append: "log", after: 0, entries }]);
      assertEquals([
        (await store.get("run", "b"))?.value,
        (await store.entries("log", 1_998, 3))?.map(({ seq }) => seq),
      ], [
        { key: "b", text: big },
        [1_999, 2_000, 2_001],
      ]);
      assertEquals((await store.entries("log", 0, 5_000))?.length, 3_000);
      await assertRejects(async () => await store.commit([put("c", big), { ...put("a", big), expect: 7 }]));
      await store.commit([put("a"), { deleteLog: "log" }]);
      assertEquals([await store.get("run", "c"), await store.entries("log", 0, 1)], [null, null]);
    });
    const maintenance = await openKvMaintenance(path);
    const { bytes, ...state } = await maintenance.state();
    assertEquals(state, { problems: [], version: 1, records: 2, logs: 0, entries: 0 });
    assert(bytes > 800_000 && bytes < 801_000);
    await maintenance.vacuum(Date.now());
    await maintenance.close();
    const { changed: _, ...counts } = await keysOf(path);
    assertEquals(counts, { blob: 14, by: 2, list: 2, record: 2, version: 1 });
  }));

Deno.test("what a later change of the same commit replaces or deletes is deleted by vacuum", () =>
  withFile(async (path) => {
    const entries = [{ seq: 1, text: big }];
    await using(openKvStore(path), async (store) => {
      await store.commit([put("a", big), put("a", "x"), put("a", big)]);
      await store.commit([put("a", big), { delete: { kind: "run", key: "a" } }]);
      await store.commit([{ append: "log", after: 0, entries }, { deleteLog: "log" }]);
      await store.commit([{ append: "log", after: 0, entries }, { deleteLog: "log" }, {
        append: "log",
        after: 0,
        entries: [{ seq: 1 }],
      }]);
    });
    const maintenance = await openKvMaintenance(path);
    await maintenance.vacuum(Date.now());
    await maintenance.close();
    const { changed: _, ...counts } = await keysOf(path);
    assertEquals(counts, { log: 1, segment: 1, version: 1 });
  }));

Deno.test("vacuum deletes expired records and logs, their index, and nothing else", () =>
  withFile(async (path) => {
    await using(openKvStore(path), async (store) => {
      await store.commit([put("old", "", 1), put("kept", "", Date.now() + 60_000)]);
      await store.commit([{ append: "old", after: 0, entries: [{ seq: 1 }] }, {
        expireLog: "old",
        at_ms: 1,
      }]);
      await store.commit([{ append: "kept", after: 0, entries: [{ seq: 1 }, { seq: 2 }] }]);
    });
    const maintenance = await openKvMaintenance(path);
    assertEquals(maintenance.opened_version, 1);
    await maintenance.vacuum(Date.now());
    const { bytes: _, ...state } = await maintenance.state();
    assertEquals(state, { problems: [], version: 1, records: 1, logs: 1, entries: 2 });
    await maintenance.close();
    const { changed: __, ...counts } = await keysOf(path);
    assertEquals(counts, { by: 1, expires: 1, list: 1, log: 1, record: 1, segment: 1, version: 1 });
  }));

Deno.test("purge() keeps what another process prolongs after it was read", () =>
  withFile((path) =>
    using(openKvStore(path, { now: () => 1_000 }), async (store) => {
      await store.commit([put("a", "", 2_000), { append: "log", after: 0, entries: [{ seq: 1 }] }, {
        expireLog: "log",
        at_ms: 2_000,
      }]);
      using kv = await Deno.openKv(path);
      const get = kv.get.bind(kv);
      let is_prolonged = false;
      kv.get = (async (...args: Parameters<Deno.Kv["get"]>) => {
        const found = await get(...args);
        if (!is_prolonged) {
          is_prolonged = true;
          await store.commit([put("a", "", 9e15), { expireLog: "log", at_ms: 9e15 }]);
        }
        return found;
      }) as Deno.Kv["get"];
      await purge(kv, 2_001);
      assertEquals([(await store.get("run", "a"))?.version, (await store.entries("log", 0, 9))?.length], [
        2,
        1,
      ]);
    })
  ));

Deno.test("store check finds a lost segment and a lost part of a value", () =>
  withFile(async (path) => {
    await using(openKvStore(path), async (store) => {
      await store.commit([put("a", big), { append: "log", after: 0, entries: [{ seq: 1 }] }]);
    });
    const kv = await Deno.openKv(path);
    for await (const { key } of kv.list({ prefix: ["preamp"] })) {
      if (key[1] === "segment" || key[1] === "blob" && key[3] === 3) await kv.delete(key);
    }
    kv.close();
    const maintenance = await openKvMaintenance(path);
    const { problems } = await maintenance.state();
    assertEquals(problems, ["the value of record a is not complete", "log log has 0 of 1 entries"]);
    await maintenance.close();
  }));

Deno.test("a commit with more changes than an atomic operation takes is refused and writes nothing", () =>
  withFile((path) =>
    using(openKvStore(path), async (store) => {
      const changes = Array.from({ length: 1_100 }, (_, index) => put(`r${index}`));
      const error = await assertRejects(async () => await store.commit(changes));
      assertEquals((error as unknown as { code: string }).code, "storage_full");
      assertEquals((await store.list("run", { namespace: "a", limit: 10 })).records, []);
    })
  ));

Deno.test("every write to a full disk is storage_full, that of a lease too", async () => {
  const full = { commit: () => Promise.reject(new TypeError("database or disk is full")) };
  const error = await assertRejects(() => tryCommit(full as unknown as Deno.AtomicOperation));
  assertEquals((error as unknown as { code: string }).code, "storage_full");
});

Deno.test("a large record of a commit whose answer was lost is whole", () =>
  withFile(async (path) => {
    const kv = await Deno.openKv(path);
    const { atomic } = kv;
    let losing = true;
    kv.atomic = () => {
      const operation = atomic.call(kv);
      const { delete: remove, commit } = operation;
      let is_commit = false;
      operation.delete = (key) => {
        is_commit ||= key[1] === "pending"; // it makes the large text permanent
        return remove.call(operation, key);
      };
      operation.commit = async () => {
        const result = await commit.call(operation);
        if (!losing || !is_commit) return result;
        losing = false;
        throw new TypeError("connection reset");
      };
      return operation;
    };
    const committing = commit(kv, [put("large", big)], undefined, Date.now);
    await assertRejects(() => committing, TypeError, "connection reset");
    kv.close();
    await using(openKvStore(path), async (store) => {
      assertEquals((await store.get("run", "large"))?.value, { key: "large", text: big });
    });
  }));

Deno.test("openKvStore() refuses a database of a newer version", () =>
  withFile(async (path) => {
    const kv = await Deno.openKv(path);
    await kv.set(["preamp", "version"], 99);
    kv.close();
    await assertRejects(() => openKvStore(path), Error, "the database has version 99");
  }));

Deno.test("changed() of a KV store resolves soon after another process commits", () =>
  withFile((path) =>
    using(openKvStore(path), async (store) => {
      const other = await openKvStore(path);
      const stop = new AbortController();
      const waiting = store.changed!(stop.signal);
      await other.commit([put("x")]);
      await waiting;
      const aborted = store.changed!(stop.signal);
      stop.abort();
      await aborted;
      await other.close();
    })
  ));
