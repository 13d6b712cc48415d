/** Children that wait: which of them a module gets, and for whom new ones are started. */
import type { Readiness } from "../../src/sandbox/guest_child.ts";
import { guestGrant } from "../../src/sandbox/guest_worker.ts";
import { type WarmChild, WarmPool } from "../../src/sandbox/warm_pool.ts";
import { assertEquals, assertThrows } from "../assert.ts";

/** A child that records its calls. */
class FakeChild implements WarmChild {
  readonly id: number;
  ready: readonly string[] | null = null;
  alive = true;

  constructor(id: number) {
    this.id = id;
  }

  prepare({ grant }: Readiness): void {
    this.ready = Array.isArray(grant.net) ? grant.net : [];
  }

  kill(): Promise<void> {
    this.alive = false;
    return Promise.resolve();
  }
}

/** A pool whose time passes when the test says so; `start` may refuse. */
function scripted(mayStart: () => void = () => {}) {
  const started: FakeChild[] = [];
  const waiting = new Set<{ act(): void; ms: number }>();
  const pool = new WarmPool({
    memory_mb: 1,
    cpu_s: 1,
    start: () => {
      mayStart();
      const child = new FakeChild(started.length);
      started.push(child);
      return child;
    },
    later: (act, ms) => {
      const entry = { act, ms };
      waiting.add(entry);
      return () => waiting.delete(entry);
    },
  });
  /** Does all that waits for at most so long, and what follows from it. */
  function pass(max_ms: number): void {
    for (const entry of waiting) {
      if (entry.ms > max_ms) continue;
      waiting.delete(entry);
      entry.act();
    }
  }
  const alive = () => started.filter((child) => child.alive).map(({ ready }) => ready?.join() ?? "any");
  return { pool, started, pass, alive };
}

function wanting(...net: string[]): Readiness {
  return { grant: guestGrant({ net }), uses: [] };
}

Deno.test("WarmPool starts a child for any module and one with a worker that holds nothing, and nothing before it is asked", () => {
  const { pool, pass, alive } = scripted();
  pass(1_000);
  assertEquals(alive(), []);
  pool.prepare();
  pass(1_000);
  assertEquals(alive(), ["any", ""]);
});

Deno.test("WarmPool.take() gives a waiting child with just that grant, else one for any module, else a new one", () => {
  const { pool, pass } = scripted();
  pool.prepare();
  pass(1_000);
  assertEquals(pool.take(wanting()).id, 1);
  assertEquals(pool.take(wanting("a.example:443")).id, 0);
  assertEquals(pool.take(wanting("a.example:443")).id, 2);
});

Deno.test("WarmPool.take() never gives a child to a module of another grant than it is ready for", () => {
  const { pool, pass } = scripted();
  for (let time = 0; time < 3; time++) pool.take(wanting("a.example:443"));
  pass(1_000);
  for (const hosts of [["b.example:443"], ["a.example"], ["a.example:443", "b.example:443"], []]) {
    const { ready } = pool.take(wanting(...hosts));
    assertEquals(ready === null || ready.join() === hosts.join(), true, hosts.join());
  }
});

Deno.test("WarmPool keeps a child ready for a grant that was requested", () => {
  const { pool, pass, alive } = scripted();
  pool.take(wanting("a.example:443"));
  pass(1_000);
  assertEquals(alive().includes("a.example:443"), true);
  assertEquals(pool.take(wanting("a.example:443")).ready, ["a.example:443"]);
});

Deno.test("WarmPool ends children of the grant that was not asked for longest", () => {
  const { pool, pass, alive } = scripted();
  for (const host of ["a", "b", "c"]) {
    pool.take(wanting(host)).kill();
    pass(1_000);
  }
  assertEquals(alive().toSorted(), ["any", "b", "c"]);
});

Deno.test("WarmPool ends children after an unused minute, and all when it is closed", async () => {
  const { pool, pass, alive } = scripted();
  pool.prepare();
  pass(1_000);
  pass(60_000);
  assertEquals(alive(), []);
  pool.prepare();
  pass(1_000);
  assertEquals(alive().length, 2);
  await pool.close();
  pool.prepare();
  pass(60_000);
  assertEquals(alive(), []);
});

Deno.test("WarmPool.take() gives no child that died while it waited", () => {
  const { pool, pass, started } = scripted();
  pool.prepare();
  pass(1_000);
  for (const child of started) child.alive = false;
  assertEquals(pool.take(wanting()).alive, true);
});

Deno.test("WarmPool.take() after the pool was closed starts a child, and no spare after it", async () => {
  const { pool, pass, started } = scripted();
  await pool.close();
  pool.take(wanting());
  pass(60_000);
  assertEquals(started.length, 1);
});

Deno.test("WarmPool.take() throws when no child can be started; a failed refill is silent", () => {
  const { pool, pass } = scripted(() => {
    throw new Error("no processes here");
  });
  pool.prepare();
  pass(1_000);
  assertThrows(() => pool.take(wanting()), Error, "no processes here");
});
