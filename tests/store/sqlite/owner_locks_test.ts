/** Leases of processes that have died, and of those that live: no clock moves in these tests. */
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
        assertEquals(await one.acquire("lease", "one", 60_000), null);
        if (Deno.build.os !== "windows") {
          child.kill("SIGSTOP");
          assertEquals(await one.acquire("lease", "one", 60_000), null);
          child.kill("SIGCONT");
        }
        child.kill("SIGKILL");
        await child.status;
        assertEquals(await one.acquire("lease", "one", 60_000, false), null); // it waits for the expiry
        const tokens = await Promise.all([
          one.acquire("lease", "one", 60_000),
          two.acquire("lease", "two", 60_000),
        ]);
        assertEquals(tokens.filter((token) => token === null).length, 1); // one of them has it
        assertEquals(await one.renew("lease", "dead", 60_000), false);
        await one.close();
        await two.close();
      });
    }),
});

Deno.test("an owner whose file is missing, or that was never here, is not known to be gone", () =>
  inFolder(async (folder) => {
    const path = `${folder}/runs.db`;
    const [living, other] = [await open(path), await open(path)];
    assert(await living.acquire("lease", "living", 60_000) !== null);
    for await (const { name } of Deno.readDir(`${path}-owners`)) await Deno.remove(`${path}-owners/${name}`);
    assertEquals(await other.acquire("lease", "other", 60_000), null);
    await living.close();
    assertEquals(await other.acquire("lease", "other", 60_000), null); // it may be on another machine
    await other.close();
  }));

Deno.test("leases work where no file can be locked", () =>
  inFolder(async (folder) => {
    const path = `${folder}/runs.db`;
    await Deno.writeTextFile(`${path}-owners`, "no folder");
    const [one, two] = [await open(path), await open(path)];
    assert(await one.acquire("lease", "one", 60_000) !== null);
    assertEquals(await two.acquire("lease", "two", 60_000), null);
    await one.release("lease", "one");
    assert(await two.acquire("lease", "two", 60_000) !== null);
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
