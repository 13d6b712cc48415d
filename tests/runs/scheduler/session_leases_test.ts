import { SessionLeases } from "../../../src/runs/scheduler/session_leases.ts";
import type { ActiveRun } from "../../../src/runs/run/run.ts";
import type { JsonObject } from "../../../src/sdk/types.ts";
import { MemoryStore } from "../../../src/store/memory.ts";
import type { Store } from "../../../src/store/store.ts";
import { assertEquals } from "../../assert.ts";
import { until } from "../../kernel/kit.ts";

const RUNNER = {} as ActiveRun; // never used

Deno.test("SessionLeases does not renew a lease that was released during another renewal", async () => {
  const slow = Promise.withResolvers<void>();
  const renewed: string[] = [];
  const store: Store = new MemoryStore();
  const renew = store.renew.bind(store);
  store.renew = async (lease, owner, ttl_ms) => {
    renewed.push(lease);
    if (lease === "session/a") await slow.promise;
    return await renew(lease, owner, ttl_ms);
  };
  const logged: [string, JsonObject][] = [];
  const { promise: tick, restore } = capturedInterval();
  const holds = new SessionLeases(store, "here", (_level, event, facts) => logged.push([event, facts]));
  try {
    for (const id of ["a", "b", "c"]) await holds.acquire(id, RUNNER);
    (await tick)();
    await holds.release("b");
    slow.resolve();
    await until(() => renewed.includes("session/c"));
    assertEquals(renewed, ["session/a", "session/c"]);
    assertEquals(logged, []);
  } finally {
    restore();
    holds.close();
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
