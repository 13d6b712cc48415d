/**
 * The store contract as a test suite: atomic commits, compare-and-set, fencing, lists with cursors, leases,
 * expiry. Run by the tests of each store, synchronous or asynchronous.
 */
import {
  type Change,
  ConflictError,
  type Fence,
  type ListOptions,
  type Store,
  type StoredRecord,
  TooManyError,
} from "../../src/store/store.ts";
import { assert, assertEquals, assertRejects } from "../assert.ts";

/** A store under test, and its clock. */
export interface StoreSubject {
  readonly store: Store;
  /** Advances the store's clock by `ms`. */
  advance(ms: number): Promise<void> | void;
  /** Opens the same data again, as another process would; null when the store cannot be shared. */
  another?(): Promise<Store> | Store;
}

const NOW = Date.UTC(2026, 0, 1);

function record(key: string, fields: Partial<StoredRecord> = {}): StoredRecord {
  return { kind: "run", key, namespace: "a", value: { key }, ...fields };
}

const entries = (from: number, to: number) =>
  Array.from(
    { length: to - from + 1 },
    (_, index) => ({ seq: from + index, event: `e${from + index}`, data: { n: index } }),
  );

/**
 * Registers the suite for one kind of store.
 * @param create Makes an empty store whose clock begins at 2026-01-01T00:00:00Z.
 */
export function testStore(name: string, create: () => Promise<StoreSubject> | StoreSubject): void {
  const test = (title: string, run: (store: Store, subject: StoreSubject) => Promise<void>) =>
    Deno.test(`${name}: ${title}`, async () => {
      const subject = await create();
      try {
        await run(subject.store, subject);
      } finally {
        await subject.store.close();
      }
    });
  const conflict = async (run: () => unknown) => {
    const error = await assertRejects(async () => void await run(), Error);
    assertEquals([error.name, (error as ConflictError).code], ["ConflictError", "session_conflict"]);
    assert(error instanceof ConflictError);
  };
  const seqs = async (store: Store, log: string, after = 0, limit = 1000) =>
    (await store.entries(log, after, limit))?.map((entry) => entry.seq) ?? null;

  test("a log with an expiry time is treated as deleted after that time", async (store, { advance }) => {
    await store.commit([{ append: "log", after: 0, entries: entries(1, 2) }]);
    await store.commit([{ expireLog: "log", at_ms: NOW + 1000 }, { expireLog: "none", at_ms: NOW }]);
    await advance(999);
    assertEquals(await seqs(store, "log"), [1, 2]);
    await advance(1);
    assertEquals(await seqs(store, "log"), null);
  });

  test("a log whose expiry is taken back does not expire", async (store, { advance }) => {
    await store.commit([{ append: "log", after: 0, entries: entries(1, 2) }]);
    await store.commit([{ expireLog: "log", at_ms: NOW + 1000 }]);
    await store.commit([{ append: "log", after: 2, entries: [] }, { expireLog: "log", at_ms: null }]);
    await advance(2000);
    assertEquals(await seqs(store, "log"), [1, 2]);
  });

  test(
    "commit() appends to several logs, or to none when one of them ends elsewhere",
    async (store, { advance }) => {
      const both = (one: number, two: number, to = one + 1): Change[] => [
        { append: "one", after: one, entries: entries(one + 1, to) },
        { append: "two", after: two, entries: entries(two + 1, two + 1) },
        { put: record("r", { value: { one, two } }) },
        { expireLog: "two", at_ms: NOW + 1000 },
      ];
      await store.commit(both(0, 0));
      await store.commit(both(1, 1));
      await store.commit([{ append: "three", after: 0, entries: entries(1, 1) }]);
      const wrong: Change[][] = [
        both(2, 1),
        both(1, 2),
        both(2, 3),
        both(1, 2, 1), // without entries it compares too
        [...both(2, 2), { append: "three", after: 0, entries: entries(1, 1) }],
        [...both(2, 2), { append: "four", after: 1, entries: entries(2, 2) }],
      ];
      for (const changes of wrong) await conflict(() => store.commit(changes));
      assertEquals([await seqs(store, "one"), await seqs(store, "two")], [[1, 2], [1, 2]]);
      assertEquals((await store.get("run", "r"))?.value, { one: 1, two: 1 });
      await store.commit(both(2, 2, 2));
      assertEquals([await seqs(store, "one"), await seqs(store, "two")], [[1, 2], [1, 2, 3]]);
      await advance(1000);
      assertEquals([await seqs(store, "one"), await seqs(store, "two")], [[1, 2], null]);
    },
  );

  test("commit() appends to a log; entries() pages through it", async (store) => {
    assertEquals(await store.entries("log", 0, 10), null);
    await store.commit([{ append: "log", after: 0, entries: entries(1, 3) }]);
    await store.commit([{ append: "log", after: 3, entries: entries(4, 5) }]);
    assertEquals(await seqs(store, "log"), [1, 2, 3, 4, 5]);
    assertEquals(await seqs(store, "log", 2, 2), [3, 4]);
    assertEquals(await seqs(store, "log", 5), []);
    assertEquals(await seqs(store, "log", 99), []);
    assertEquals((await store.entries("log", 3, 1))?.[0], { seq: 4, event: "e4", data: { n: 0 } } as never);
    assertEquals(await seqs(store, "other"), null);
  });

  test("commit() refuses an append that does not continue the log", async (store) => {
    await store.commit([{ append: "log", after: 0, entries: entries(1, 3) }]);
    await conflict(() => store.commit([{ append: "log", after: 2, entries: entries(3, 4) }]));
    await conflict(() => store.commit([{ append: "log", after: 4, entries: entries(5, 5) }]));
    await conflict(() => store.commit([{ append: "new", after: 1, entries: entries(2, 2) }]));
    assertEquals(await seqs(store, "log"), [1, 2, 3]);
    assertEquals(await seqs(store, "new"), null);
  });

  test("commit() applies all of its changes or none", async (store) => {
    await store.commit([{ put: record("kept") }, { append: "log", after: 0, entries: entries(1, 1) }]);
    await conflict(() =>
      store.commit([
        { append: "log", after: 1, entries: entries(2, 2) },
        { put: record("new") },
        { delete: { kind: "run", key: "kept" } },
        { deleteLog: "log" },
        { put: record("kept"), expect: 7 },
      ])
    );
    assertEquals(await seqs(store, "log"), [1]);
    assertEquals(await store.get("run", "new"), null);
    assertEquals((await store.get("run", "kept"))?.version, 1);
  });

  test("commit() compares before it sets: versions count up, 0 means absent", async (store) => {
    await conflict(() => store.commit([{ put: record("x"), expect: 1 }]));
    await store.commit([{ put: record("x"), expect: 0 }]);
    await conflict(() => store.commit([{ put: record("x"), expect: 0 }]));
    await store.commit([{ put: record("x", { value: { n: 2 } }), expect: 1 }]);
    await store.commit([{ put: record("x", { value: { n: 3 } }) }]);
    await conflict(() => store.commit([{ put: record("x"), expect: 2 }]));
    const found = await store.get("run", "x");
    assertEquals([found?.version, found?.value], [3, { n: 3 }]);
    await store.commit([{ delete: { kind: "run", key: "x" } }]);
    await store.commit([{ put: record("x"), expect: 0 }]);
    assertEquals((await store.get("run", "x"))?.version, 1);
  });

  test("commit() succeeds for one of two concurrent compares", async (store, subject) => {
    const other = await subject.another?.() ?? store;
    await store.commit([{ put: record("x"), expect: 0 }]);
    const tries = [store, other, store, other].map(async (one, n) =>
      await one.commit([{ put: record("x", { value: { n } }), expect: 1 }])
    );
    const settled = await Promise.allSettled(tries);
    assertEquals(settled.filter((one) => one.status === "fulfilled").length, 1);
    const winner = settled.findIndex((one) => one.status === "fulfilled");
    assertEquals((await store.get("run", "x"))?.value, { n: winner });
    if (other !== store) await other.close();
  });

  test("get() returns the stored value, and nothing of another kind or key", async (store) => {
    const value = { text: "é 🙂 \u0000", list: [1, [2, { deep: null }]], "": true, __keys: { a: 1.5 } };
    await store.commit([{ put: record("x/y z", { value, index: { status: "open" }, created_ms: NOW - 5 }) }]);
    const found = await store.get("run", "x/y z");
    assertEquals(found?.value, value);
    const { kind, key, namespace, index, created_ms } = found!;
    assertEquals({ kind, key, namespace, index, created_ms }, {
      kind: "run",
      key: "x/y z",
      namespace: "a",
      index: { status: "open" },
      created_ms: NOW - 5,
    });
    assertEquals(await store.get("session", "x/y z"), null);
    assertEquals(await store.get("run", "x/y"), null);
    assertEquals(await store.get("run", "__proto__"), null);
  });

  test("ids that no record can have are absent", async (store) => {
    for (const id of ["a\u0000b", "\ud800", "x".repeat(100_000)]) {
      assertEquals(await store.get("run", id), null);
      assertEquals(await store.entries(id, 0, 1), null);
      assertEquals(
        (await store.list("run", { namespace: "a", where: { session_id: id }, limit: 1 })).records,
        [],
      );
    }
  });

  test("get() returns large values completely", async (store) => {
    const value = { text: "x".repeat(1_000_000) };
    await store.commit([{ put: record("big", { value }) }, {
      append: "big",
      after: 0,
      entries: [{ seq: 1, data: value } as never],
    }]);
    assertEquals((await store.get("run", "big"))?.value, value);
    assertEquals((await store.entries("big", 0, 1) as unknown as { data: typeof value }[])[0]?.data, value);
  });

  test("created_ms stays what it was first", async (store, subject) => {
    await store.commit([{ put: record("x") }]);
    await subject.advance(1_000);
    await store.commit([{ put: record("x", { value: { n: 2 } }) }]);
    assertEquals((await store.get("run", "x"))?.created_ms, NOW);
  });

  test("list() is newest first, of one namespace and kind, filtered by index", async (store) => {
    const put = (key: string, created_ms: number, fields: Partial<StoredRecord> = {}) =>
      store.commit([{
        put: record(key, { created_ms: NOW + created_ms, index: { status: "open" }, ...fields }),
      }]);
    await put("b", 2);
    await put("c", 3);
    await put("a", 1);
    await put("closed", 4, { index: { status: "closed", session_id: "s" } });
    await put("foreign", 5, { namespace: "b" });
    await put("session", 6, { kind: "session" });
    await put("plain", 7, { index: {} });
    const list = async (where?: Record<string, string>, namespace = "a") =>
      (await store.list("run", { namespace, limit: 10, ...(where ? { where } : {}) })).records.map((one) =>
        one.key
      );
    assertEquals(await list(), ["plain", "closed", "c", "b", "a"]);
    assertEquals(await list({ status: "open" }), ["c", "b", "a"]);
    assertEquals(await list({ status: "closed", session_id: "s" }), ["closed"]);
    assertEquals(await list({ status: "closed", session_id: "t" }), []);
    assertEquals(await list({ "status' OR 1=1 --": "x" }), []);
    assertEquals(await list(undefined, "b"), ["foreign"]);
    assertEquals(await list(undefined, "c"), []);
    await put("b", 2, { index: { status: "closed" } });
    assertEquals(await list({ status: "open" }), ["c", "a"]);
  });

  test("list() pages without a gap or a repetition, also among records of one moment", async (store) => {
    for (let n = 1; n <= 7; n++) {
      await store.commit([{ put: record(`r${n}`, { created_ms: NOW + Math.floor(n / 4) }) }]);
    }
    const keys: string[] = [];
    let cursor: string | null = null;
    let pages = 0;
    do {
      const page = await store.list("run", {
        namespace: "a",
        limit: 3,
        ...(cursor === null ? {} : { cursor }),
      });
      keys.push(...page.records.map((one) => one.key));
      cursor = page.next_cursor;
      assert(++pages <= 3, "too many pages");
    } while (cursor !== null);
    assertEquals(pages, 3);
    assertEquals([...keys].sort(), ["r1", "r2", "r3", "r4", "r5", "r6", "r7"]);
    assertEquals([...keys.slice(0, 4)].sort(), ["r4", "r5", "r6", "r7"]);
  });

  test(
    "list() pages every kind of list, also when the clock of the store has fractions of milliseconds",
    async (store, { advance }) => {
      for (let n = 1; n <= 9; n++) {
        const index = { odd: String(n % 2) };
        await store.commit([
          { put: record(`r${n}`, { index }) },
          { put: { ...record(`s${n}`), kind: "session" } },
        ]);
        await advance(n % 3 === 0 ? 0 : 0.123);
      }
      const lists: [kind: string, options: Partial<ListOptions>, keys: string][] = [
        ["run", {}, "r9 r8 r7 r6 r5 r4 r3 r2 r1"],
        ["run", { where: { odd: "1" } }, "r9 r7 r5 r3 r1"],
        ["run", { without_values: true }, "r9 r8 r7 r6 r5 r4 r3 r2 r1"],
        ["session", {}, "s9 s8 s7 s6 s5 s4 s3 s2 s1"],
      ];
      for (const [kind, options, expected] of lists) {
        const keys: string[] = [];
        let cursor: string | null | undefined;
        while (cursor !== null && keys.length < 10) {
          const page = await store.list(kind, {
            namespace: "a",
            limit: 2,
            ...options,
            ...(cursor === undefined ? {} : { cursor }),
          });
          keys.push(...page.records.map(({ key }) => key));
          cursor = page.next_cursor;
        }
        assertEquals(keys.join(" "), expected);
      }
    },
  );

  test("list() ends a page at 8 MiB, after at least one record", async (store) => {
    const value = { text: "x".repeat(3 * 1024 * 1024) };
    const largest = { text: "é".repeat(9 * 1024 * 1024) };
    for (let n = 1; n <= 5; n++) {
      const index = { status: "open" };
      await store.commit([{
        put: record(`r${n}`, { value: n === 4 ? largest : value, index, created_ms: NOW + n }),
      }]);
    }
    for (const where of [{}, { status: "open" }]) {
      const pages: string[][] = [];
      let cursor: string | null | undefined;
      while (cursor !== null) {
        const page = await store.list("run", {
          namespace: "a",
          where,
          limit: 5,
          ...(cursor === undefined ? {} : { cursor }),
        });
        pages.push(page.records.map(({ key }) => key));
        cursor = page.next_cursor;
      }
      assertEquals(pages, [["r5", "r4"], ["r3", "r2", "r1"]]);
    }
  });

  test(
    "entries() of a log of any shape are those that were appended, also when it has ended",
    async (store, { another }) => {
      let state = 11;
      const random = (below: number) => (state = Math.imul(state, 48_271) >>> 0) % below;
      const noise = Array.from({ length: 1_000 }, () => random(1_000_000).toString(36)).join("");
      const texts = ["", "é\n\u2028", "word ".repeat(300), noise, "long ".repeat(60_000)];
      const all: { seq: number; text: string }[] = [];
      for (let commit = 0; commit < 60; commit++) {
        const length = commit < 20 ? 1 : random(12); // deltas of a model, then what a turn stores together
        const added = Array.from({ length }, (_, n) => ({
          seq: all.length + n + 1,
          text: texts[random(commit === 40 ? 5 : 4)]!,
        }));
        await store.commit([{ append: "log", after: all.length, entries: added }]);
        all.push(...added);
        if (commit % 10 === 0) await check();
      }
      await endLog();
      await check();
      await endLog(); // packed rows are read and packed again, also in the midst of a log
      await check();

      /** Returns when the store has packed the log, or never will. */
      async function endLog(): Promise<void> {
        const last = await another?.() ?? store;
        const entry = { seq: all.length + 1, text: "the end" };
        await last.commit([{ append: "log", after: all.length, entries: [entry], final_bytes: 1_000_000 }]);
        all.push(entry);
        if (last !== store) await last.close();
      }

      async function check(): Promise<void> {
        assertEquals(await store.entries("log", 0, 10_000), all as never);
        for (let read = 0; read < 20; read++) {
          const after = random(all.length + 2);
          const limit = 1 + random(40);
          assertEquals(await store.entries("log", after, limit), all.slice(after, after + limit) as never);
          const max_bytes = 1 + random(30_000);
          let bytes = 0;
          const page = all.slice(after).filter((entry) => {
            if (bytes >= max_bytes) return false;
            return bytes += JSON.stringify(entry).length;
          });
          const found = await store.entries("log", after, 10_000, max_bytes) as typeof all;
          assertEquals(found, all.slice(after, after + found.length));
          assert(found.length > 0 || page.length === 0);
          if (store.kind !== "memory") assert(found.length <= page.length); // it estimates
        }
      }
    },
  );

  test("entries() ends at a number of bytes, after at least one entry", async (store) => {
    const large = entries(1, 6).map((entry) => ({ ...entry, text: "x".repeat(500_000) }));
    await store.commit([{ append: "log", after: 0, entries: large }]);
    const page = async (after: number, limit: number, max_bytes: number) =>
      (await store.entries("log", after, limit, max_bytes))?.map(({ seq }) => seq);
    assertEquals(await page(0, 10, 1), [1]);
    assertEquals(await page(1, 10, 1_200_000), [2, 3, 4]);
    assertEquals(await page(1, 2, 1_200_000), [2, 3]);
    assertEquals(await page(4, 10, 1_200_000), [5, 6]);
    assertEquals(await page(6, 10, 1_200_000), []);
  });

  test("list() without values has all else, and pages of `limit` records whatever their size", async (store) => {
    const expires_ms = Date.now() + 3_600_000;
    for (const key of ["a", "b", "c"]) {
      const value = { text: "x".repeat(5 * 1024 * 1024) };
      const put = { kind: "run", key, namespace: "a", value, index: { open: "true", of: key }, expires_ms };
      await store.commit([{ put }]);
    }
    const options = { namespace: "a", where: { open: "true" } };
    const { records } = await store.list("run", { ...options, limit: 9, without_values: true });
    const listed = records.map(({ key, value, index, version, expires_ms }) => ({
      key,
      value,
      index,
      version,
      expires_ms,
    }));
    const expected = ["c", "b", "a"].map((key) => ({
      key,
      value: {},
      index: { open: "true", of: key },
      version: 1,
      expires_ms,
    }));
    assertEquals(listed, expected);
    const page = await store.list("run", { ...options, limit: 2, without_values: true });
    const cursor = page.next_cursor!;
    const next = await store.list("run", { ...options, limit: 2, cursor, without_values: true });
    assertEquals([page.records.length, next.records.map(({ key }) => key), next.next_cursor], [
      2,
      ["a"],
      null,
    ]);
  });

  test("list() returns no cursor after a full last page", async (store) => {
    await store.commit([{ put: record("a") }, { put: record("b") }]);
    assertEquals((await store.list("run", { namespace: "a", limit: 2 })).next_cursor, null);
    assertEquals(await store.list("nothing", { namespace: "a", limit: 2 }), {
      records: [],
      next_cursor: null,
    });
  });

  test("a cursor stays valid when its record is deleted and when records are added", async (store) => {
    for (let n = 1; n <= 5; n++) await store.commit([{ put: record(`r${n}`, { created_ms: NOW + n }) }]);
    const first = await store.list("run", { namespace: "a", limit: 2 });
    assertEquals(first.records.map((one) => one.key), ["r5", "r4"]);
    await store.commit([{ delete: { kind: "run", key: "r4" } }, {
      put: record("r9", { created_ms: NOW + 9 }),
    }]);
    const second = await store.list("run", { namespace: "a", limit: 2, cursor: first.next_cursor! });
    assertEquals(second.records.map((one) => one.key), ["r3", "r2"]);
  });

  test("list() refuses an invalid cursor", async (store) => {
    await store.commit([{ put: record("a") }]);
    for (const cursor of ["", "a", "1-2-3", "../..", "0'; drop", "1-1e21", "NaN-1", `1-${2n ** 70n}`]) {
      const error = await assertRejects(async () =>
        await store.list("run", { namespace: "a", limit: 2, cursor })
      );
      assertEquals((error as unknown as { code: string }).code, "request_invalid", cursor);
    }
  });

  test("an expired record is absent for get, list and compare", async (store, subject) => {
    await store.commit([{ put: record("short", { expires_ms: NOW + 1_000 }) }, { put: record("long") }]);
    await subject.advance(999);
    assert(await store.get("run", "short"));
    await subject.advance(1);
    assertEquals((await store.list("run", { namespace: "a", limit: 10 })).records.map((one) => one.key), [
      "long",
    ]);
    assertEquals(await store.get("run", "short"), null);
    await store.commit([{ put: record("short"), expect: 0 }]);
    assertEquals((await store.get("run", "short"))?.version, 1);
  });

  test("deleting an absent log or record does nothing", async (store) => {
    await store.commit([{ deleteLog: "none" }, { delete: { kind: "run", key: "none" } }]);
    await store.commit([{ append: "log", after: 0, entries: entries(1, 2) }]);
    await store.commit([{ deleteLog: "log" }]);
    assertEquals(await seqs(store, "log"), null);
    await conflict(() => store.commit([{ append: "log", after: 2, entries: entries(3, 3) }]));
    await store.commit([{ append: "log", after: 0, entries: entries(1, 1) }]);
    assertEquals(await seqs(store, "log"), [1]);
  });

  test("a lease belongs to one owner until it is released or the owner is dead", async (store, subject) => {
    const beat = async (owner: string) => await store.heartbeat(owner, 1_000);
    assertEquals([await beat("me"), await beat("you")], [
      { lives: true, deaths: false },
      { lives: true, deaths: false },
    ]);
    assert(typeof await store.acquire("lease", "me") === "number");
    assertEquals(await store.acquire("lease", "you"), null);
    assert(await store.acquire("another", "you") !== null);
    await subject.advance(600);
    assertEquals([await beat("me"), await beat("you")].map(({ lives }) => lives), [true, true]);
    await subject.advance(600);
    assertEquals((await beat("you")).deaths, false);
    assertEquals(await store.acquire("lease", "you"), null);
    assertEquals(await store.free(["lease", "another", "none"]), ["none"]);
    await store.release("lease", "you");
    assertEquals(await store.acquire("lease", "you"), null);
    await store.release("lease", "me");
    assertEquals(await store.free(["lease"]), ["lease"]);
    assert(await store.acquire("lease", "you") !== null);
    await subject.advance(1_001);
    await store.release("none", "me");
    assertEquals((await beat("other")).deaths, true);
    assertEquals(await store.free(["lease", "another"]), ["lease", "another"]);
    assert(await store.acquire("lease", "other") !== null);
    assertEquals(await beat("you"), { lives: false, deaths: true }); // for ever
    assertEquals((await beat("you")).lives, false);
    assertEquals(await store.acquire("lease", "you"), null);
  });

  test("a living owner of a hundred leases has them all, and a dead one none", async (store, subject) => {
    const names = Array.from({ length: 100 }, (_, n) => `lease ${n}`);
    await store.heartbeat("me", 1_000);
    for (const name of names) await store.acquire(name, "me");
    await subject.advance(900);
    await store.heartbeat("me", 1_000);
    await subject.advance(900);
    await store.heartbeat("you", 1_000);
    assertEquals(await store.free(names), []);
    await subject.advance(101);
    await store.heartbeat("you", 1_000);
    assertEquals((await store.free(names)).length, 100);
    await subject.advance(20_000); // what was not taken is forgotten
    await store.heartbeat("you", 1_000);
    assertEquals([(await store.heartbeat("me", 1_000)).lives, (await store.free(names)).length], [
      false,
      100,
    ]);
  });

  test(
    "a commit releases a lease if it is held with its token, together with its other changes",
    async (store, subject) => {
      await store.heartbeat("me", 60_000);
      await store.heartbeat("you", 60_000);
      const fenceOf = async (lease: string, owner: string): Promise<Fence> => ({
        lease,
        token: (await store.acquire(lease, owner))!,
      });
      const append = (log: string, after = 0): Change => ({ append: log, after, entries: entries(1, 1) });
      const mine = await fenceOf("a", "me");
      const other = await fenceOf("b", "me");
      await conflict(() => store.commit([append("log", 7), { put: record("r") }, { release: mine }], mine));
      await conflict(() => store.commit([{ release: mine }, { put: record("r"), expect: 3 }], mine));
      assertEquals([await store.acquire("a", "you"), await store.get("run", "r")], [null, null]);
      // as the end of a run does
      const end = [append("log"), { put: record("r") }, { expireLog: "log", at_ms: NOW + 1000 }, {
        release: mine,
      }];
      await store.commit(end, mine);
      await conflict(() => store.commit(end, mine));
      const yours = await fenceOf("a", "you");
      assert(yours.token !== mine.token);
      await store.commit([{ release: mine }, { release: { lease: "none", token: 1 } }]); // no longer held
      await store.commit([append("log", 1), { release: other }], yours); // not that of its fence
      await store.commit([append("two"), { put: record("s") }], yours);
      assertEquals([await store.acquire("a", "me"), await store.free(["a", "b"])], [null, ["b"]]);
      const two = await subject.another?.();
      await store.commit([append("two", 1), { release: yours }], yours);
      assertEquals(await (two ?? store).free(["a"]), ["a"]);
      assertEquals([await seqs(store, "two"), (await store.get("run", "r"))?.version], [[1, 1], 1]);
      await two?.close();
    },
  );

  test("a commit that counts too many records writes nothing", async (store, { advance }) => {
    const count = { kind: "run", namespace: "a", where: { caller: "k" } };
    const put = (key: string, fields: Partial<StoredRecord> = {}): Change => ({
      put: record(key, { index: { open: "true", caller: "k", other: "x" }, ...fields }),
    });
    const add = (key: string, below: number, ...more: Change[]) =>
      store.commit([{ count, below }, { append: key, after: 0, entries: entries(1, 1) }, put(key), ...more]);
    const refused = async (run: () => unknown) => {
      const error = await assertRejects(async () => void await run(), Error);
      assert(error instanceof TooManyError && error instanceof ConflictError, String(error));
      assertEquals([error.name, error.code], ["ConflictError", "too_many_records"]);
    };
    await add("1", 2);
    await store.commit([
      put("other namespace", { namespace: "b" }),
      put("other kind", { kind: "note" }),
      put("other caller", { index: { open: "true", caller: "l" } }),
      put("ended", { index: { open: "false", caller: "k" } }),
      put("without an index", { index: {} }),
      put("expired", { expires_ms: NOW + 10 }),
    ]);
    await advance(10);
    await add("2", 2);
    await refused(() => add("3", 2));
    await refused(() => store.commit([{ count, below: 2 }, put("3"), { put: record("1"), expect: 1 }]));
    const key = (expect: number): Change => ({ put: record("key", { kind: "key" }), expect });
    await conflict(() => add("3", 3, key(1)));
    await refused(() => add("3", 2, key(0)));
    assertEquals([await store.get("run", "3"), await store.get("key", "key")], [null, null]);
    await store.commit([{ count: { ...count, where: {} }, below: 4 }]);
    await refused(() => store.commit([{ count: { ...count, where: {} }, below: 3 }]));
    assertEquals([await store.get("run", "3"), await seqs(store, "3")], [null, null]);
    await conflict(() =>
      store.commit([{ count, below: 3 }, { append: "1", after: 0, entries: entries(1, 1) }, put("3")])
    );
    await store.commit([{ delete: { kind: "run", key: "1" } }, { count, below: 3 }]);
    await refused(() => store.commit([{ count, below: 1 }, { delete: { kind: "run", key: "2" } }])); // of before
    await add("3", 2, key(0));
  });

  test(
    "concurrent commits that count never make too many records, in one process or in two",
    async (store, subject) => {
      const other = await subject.another?.();
      const count = { kind: "run", namespace: "a", where: { caller: "k" } };
      const add = async (from: Store, key: string) =>
        await from.commit([
          { count, below: 5 },
          { append: key, after: 0, entries: entries(1, 1) },
          { put: record(key, { index: { open: "true", caller: "k" } }) },
        ]);
      for (const round of [1, 2]) {
        const all = await Promise.allSettled(
          Array.from({ length: 40 }, (_, n) => add(n % 2 ? store : other ?? store, `${round}-${n}`)),
        );
        assertEquals(all.filter(({ status }) => status === "fulfilled").length, 5);
        const { records } = await store.list("run", { namespace: "a", where: { open: "true" }, limit: 100 });
        assertEquals(records.length, 5);
        await store.commit(
          records.map((record) => ({ put: { ...record, index: { open: "false", caller: "k" } } })),
        );
      }
      await other?.close();
    },
  );

  test("an owner that acquires again keeps its lease and its token", async (store) => {
    await store.heartbeat("me", 1_000);
    const token = await store.acquire("lease", "me");
    assertEquals(await store.acquire("lease", "me"), token);
  });

  test(
    "a commit carries its fence: an older one writes nothing, not even for the same owner",
    async (store, subject) => {
      const fenceOf = async (owner: string): Promise<Fence> => {
        await store.heartbeat(owner, 1_000);
        return { lease: "lease", token: (await store.acquire("lease", owner))! };
      };
      const mine = await fenceOf("me");
      await store.commit([{ append: "log", after: 0, entries: entries(1, 1) }], mine);
      await subject.advance(1_001);
      const yours = await fenceOf("you");
      assert(yours.token !== mine.token);
      await conflict(() => store.commit([{ append: "log", after: 1, entries: entries(2, 2) }], mine));
      await store.commit([{ append: "log", after: 1, entries: entries(2, 2) }], yours);
      await store.release("lease", "you");
      await conflict(() => store.commit([{ put: record("x") }], yours));
      const again = await fenceOf("him");
      assert(again.token !== mine.token && again.token !== yours.token);
      await conflict(() => store.commit([{ put: record("x") }], mine));
      await store.commit([{ put: record("x") }], again);
      assertEquals(await seqs(store, "log"), [1, 2]);
      await conflict(() => store.commit([{ put: record("y") }], { lease: "never", token: 1 }));
    },
  );

  test("one of many concurrent owners gets the lease", async (store, subject) => {
    const other = await subject.another?.() ?? store;
    const tokens = await Promise.all(
      ["a", "b", "c", "d"].map(async (owner, n) => {
        const one = n % 2 ? other : store;
        await one.heartbeat(owner, 1_000);
        return await one.acquire("lease", owner);
      }),
    );
    assertEquals(tokens.filter((token) => token !== null).length, 1);
    if (other !== store) await other.close();
  });

  test("one process reads what another wrote", async (store, subject) => {
    const other = await subject.another?.();
    if (!other) return;
    await store.commit([{ append: "log", after: 0, entries: entries(1, 2) }, { put: record("x") }]);
    assertEquals(await seqs(other, "log"), [1, 2]);
    assertEquals((await other.get("run", "x"))?.version, 1);
    await other.close();
  });

  test("ready() resolves to the store's description", async (store) => {
    assertEquals((await store.ready()).ok, true);
    assert(store.kind.length > 0);
  });
}
