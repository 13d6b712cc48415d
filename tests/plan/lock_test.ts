import {
  formatLock,
  lockedName,
  lockedSource,
  lockFromData,
  lockOf,
  parseLock,
} from "../../src/plan/lock.ts";
import { isIntegrity } from "../../src/plan/check/check_spec.ts";
import { parseSource } from "../../src/plan/source/source.ts";
import { assertEquals, assertMatch } from "../assert.ts";
import { detailAt, refusal } from "../support/plans.ts";

const INTEGRITY = `sha256-${"A".repeat(43)}=`;
const SHA = "0".repeat(64);
const GOOD = {
  version: 1,
  modules: { "https://h/mod.ts": { url: "https://h/mod.ts", integrity: INTEGRITY } },
  files: { "https://h/mod.ts": { sha256: SHA, bytes: 3 } },
};

Deno.test("parseLock() reads what formatLock() writes, in one order", async () => {
  const source = { kind: "url", url: "https://h/b.ts", original: "https://h/b.ts" } as const;
  const graphs = ["https://h/b.ts", "https://h/a.ts"].map((url) => ({
    source: { ...source, url, original: url },
    url,
    integrity: INTEGRITY,
    files: [{ url, sha256: SHA, bytes: 1 }, { url: "https://h/shared.ts", sha256: SHA, bytes: 2 }],
  }));
  const text = formatLock(lockOf(graphs));
  assertEquals(formatLock(lockOf(graphs.toReversed())), text);
  const lock = await parseLock(text);
  assertEquals(Object.keys(lock.files), ["https://h/a.ts", "https://h/b.ts", "https://h/shared.ts"]);
  assertEquals(formatLock(lock), text);
});

Deno.test("parseLock() refuses a broken lock with line and column of each finding", async () => {
  const text =
    `{"version": 2,\n "modules": {"m": {"url": "no url\\u0000://", "integrity": "md5-x"}},\n "files": {"f": {"sha256": "AB", "bytes": -1}}}`;
  const error = await refusal(() => parseLock(text, { name: "plan.lock.json" }));
  assertEquals(error.code, "lock_invalid");
  assertEquals([detailAt(error, "version").line, detailAt(error, "version").column], [1, 2]);
  assertMatch(detailAt(error, "modules.m.integrity").message, /must be "sha256-"/);
  assertEquals(detailAt(error, "files.f.sha256").line, 3);
  assertMatch(detailAt(error, "files.f.bytes").message, /at least 0/);
});

for (
  const [what, text] of Object.entries({
    "no JSON": "{",
    "a key twice": `{"version": 1, "modules": {}, "modules": {}, "files": {}}`,
    "a forbidden key": `{"version": 1, "modules": {"__proto__": {}}, "files": {}}`,
    "no modules": `{"version": 1, "files": {}}`,
    "a list": "[]",
  })
) {
  Deno.test(`parseLock() refuses ${what}`, async () => {
    assertEquals((await refusal(() => parseLock(text))).code, "lock_invalid");
  });
}

Deno.test("lockFromData() accepts the lock of a request, also with keys of later versions", async () => {
  const lock = lockFromData({ ...GOOD, generated_by: "later" });
  assertEquals(lock.modules["https://h/mod.ts"]?.integrity, INTEGRITY);
  assertEquals(Object.hasOwn(lock.modules, "constructor"), false);
  assertEquals((await refusal(() => lockFromData({ version: 1 }))).code, "lock_invalid");
});

Deno.test("isIntegrity() accepts sha256 in standard base64 only", () => {
  assertEquals(isIntegrity(INTEGRITY), true);
  for (
    const text of [
      "sha256-",
      `sha512-${"A".repeat(43)}=`,
      `sha256-${"A".repeat(44)}`,
      `sha256-${"A".repeat(42)}B=`,
      `sha256-${"-".repeat(43)}=`,
    ]
  ) {
    assertEquals(isIntegrity(text), false, text);
  }
});

Deno.test("lockedName() names files relative to the plan, and does not change other URLs", () => {
  const base = "file:///srv/agents/plan.yaml";
  assertEquals(lockedName("file:///srv/agents/tools/a.ts", base), "./tools/a.ts");
  assertEquals(lockedName("file:///srv/lib/a.ts", base), "../lib/a.ts");
  assertEquals(lockedName("file:///srv/agents/a.ts", undefined), "file:///srv/agents/a.ts");
  assertEquals(lockedName("https://h/a.ts", base), "https://h/a.ts");
});

Deno.test("lockedSource() differs for two refs of one repository", () => {
  const sourceOf = (value: unknown) => {
    const parsed = parseSource(value);
    if (!("source" in parsed)) throw new Error(parsed.problem);
    return lockedSource(parsed.source);
  };
  const git = { type: "git", url: "https://github.com/o/r" };
  assertEquals(sourceOf({ ...git, ref: "v1" }) === sourceOf({ ...git, ref: "v2" }), false);
  assertEquals(sourceOf("git+https://github.com/o/r@v1"), "git+https://github.com/o/r@v1");
  assertEquals(sourceOf("https://h/"), "https://h/");
});
