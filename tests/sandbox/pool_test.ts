import { Pool, type PoolOptions } from "../../src/sandbox/pool.ts";
import type { GuestProcess } from "../../src/sandbox/process_tier.ts";
import { assert, assertEquals, assertStrictEquals, assertThrows } from "../assert.ts";

/** A child that is only said to be one. */
class FakeChild {
  alive = true;
  ended: string | null = null;
  constructor(readonly flavour: string) {}
  kill({ cause }: { cause: string }): Promise<void> {
    this.alive = false;
    this.ended = cause;
    return Promise.resolve();
  }
}

/** A pool of such children; `until` resolves when so many were started in all. */
function pool(options: Partial<PoolOptions> = {}) {
  const started: FakeChild[] = [];
  let waiting: { count: number; reached(): void } | null = null;
  const made = new Pool({
    memory_mb: 1,
    cpu_s: 1,
    start: (_, flavour) => {
      const child = new FakeChild(flavour);
      started.push(child);
      if (waiting && started.length >= waiting.count) waiting.reached();
      return child as unknown as GuestProcess; // what a pool uses of one
    },
    ...options,
  });
  const until = async (count: number) => {
    if (started.length >= count) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    waiting = { count, reached: resolve };
    await awake(promise);
  };
  const take = (nothing: boolean) => made.take(nothing) as unknown as FakeChild;
  return { pool: made, started, until, take };
}

/** Waits; the pool's own timers keep nobody waiting. */
async function awake<T>(promise: Promise<T>): Promise<T> {
  const timer = setTimeout(() => {}, 10_000);
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
  }
}

Deno.test("Pool starts nobody before it is asked, then keeps one of each flavour ready", async () => {
  const { pool: made, started, until, take } = pool();
  assertEquals(started.length, 0);
  const first = take(true);
  assertEquals(started, [first]);
  await until(3);
  assertEquals(started.slice(1).map(({ flavour }) => flavour), ["bare", "ready"]);
  const [, bare, ready] = started;
  assertStrictEquals(take(true), ready);
  assertStrictEquals(take(false), bare);
  await made.close();
  assertEquals(started.map(({ ended }) => ended), [null, null, null]);
});

Deno.test("Pool gives a module that is granted something no child that has its worker already", async () => {
  const { pool: made, started, until, take } = pool();
  made.prepare();
  await until(2);
  const [bare, ready] = started;
  assertStrictEquals(take(false), bare);
  const next = take(false);
  assertEquals([next.flavour, next === ready], ["bare", false]);
  await made.close();
  assertEquals(ready!.ended, "ended");
});

Deno.test("Pool gives no child that is dead", async () => {
  const { pool: made, started, until, take } = pool({ spares: 2 });
  made.prepare();
  await until(4);
  for (const child of started) child.alive = child === started[3];
  assertStrictEquals(take(true), started[3]);
  assert(!started.slice(0, 4).includes(take(true)));
  await made.close();
});

Deno.test("Pool ends children that nobody took, and starts others when it is asked again", async () => {
  const ended = Promise.withResolvers<void>();
  const { pool: made, started, until, take } = pool({ idle_ms: 200 });
  made.prepare();
  await until(2);
  started[1]!.kill = () => {
    ended.resolve();
    return Promise.resolve();
  };
  await awake(ended.promise);
  assertEquals(started[0]!.ended, "ended");
  assert(!started.slice(0, 2).includes(take(true)));
  await made.close();
});

Deno.test("Pool.close() ends its spares and starts no more", async () => {
  const { pool: made, started, until, take } = pool();
  made.prepare();
  await until(2);
  await made.close();
  assertEquals(started.map(({ ended }) => ended), ["ended", "ended"]);
  take(true);
  made.prepare();
  await new Promise((resolve) => setTimeout(resolve, 0));
  assertEquals(started.length, 3);
});

Deno.test("Pool tells who takes a child that none can be started, and stays silent about spares", async () => {
  const tried = Promise.withResolvers<void>();
  const { pool: made } = pool({
    start: () => {
      tried.resolve();
      throw new Error("no processes here");
    },
  });
  made.prepare();
  await awake(tried.promise);
  assertThrows(() => made.take(true), Error, "no processes here");
  await made.close();
});
