import type { ActiveRun } from "../../../src/runs/run/run.ts";
import { HeldLeases, SessionLeases } from "../../../src/runs/scheduler/leases.ts";
import type { JsonObject } from "../../../src/sdk/types.ts";
import { MemoryStore } from "../../../src/store/memory.ts";
import type { Store } from "../../../src/store/store.ts";
import { assertEquals } from "../../assert.ts";
import { until } from "../../support/sessions.ts";
import { capturedInterval } from "../shared_store.ts";

Deno.test("HeldLeases renews all leases at once, and reports only those that another process took", async () => {
  const answers = new Map<string, PromiseWithResolvers<boolean>>();
  const store: Store = Object.assign(new MemoryStore(), { changed: () => Promise.resolve() }); // shared
  store.renew = (lease) => {
    const answer = Promise.withResolvers<boolean>();
    answers.set(lease, answer);
    return answer.promise;
  };
  const logged: [string, JsonObject][] = [];
  const { promise: tick, restore } = capturedInterval();
  const leases = new HeldLeases(store, "here", (_level, event, facts) => logged.push([event, facts]));
  try {
    const lost = [];
    for (const id of ["kept", "released", "taken"]) lost.push((await leases.acquire(id))!.lost);
    (await tick)();
    assertEquals([...answers.keys()], ["kept", "released", "taken"]);
    await leases.release("released");
    answers.get("kept")!.resolve(true);
    answers.get("released")!.resolve(false); // its row was deleted meanwhile
    answers.get("taken")!.resolve(false);
    await until(() => logged.length > 0);
    answers.clear();
    assertEquals(logged, [["lease_lost", { lease: "taken" }]]);
    (await tick)();
    assertEquals([...answers.keys()], ["kept"]);
    assertEquals(lost.map(({ aborted }) => aborted), [false, false, true]);
  } finally {
    restore();
    leases.close();
  }
});

Deno.test("HeldLeases does not renew a lease again before a slow store has answered, and renews the others meanwhile", async () => {
  const store: Store = Object.assign(new MemoryStore(), { changed: () => Promise.resolve() }); // shared
  const asked: string[] = [];
  const { promise: slow, reject } = Promise.withResolvers<boolean>();
  store.renew = (lease) => {
    asked.push(lease);
    return lease === "slow" ? slow : Promise.resolve(true);
  };
  const logged: [string, JsonObject][] = [];
  const { promise: tick, restore } = capturedInterval();
  const leases = new HeldLeases(store, "here", (_level, event, facts) => logged.push([event, facts]));
  try {
    for (const id of ["slow", "a", "b"]) await leases.acquire(id);
    const renew = await tick;
    for (let round = 0; round < 3; round++) {
      renew();
      await Promise.resolve(); // the store has answered the others
    }
    assertEquals(asked, ["slow", "a", "b", "a", "b", "a", "b"]);
    asked.length = 0;
    reject(new Error("timeout"));
    await until(() => {
      renew();
      return asked.includes("slow");
    });
    assertEquals(logged, [["lease_not_renewed", { leases: 1, message: "Error: timeout" }]]);
  } finally {
    restore();
    leases.close();
  }
});

Deno.test("HeldLeases logs one line for all renewals that failed, and does not wait for the slowest", async () => {
  const store: Store = Object.assign(new MemoryStore(), { changed: () => Promise.resolve() }); // shared
  store.renew = (lease) => lease === "slow" ? new Promise(() => {}) : Promise.reject(new Error("away"));
  const logged: [string, JsonObject][] = [];
  const { promise: tick, restore } = capturedInterval();
  const leases = new HeldLeases(store, "here", (_level, event, facts) => logged.push([event, facts]));
  try {
    for (const id of ["a", "slow", "b", "c"]) await leases.acquire(id);
    const renew = await tick;
    renew();
    await until(() => {
      renew();
      return logged.length > 0;
    });
    assertEquals(logged, [["lease_not_renewed", { leases: 3, message: "Error: away" }]]);
  } finally {
    restore();
    leases.close();
  }
});

Deno.test("a lease that is released twice does not release the one that is acquired between", async () => {
  const { promise: slow, resolve } = Promise.withResolvers<void>();
  const store: Store = new MemoryStore();
  store.release = () => slow;
  let freed = 0;
  const leases = new SessionLeases(new HeldLeases(store, "here", () => {}), () => freed++);
  await leases.acquire("own", null);
  const first = leases.release("own");
  await leases.release("own");
  const run = { session_id: "own", hold: () => {} } as unknown as ActiveRun; // what SessionLeases uses of it
  await leases.acquire("own", run);
  resolve();
  await first;
  assertEquals([leases.runIn("own"), freed], [run, 1]);
});
