import type { ActiveRun } from "../../../src/runs/run/run.ts";
import type { Lease } from "../../../src/runs/run/lease.ts";
import { HeldLeases, SessionLeases } from "../../../src/runs/scheduler/leases.ts";
import { FakeClock } from "../../../src/testing/clocks.ts";
import type { JsonObject } from "../../../src/sdk/types.ts";
import { MemoryStore } from "../../../src/store/memory.ts";
import type { Store } from "../../../src/store/store.ts";
import { assertEquals, assertRejects } from "../../assert.ts";
import { until } from "../../support/sessions.ts";
import { capturedIntervals } from "../shared_store.ts";

/** Calls `body` with the leases of a process whose heartbeats the store answers with `lives`. */
async function withLeases(
  lives: () => boolean | Promise<boolean>,
  body: (subject: {
    readonly leases: HeldLeases;
    readonly store: Store;
    readonly clock: FakeClock;
    readonly owners: readonly string[];
    readonly logged: readonly [string, JsonObject][];
    /** Calls what the process does each second. */
    tick(): void;
  }) => Promise<void>,
): Promise<void> {
  const store: Store = Object.assign(new MemoryStore(), { changed: () => Promise.resolve() }); // shared
  const owners: string[] = [];
  store.heartbeat = async (owner) => {
    owners.push(owner);
    return { lives: await lives(), deaths: false };
  };
  const clock = new FakeClock();
  const logged: [string, JsonObject][] = [];
  let count = 0;
  const { tick, restore } = capturedIntervals();
  const leases = new HeldLeases({
    store,
    clock,
    newId: (prefix) => `${prefix}_${++count}`,
    log: (_level, event, facts) => logged.push([event, facts]),
  });
  try {
    await body({ leases, store, clock, owners, logged, tick });
  } finally {
    leases.close();
    restore();
  }
}

Deno.test("a process says that it lives once, however many leases it has; when it was found dead it loses all", async () => {
  let lives = true;
  await withLeases(() => lives, async ({ leases, owners, logged }) => {
    const held: Lease[] = [];
    for (const id of ["a", "b", "c"]) held.push((await leases.acquire(id))!);
    await leases.release("c");
    assertEquals(owners, ["proc_1"]);
    await leases.beat();
    assertEquals(held.map(({ lost }) => lost.aborted), [false, false, false]);
    lives = false;
    await leases.beat();
    assertEquals(held.map(({ lost }) => lost.aborted), [true, true, false]);
    assertEquals(logged, [["leases_lost", { leases: 2 }]]);
    await assertRejects(async () => await held[0]!.confirm(), Error, 'lease "a" is not held');
    lives = true;
    assertEquals((await leases.acquire("a"))?.lost.aborted, false);
    assertEquals(owners, ["proc_1", "proc_1", "proc_1", "proc_2"]);
  });
});

Deno.test("heartbeats wait for the answer of a slow store, and those that fail are logged in one line", async () => {
  const answers: PromiseWithResolvers<boolean>[] = [];
  const next = () => {
    answers.push(Promise.withResolvers());
    return answers.at(-1)!.promise;
  };
  await withLeases(next, async ({ leases, logged, tick }) => {
    const first = leases.beat();
    for (let round = 0; round < 3; round++) tick();
    assertEquals(answers.length, 1);
    answers[0]!.reject(new Error("away"));
    await assertRejects(() => first, Error, "away");
    tick();
    assertEquals([answers.length, logged], [2, []]);
    answers[1]!.reject(new Error("timeout"));
    await until(() => {
      tick();
      return logged.length > 0;
    });
    assertEquals(logged, [["heartbeat_failed", { message: "Error: timeout" }]]);
    for (const { resolve } of answers) resolve(true);
  });
});

Deno.test("a lease that the store does not release is released as soon as it does", async () => {
  await withLeases(() => true, async ({ leases, store, clock, logged }) => {
    await leases.acquire("a");
    const release = store.release.bind(store);
    let failures = 2;
    store.release = (...args) => {
      if (failures-- > 0) throw new Error("away");
      return release(...args);
    };
    const released = leases.release("a");
    await until(() => logged.length > 0);
    assertEquals(logged[0]![0], "lease_not_released");
    for (let step = 0; failures >= 0; step++) await clock.advance(500);
    await released;
    assertEquals(await store.free(["a"]), ["a"]);
  });
});

Deno.test("a lease that is released twice does not release the one that is acquired between", async () => {
  const { promise: slow, resolve } = Promise.withResolvers<void>();
  const store: Store = new MemoryStore();
  store.release = () => slow;
  let freed = 0;
  const leases = new SessionLeases(
    new HeldLeases({ store, clock: new FakeClock(), newId: (prefix) => prefix, log: () => {} }),
    () => freed++,
  );
  await leases.acquire("own", null);
  const first = leases.release("own");
  await leases.release("own");
  const run = { session_id: "own", hold: () => {} } as unknown as ActiveRun; // what SessionLeases uses of it
  await leases.acquire("own", run);
  resolve();
  await first;
  assertEquals([leases.runIn("own"), freed], [run, 1]);
});
