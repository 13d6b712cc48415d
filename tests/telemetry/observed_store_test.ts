import { PreampError } from "../../src/sdk/errors.ts";
import { MemoryStore } from "../../src/store/memory.ts";
import { type Awaitable, ConflictError, type Store } from "../../src/store/store.ts";
import { Metrics } from "../../src/telemetry/metrics.ts";
import { observedStore } from "../../src/telemetry/observed_store.ts";
import { assertEquals, assertRejects } from "../assert.ts";

const log = () => {};
const AWAY = () => new PreampError("overloaded", "Cannot use the store: the database failed: ECONNRESET");
const FULL = () => new PreampError("storage_full", "Cannot write to the store: the database is full");

/** A store whose operations the test answers, and what was logged of it. */
function controlled() {
  const metrics = new Metrics();
  const lines: string[] = [];
  let now_ms = 0;
  const inner: Partial<Store> = {};
  const store = observedStore(
    Object.assign(new MemoryStore(), { kind: "postgres" }, {
      get: () => inner.get!("run", "a"),
      commit: () => inner.commit!([]),
    }),
    { metrics, log: (level, event) => lines.push(`${level} ${event}`), now: () => now_ms },
  );
  return {
    lines,
    up: () => /preamp_store_up\{store="postgres"\} (\d)/.exec(metrics.text())?.[1],
    pass: (ms: number) => now_ms += ms,
    async read(answer: () => Awaitable<null>) {
      inner.get = answer;
      return await Promise.resolve().then(() => store.get("run", "a")).then(() => "ok", () => "failed");
    },
    async commit(answer: () => Awaitable<void>) {
      inner.commit = answer;
      return await Promise.resolve().then(() => store.commit([])).then(() => "ok", () => "failed");
    },
    close: () => metrics.close(),
  };
}

const fail = (error: () => Error) => () => Promise.reject(error());

Deno.test("observedStore() says once that the store is away, and once that it is back", async () => {
  const one = controlled();
  assertEquals(one.up(), "1");
  for (let time = 0; time < 3; time++) {
    assertEquals(await one.read(fail(AWAY)), "failed");
    one.pass(10);
  }
  assertEquals([one.lines, one.up()], [["warning store_away"], "0"]);
  assertEquals(await one.read(() => null), "ok");
  assertEquals(await one.read(() => null), "ok");
  assertEquals([one.lines, one.up()], [["warning store_away", "info store_back"], "1"]);
  one.close();
});

Deno.test("observedStore() does not take an operation that began before a failure for the store's return", async () => {
  const one = controlled();
  const slow = Promise.withResolvers<null>();
  const early = one.read(() => slow.promise);
  await Promise.resolve();
  one.pass(10);
  await one.commit(fail(AWAY));
  slow.resolve(null);
  assertEquals([await early, one.lines], ["ok", ["warning store_away"]]);
  one.close();
});

Deno.test("observedStore() takes a full store for back after a commit, not after a read", async () => {
  const one = controlled();
  await one.commit(fail(FULL));
  one.pass(10);
  await one.read(() => null);
  assertEquals(one.lines, ["warning store_away"]);
  await one.commit(() => {});
  assertEquals(one.lines, ["warning store_away", "info store_back"]);
  one.close();
});

Deno.test("observedStore() does not take conflicts and lasting errors for a store that is away", async () => {
  const one = controlled();
  await one.commit(fail(() => new ConflictError("another version")));
  await one.commit(fail(() => new PreampError("internal", "Cannot use the store: 42P01")));
  assertEquals([one.lines, one.up()], [[], "1"]);
  one.close();
});

Deno.test("observedStore() passes on whether a lease of a dead owner is taken at once", async () => {
  const seen: unknown[] = [];
  const acquire: Store["acquire"] = (_lease, _owner, at_once) => {
    seen.push(at_once);
    return 1;
  };
  const metrics = new Metrics();
  const store = observedStore(Object.assign(new MemoryStore(), { acquire }), { metrics, log });
  await store.acquire("a", "me", false);
  await store.acquire("a", "me");
  metrics.close();
  assertEquals(seen, [false, undefined]);
});

Deno.test("observedStore() records commits of synchronous and asynchronous stores with their outcome", async () => {
  const metrics = new Metrics();
  const memory = observedStore(new MemoryStore(), { metrics, log });
  const put = { kind: "run", key: "a", namespace: "n", value: {} };
  assertEquals(memory.commit([{ put, expect: 0 }]), undefined);
  await assertRejects(async () => await memory.commit([{ put, expect: 0 }]), ConflictError);
  const broken = Object.assign(new MemoryStore(), {
    kind: "broken",
    commit: () => Promise.reject(new Error("the disk is gone")),
  });
  await assertRejects(
    async () => await observedStore(broken, { metrics, log }).commit([]),
    Error,
    "the disk is gone",
  );
  const slow = Object.assign(new MemoryStore(), { kind: "slow", commit: () => Promise.resolve() });
  await observedStore(slow, { metrics, log }).commit([]);
  const lines = metrics.text().split("\n").filter((line) => line.includes("commit_duration_seconds_count{"));
  metrics.close();
  assertEquals(lines, [
    'preamp_store_commit_duration_seconds_count{store="memory",outcome="ok"} 1',
    'preamp_store_commit_duration_seconds_count{store="memory",outcome="conflict"} 1',
    'preamp_store_commit_duration_seconds_count{store="broken",outcome="error"} 1',
    'preamp_store_commit_duration_seconds_count{store="slow",outcome="ok"} 1',
  ]);
});
