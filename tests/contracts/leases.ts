/**
 * Leases among servers whose clocks differ: a test for stores that several processes share. A living server
 * keeps its lease whatever the clocks say, and that of a dead one expires.
 */
import type { Store } from "../../src/store/store.ts";
import { assert, assertEquals } from "../assert.ts";

/** Duration of the leases in milliseconds. */
const TTL_MS = 400;
const SKEW_MS = 10 * 60_000;

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/**
 * Registers the tests for one kind of store.
 * @param open Opens the same data each time, for a server whose clock shows `now()`.
 */
export function testLeaseClocks(
  name: string,
  inStore: (body: (open: (now: () => number) => Promise<Store>) => Promise<void>) => Promise<void>,
): void {
  for (const skew_ms of [SKEW_MS, -SKEW_MS]) {
    const skew = skew_ms > 0 ? "ahead" : "behind";
    Deno.test(`${name}: a server whose clock is ten minutes ${skew} takes a lease only from a dead server`, () =>
      inStore(async (open) => {
        const living = await open(() => Date.now());
        const other = await open(() => Date.now() + skew_ms);
        await checkLease(living, other);
        await living.close();
        await other.close();
      }));
  }

  Deno.test(`${name}: a clock that jumps in either direction loses no lease`, () =>
    inStore(async (open) => {
      let jump_ms = 0;
      const living = await open(() => Date.now() + jump_ms);
      const other = await open(() => Date.now());
      const jumps = setInterval(() => jump_ms = jump_ms === 0 ? SKEW_MS : -jump_ms, TTL_MS / 3);
      try {
        await checkLease(living, other);
      } finally {
        clearInterval(jumps);
      }
      await living.close();
      await other.close();
    }));

  Deno.test(`${name}: a server that has just started takes the lease of a dead one after its duration`, () =>
    inStore(async (open) => {
      const dead = await open(() => Date.now());
      assert(await dead.acquire("lease", "dead", TTL_MS) !== null);
      await pause(TTL_MS);
      const started = await open(() => Date.now());
      // null when it has not seen the lease for long enough
      if (await started.acquire("lease", "started", TTL_MS, false) !== null) {
        await started.release("lease", "started");
      }
      assert(await started.acquire("lease", "started", TTL_MS) !== null);
      assertEquals(await dead.renew("lease", "dead", TTL_MS), false);
      await dead.close();
      await started.close();
    }));
}

/** `living` renews a lease for a while, which `other` wants; then it stops. */
async function checkLease(living: Store, other: Store): Promise<void> {
  let since = performance.now(); // the lease holds at least for TTL_MS from here on
  let token = await living.acquire("lease", "living", TTL_MS);
  assert(token !== null);
  for (let count = 0; count < 15; count++) {
    const started = performance.now();
    const [renewed, taken] = await Promise.all([
      pause(TTL_MS / 5).then(() => living.renew("lease", "living", TTL_MS)),
      other.acquire("lease", "other", TTL_MS),
    ]);
    const is_late = performance.now() - since >= TTL_MS;
    since = started;
    if ((!renewed || taken !== null) && is_late) { // this machine stood still: the lease was free
      since = performance.now();
      if (taken !== null) await other.release("lease", "other");
      token = await living.acquire("lease", "living", TTL_MS);
      assert(token !== null);
    } else assertEquals([renewed, taken], [true, null]);
  }
  await living.commit([{ append: "log", after: 0, entries: [{ seq: 1 }] }], { lease: "lease", token });
  let taken: number | null = null;
  for (let tries = 0; taken === null && tries < 50; tries++) {
    taken = await other.acquire("lease", "other", TTL_MS);
    await pause(TTL_MS / 10);
  }
  assert(taken !== null && taken !== token, "the lease of a dead server never expires");
  const waited = performance.now() - since;
  assert(waited >= TTL_MS * 0.7, `taken after ${waited} ms`);
}
