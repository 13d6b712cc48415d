import { HeldLeases } from "../../../src/runs/scheduler/leases.ts";
import type { JsonObject } from "../../../src/sdk/types.ts";
import { MemoryStore } from "../../../src/store/memory.ts";
import type { Store } from "../../../src/store/store.ts";
import { assertEquals } from "../../assert.ts";
import { until } from "../../support/sessions.ts";

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
    for (const id of ["kept", "released", "taken"]) await leases.acquire(id);
    (await tick)();
    assertEquals([...answers.keys()], ["kept", "released", "taken"]);
    await leases.release("released");
    answers.get("kept")!.resolve(true);
    answers.get("released")!.resolve(false); // its row was deleted meanwhile
    answers.get("taken")!.resolve(false);
    await until(() => logged.length > 0);
    assertEquals(logged, [["lease_lost", { lease: "taken" }]]);
  } finally {
    restore();
    leases.close();
  }
});

Deno.test("HeldLeases does not renew leases again before a slow store has answered", async () => {
  const store: Store = Object.assign(new MemoryStore(), { changed: () => Promise.resolve() }); // shared
  const answers: PromiseWithResolvers<boolean>[] = [];
  store.renew = () => {
    const answer = Promise.withResolvers<boolean>();
    answers.push(answer);
    return answer.promise;
  };
  const { promise: tick, restore } = capturedInterval();
  const leases = new HeldLeases(store, "here", () => {});
  try {
    await leases.acquire("lease");
    const renew = await tick;
    renew();
    renew();
    assertEquals(answers.length, 1);
    answers[0]!.reject(new Error("timeout"));
    await until(() => {
      renew();
      return answers.length === 2;
    });
  } finally {
    restore();
    leases.close();
  }
});

Deno.test("HeldLeases logs one line when the renewal of several leases fails", async () => {
  const store: Store = Object.assign(new MemoryStore(), { changed: () => Promise.resolve() }); // shared
  store.renew = () => Promise.reject(new Error("away"));
  const logged: [string, JsonObject][] = [];
  const { promise: tick, restore } = capturedInterval();
  const leases = new HeldLeases(store, "here", (_level, event, facts) => logged.push([event, facts]));
  try {
    for (const id of ["a", "b", "c"]) await leases.acquire(id);
    (await tick)();
    await until(() => logged.length > 0);
    assertEquals(logged, [["lease_not_renewed", { leases: 3, message: "Error: away" }]]);
  } finally {
    restore();
    leases.close();
  }
});

/** Captures the function of the next interval instead of starting it. */
function capturedInterval(): { promise: Promise<() => void>; restore: () => void } {
  const { promise, resolve } = Promise.withResolvers<() => void>();
  const before = globalThis.setInterval;
  globalThis.setInterval = ((run: () => void) => {
    resolve(run);
    return 0;
  }) as unknown as typeof setInterval; // the handle is only passed to clearInterval
  return { promise, restore: () => void (globalThis.setInterval = before) };
}
