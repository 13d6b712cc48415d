/** Leases of processes that have died, and of those that live: no clock moves in these tests. */
import { DatabaseSync } from "node:sqlite";
import { openSqliteStore } from "../../../src/store/sqlite/sqlite_store.ts";
import { OwnerLocks } from "../../../src/store/sqlite/owner_locks.ts";
import { assert, assertEquals } from "../../assert.ts";
import { endChild } from "../../support/child_process.ts";
import { inFolder } from "../../support/folder.ts";

/** Opens a store whose clocks stand still, so that no lease of it expires. */
const open = (path: string) => openSqliteStore(path, { now: () => 1, monotonic: () => 1 });

/** Starts a process that has the lease, and calls `test`; ends the process afterwards. */
async function withOwner(path: string, test: (child: Deno.ChildProcess) => Promise<void>): Promise<void> {
  const script = new URL("../lease_owner.ts", import.meta.url);
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "--no-check", "--allow-read", "--allow-write", "--allow-env", script.href, path, "dead"],
    stdout: "piped",
  }).spawn();
  const said = child.stdout.getReader();
  try {
    await said.read(); // the lease is acquired
    await test(child);
  } finally {
    endChild(child, "SIGKILL");
    await said.cancel();
    await child.status;
  }
}

Deno.test({
  name: "the lease of a killed process is free at once; that of a living or stopped process is not",
  fn: () =>
    inFolder(async (folder) => {
      const path = `${folder}/runs.db`;
      await withOwner(path, async (child) => {
        const [one, two] = [await open(path), await open(path)];
        const find = async () => (await one.heartbeat("one", 60_000)).deaths;
        await two.heartbeat("two", 60_000);
        assertEquals([await find(), await one.acquire("lease", "one")], [false, null]);
        if (Deno.build.os !== "windows") {
          child.kill("SIGSTOP");
          assertEquals([await find(), await one.acquire("lease", "one")], [false, null]);
          child.kill("SIGCONT");
        }
        child.kill("SIGKILL");
        await child.status;
        assertEquals([await find(), await one.free(["lease"])], [true, ["lease"]]);
        assertEquals(await one.acquire("lease", "one", false), null); // until its time is over
        const tokens = await Promise.all([one.acquire("lease", "one"), two.acquire("lease", "two")]);
        assertEquals(tokens.filter((token) => token === null).length, 1); // one of them has it
        assertEquals((await one.heartbeat("dead", 60_000)).lives, false);
        await one.close();
        await two.close();
      });
    }),
});

Deno.test("an owner whose file is missing, or that was never here, is not known to be gone", () =>
  inFolder(async (folder) => {
    const path = `${folder}/runs.db`;
    const [living, other] = [await open(path), await open(path)];
    await living.heartbeat("living", 60_000);
    assert(await living.acquire("lease", "living") !== null);
    for await (const { name } of Deno.readDir(`${path}-owners`)) await Deno.remove(`${path}-owners/${name}`);
    assertEquals((await other.heartbeat("other", 60_000)).deaths, false); // it may be on another machine
    assertEquals(await other.acquire("lease", "other"), null);
    await living.close(); // it says so
    assertEquals((await other.heartbeat("other", 60_000)).deaths, true);
    assert(await other.acquire("lease", "other") !== null);
    await other.close();
  }));

Deno.test("leases work where no file can be locked", () =>
  inFolder(async (folder) => {
    const path = `${folder}/runs.db`;
    await Deno.writeTextFile(`${path}-owners`, "no folder");
    const [one, two] = [await open(path), await open(path)];
    for (const [store, name] of [[one, "one"], [two, "two"]] as const) await store.heartbeat(name, 60_000);
    assert(await one.acquire("lease", "one") !== null);
    assertEquals(await two.acquire("lease", "two"), null);
    await one.release("lease", "one");
    assert(await two.acquire("lease", "two") !== null);
    await one.close();
    await two.close();
  }));

Deno.test({
  name: "files of owners that ended are deleted: at once when they close, after a day when they died",
  fn: () =>
    inFolder(async (folder) => {
      const names = async () => (await Array.fromAsync(Deno.readDir(folder), ({ name }) => name)).sort();
      for (const name of ["young", "old"]) await Deno.writeTextFile(`${folder}/${name}`, "");
      await Deno.utime(`${folder}/old`, 1, 1);
      const locks = new OwnerLocks(folder);
      await locks.hold("living/1");
      await Deno.utime(`${folder}/living%2F1`, 1, 1);
      const other = new OwnerLocks(folder);
      await other.hold("other");
      assertEquals(await names(), ["living%2F1", "other", "young"]);
      assertEquals(await Promise.all(["young", "living/1", "old"].map((name) => other.isGone(name))), [
        ...[true, false, false],
      ]);
      await locks.close();
      await other.close();
      assertEquals(await names(), ["young"]);
    }),
});

Deno.test({
  name: "beside the program before this one: neither takes a lease of the other while that lives",
  fn: () =>
    inFolder(async (folder) => {
      const path = `${folder}/runs.db`;
      let now_ms = 1_000_000;
      const store = await openSqliteStore(path, { now: () => now_ms, monotonic: () => now_ms });
      await store.heartbeat("new", 5_000);
      await store.acquire("lease of new", "new");
      const file = new DatabaseSync(path);
      const rows = () => file.prepare("SELECT name, owner, until_ms FROM leases ORDER BY name").all();
      const before = rows();
      now_ms += 1_000;
      await store.heartbeat("new", 5_000);
      assertEquals([before, rows()].map(([row]) => row?.until_ms), [1_005_000, 1_006_000]); // it looks for that

      await Deno.mkdir(`${path}-owners`, { recursive: true });
      const old = new OwnerLocks(`${path}-owners`);
      await old.hold("old");
      file.exec("INSERT INTO leases VALUES ('lease of old', 'old', 100, 1000000)");
      now_ms += 60_000; // it may stand still
      await store.heartbeat("new", 5_000);
      assertEquals([await store.free(["lease of old"]), await store.acquire("lease of old", "new")], [
        [],
        null,
      ]);
      file.exec("INSERT INTO leases VALUES ('lease of dead', 'dead', 101, 1000000)");
      await Deno.writeTextFile(`${path}-owners/dead`, ""); // unlocked
      assertEquals(await store.free(["lease of dead"]), ["lease of dead"]);
      assert(await store.acquire("lease of dead", "new") !== null);
      file.close();
      await old.close();
      await store.close();
    }),
});
