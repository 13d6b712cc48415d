import { SessionLeases } from "../../../src/runs/scheduler/session_leases.ts";
import type { ActiveRun } from "../../../src/runs/run/run.ts";
import type { JsonObject } from "../../../src/sdk/types.ts";
import { MemoryStore } from "../../../src/store/memory.ts";
import type { Store } from "../../../src/store/store.ts";
import { assertEquals } from "../../assert.ts";
import { until } from "../../support/sessions.ts";

const RUN = {} as ActiveRun; // never used

Deno.test("SessionLeases renews all leases at once, and reports only those that another process took", async () => {
  const answers = new Map<string, PromiseWithResolvers<boolean>>();
  const store: Store = new MemoryStore();
  store.renew = (lease) => {
    const answer = Promise.withResolvers<boolean>();
    answers.set(lease, answer);
    return answer.promise;
  };
  const logged: [string, JsonObject][] = [];
  const { promise: tick, restore } = capturedInterval();
  const leases = new SessionLeases(store, "here", (_level, event, facts) => logged.push([event, facts]));
  try {
    for (const id of ["kept", "released", "taken"]) await leases.acquire(id, RUN);
    (await tick)();
    assertEquals([...answers.keys()], ["session/kept", "session/released", "session/taken"]);
    await leases.release("released");
    answers.get("session/kept")!.resolve(true);
    answers.get("session/released")!.resolve(false); // its row was deleted meanwhile
    answers.get("session/taken")!.resolve(false);
    await until(() => logged.length > 0);
    assertEquals(logged, [["lease_lost", { lease: "session/taken" }]]);
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
