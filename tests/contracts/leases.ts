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
      await dead.heartbeat("dead", TTL_MS);
      assert(await dead.acquire("lease", "dead") !== null);
      await pause(TTL_MS);
      const started = await open(() => Date.now());
      await started.heartbeat("started", TTL_MS);
      // null when it has not seen the other for long enough
      if (await started.acquire("lease", "started", false) !== null) {
        await started.release("lease", "started");
      }
      assert(await started.acquire("lease", "started") !== null);
      assertEquals((await dead.heartbeat("dead", TTL_MS)).lives, false);
      await dead.close();
      await started.close();
    }));
}

/** `living` keeps a lease for a while, which `other` wants; then it stops. */
async function checkLease(living: Store, other: Store): Promise<void> {
  let name = 0;
  let since = 0;
  let token: number | null = null;
  const begin = async () => {
    since = performance.now(); // it lives at least for TTL_MS from here on
    await living.heartbeat(`living ${++name}`, TTL_MS);
    token = await living.acquire("lease", `living ${name}`);
    assert(token !== null);
  };
  let taker = 1;
  const take = async () => {
    const { lives } = await other.heartbeat(`other ${taker}`, TTL_MS);
    if (!lives) await other.heartbeat(`other ${++taker}`, TTL_MS); // this machine stood still
    return await other.acquire("lease", `other ${taker}`);
  };
  await begin();
  for (let count = 0; count < 15; count++) {
    const started = performance.now();
    const [{ lives }, taken] = await Promise.all([
      pause(TTL_MS / 5).then(() => living.heartbeat(`living ${name}`, TTL_MS)),
      take(),
    ]);
    const is_late = performance.now() - since >= TTL_MS;
    since = started;
    if ((!lives || taken !== null) && is_late) { // this machine stood still
      if (taken !== null) await other.release("lease", `other ${taker}`);
      await begin();
    } else assertEquals([lives, taken], [true, null]);
  }
  await living.commit([{ append: "log", after: 0, entries: [{ seq: 1 }] }], {
    lease: "lease",
    token: token!,
  });
  let taken: number | null = null;
  for (let tries = 0; taken === null && tries < 50; tries++) {
    taken = await take();
    await pause(TTL_MS / 10);
  }
  assert(taken !== null && taken !== token, "the lease of a dead server is never free");
  const waited = performance.now() - since;
  assert(waited >= TTL_MS * 0.7, `taken after ${waited} ms`);
}
