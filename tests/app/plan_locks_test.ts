/** Tests of finding a plan's lock. */
import { Locks } from "../../src/app/plan_locks.ts";
import { canonicalHash } from "../../src/sdk/digest.ts";
import type { JsonObject } from "../../src/sdk/json.ts";
import { assert, assertEquals, assertMatch } from "../assert.ts";
import { refusal } from "../support/plans.ts";
import { temporaryFolder } from "../support/folder.ts";

const A = `sha256-${"A".repeat(43)}=`;
const B = `sha256-${"A".repeat(42)}E=`;

function lockData(modules: Record<string, string>): JsonObject {
  return {
    version: 1,
    modules: Object.fromEntries(
      Object.entries(modules).map(([source, integrity]) => [source, { url: source, integrity }]),
    ),
    files: {},
  };
}

async function withFolder(test: (folder: string, base_url: string) => Promise<void>): Promise<void> {
  await using temporary = await temporaryFolder();
  const folder = temporary.path;
  await test(folder, `file://${folder}/plan.yaml`);
}

Deno.test("Locks finds no lock without a request's lock and a file", () =>
  withFolder(async (_, base_url) => {
    assertEquals(await new Locks().find(undefined, base_url), undefined);
    assertEquals(await new Locks().find(undefined, undefined), undefined);
    assertEquals(await new Locks().find(undefined, "https://x.example/plan.yaml"), undefined);
  }));

Deno.test("Locks reads the file beside the plan, and again when it changes", () =>
  withFolder(async (folder, base_url) => {
    const locks = new Locks();
    const file = `${folder}/plan.lock.json`;
    await Deno.writeTextFile(file, JSON.stringify(lockData({ "https://a.example/": A })));
    const first = await locks.find(undefined, base_url);
    assertEquals(first?.modules["https://a.example/"]?.integrity, A);
    assert(first === await locks.find(undefined, base_url)); // read once
    await Deno.writeTextFile(file, JSON.stringify(lockData({ "https://other.example/": B })));
    assertEquals(Object.keys((await locks.find(undefined, base_url))!.modules), ["https://other.example/"]);
    await Deno.remove(file);
    assertEquals(await locks.find(undefined, base_url), undefined);
  }));

Deno.test("Locks lets a request add to the operator's lock, but not remove or contradict entries", () =>
  withFolder(async (folder, base_url) => {
    await Deno.writeTextFile(
      `${folder}/plan.lock.json`,
      JSON.stringify(lockData({ "https://a.example/": A })),
    );
    const locks = new Locks();
    const found = await locks.find(lockData({ "https://b.example/": B }), base_url);
    assertEquals(Object.keys(found!.modules).toSorted(), ["https://a.example/", "https://b.example/"]);
    assertEquals(Object.keys((await locks.find(lockData({}), base_url))!.modules), ["https://a.example/"]);
    const error = await refusal(() => locks.find(lockData({ "https://a.example/": B }), base_url));
    assertEquals(error.code, "module_integrity_mismatch");
    assertMatch(error.message, /https:\/\/a\.example\//);
  }));

Deno.test("Locks refuses a lock file that cannot be read", () =>
  withFolder(async (folder, base_url) => {
    await Deno.writeTextFile(`${folder}/plan.lock.json`, "{");
    assertEquals((await refusal(() => new Locks().find(undefined, base_url))).code, "lock_invalid");
    assertEquals((await refusal(() => new Locks().find({ version: 2 }, undefined))).code, "lock_invalid");
  }));

Deno.test("the hash of a lock is the same whatever the order of its entries", async () => {
  const locks = new Locks();
  const one = await locks.find(lockData({ "https://a.example/": A, "https://b.example/": B }), undefined);
  const other = await locks.find(lockData({ "https://b.example/": B, "https://a.example/": A }), undefined);
  assertEquals(canonicalHash(one), canonicalHash(other));
});
