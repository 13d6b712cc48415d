/** What a store in a file does beyond the contract of all stores: it lasts, and it ends in order. */
import { FakeClock } from "../../src/testing/clocks.ts";
import type { Store } from "../../src/store/store.ts";
import { assert, assertEquals, assertRejects } from "../assert.ts";
import { inFolder } from "../support/folder.ts";
import { testLeaseClocks } from "./leases.ts";
import { testStore } from "./store.ts";

/** Clocks of a store. */
interface Clocks {
  now?: () => number;
  monotonic?: () => number;
}

/** Calls `body` with the path of a file in a new folder. */
export function withFile(body: (path: string) => Promise<void> | void): Promise<void> {
  return inFolder(async (folder) => await body(`${folder}/store.db`));
}

/** Calls `body` with an open store, and closes it. */
export async function using(opening: Promise<Store>, body: (store: Store) => Promise<void>): Promise<void> {
  const store = await opening;
  try {
    await body(store);
  } finally {
    await store.close();
  }
}

/** Registers the suites for one kind of store; `open` opens the store in a file. */
export function testFileStore(name: string, open: (path: string, clocks?: Clocks) => Promise<Store>): void {
  testStore(name, async () => {
    const clock = new FakeClock();
    const now = () => clock.now();
    const folder = await Deno.makeTempDir();
    const another = () => open(`${folder}/store.db`, { now, monotonic: now });
    const store = await another();
    const close = store.close.bind(store);
    store.close = async () => {
      await close();
      await Deno.remove(folder, { recursive: true });
    };
    return { store, advance: (ms) => clock.advance(ms), another };
  });

  testLeaseClocks(name, (body) => withFile((path) => body((now) => open(path, { now }))));

  const put = (key: string) => ({ put: { kind: "run", key, namespace: "a", value: { key } } });

  Deno.test(`${name} has what was committed after the file was closed and opened again`, () =>
    withFile(async (path) => {
      const entries = [1, 2, 3].map((seq) => ({ seq }));
      await using(open(path), async (store) => {
        await store.commit([put("x"), { append: "log", after: 0, entries }]);
        await store.heartbeat("me", 60_000);
        await store.acquire("lease", "me");
      });
      await using(open(path), async (store) => {
        assertEquals((await store.get("run", "x"))?.value, { key: "x" });
        assertEquals(await store.entries("log", 1, 10), [{ seq: 2 }, { seq: 3 }]);
        await store.heartbeat("you", 60_000);
        assert(await store.acquire("lease", "you") !== null); // it was closed in order
      });
    }));

  Deno.test(`${name} completes the calls that were made before close() and refuses later ones`, () =>
    withFile(async (path) => {
      const store = await open(path);
      await store.heartbeat("me", 60_000);
      await store.acquire("lease", "me");
      const calls = [
        ...Array.from({ length: 50 }, (_, n) => store.commit([put(`r${n}`)])),
        store.release("lease", "me"),
      ];
      const closed = store.close();
      await Promise.all(calls);
      await closed;
      await assertRejects(async () => await store.get("run", "r1"), Error, "it is closed");
      await using(open(path), async (again) => assert(await again.get("run", "r49")));
    }));
}
