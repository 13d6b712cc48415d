/** What models that were trained on `apply_patch` expect of it, one small folder for each case. */
import type { JsonObject } from "preamp";
import { TestCoordinator } from "preamp/testing";
import * as filesystem from "../../modules/tool-filesystem/mod.ts";
import { assert, assertEquals, assertMatch } from "../assert.ts";
import { temporaryFolder } from "../support/folder.ts";

type Files = Readonly<Record<string, string>>;

interface Case {
  readonly before: Files;
  /** Lines between the markers. */
  readonly patch: readonly string[];
  /** The files after it, or what the failure says; then no file has changed. */
  readonly after: Files | RegExp;
}

const CASES: Readonly<Record<string, Case>> = {
  "adds a file": {
    before: {},
    patch: ["*** Add File: a/b.txt", "+one", "+two"],
    after: { "a/b.txt": "one\ntwo\n" },
  },
  "adds over a file": { before: { a: "old\n" }, patch: ["*** Add File: a", "+new"], after: { a: "new\n" } },
  "adds, changes and deletes": {
    before: { a: "1\n2\n", gone: "x\n" },
    patch: ["*** Add File: b", "+b", "*** Delete File: gone", "*** Update File: a", "@@", "-2", "+two"],
    after: { a: "1\ntwo\n", b: "b\n" },
  },
  "changes several parts in order": {
    before: { a: "1\n2\n3\n4\n" },
    patch: ["*** Update File: a", "@@", "-2", "+two", "@@", "-4", "+four"],
    after: { a: "1\ntwo\n3\nfour\n" },
  },
  "appends, and changes a part before that": {
    before: { a: "1\n2\n" },
    patch: ["*** Update File: a", "@@", "+3", "@@", "-1", "+one"],
    after: { a: "one\n2\n3\n" },
  },
  "only adds lines": {
    before: { a: "1\n" },
    patch: ["*** Update File: a", "@@", "+2", "+3"],
    after: { a: "1\n2\n3\n" },
  },
  "only deletes lines": {
    before: { a: "1\n2\n3\n" },
    patch: ["*** Update File: a", "@@", " 1", "-2", " 3"],
    after: { a: "1\n3\n" },
  },
  "moves a file into a new folder": {
    before: { "old/a": "1\n", "old/b": "b\n" },
    patch: ["*** Update File: old/a", "*** Move to: new/deep/a", "@@", "-1", "+2"],
    after: { "new/deep/a": "2\n", "old/b": "b\n" },
  },
  "moves a file over another one": {
    before: { a: "1\n", b: "other\n" },
    patch: ["*** Update File: a", "*** Move to: b", "@@", "-1", "+2"],
    after: { b: "2\n" },
  },
  "moves a file without changes": {
    before: { a: "1\n" },
    patch: ["*** Update File: a", "*** Move to: b"],
    after: { b: "1\n" },
  },
  "ends a file with a newline": {
    before: { a: "1\n2" },
    patch: ["*** Update File: a", "@@", "-2", "+two"],
    after: { a: "1\ntwo\n" },
  },
  "changes the end of a file": {
    before: { a: "x\ny\nx\n" },
    patch: ["*** Update File: a", "@@", "-x", "+end", "*** End of File"],
    after: { a: "x\ny\nend\n" },
  },
  "changes text beyond ASCII": {
    before: { a: "naïve – ☕\n" },
    patch: ["*** Update File: a", "@@", "-naïve – ☕", "+ok ✓"],
    after: { a: "ok ✓\n" },
  },
  "takes headers with white space around them": {
    before: { a: "1\n", b: "x\n" },
    patch: ["  *** Delete File: b  ", "  *** Update File: a ", "@@", "-1", "+2"],
    after: { a: "2\n" },
  },
  "keeps a line of the file that looks like a header": {
    before: { a: "*** Delete File: b\n1\n", b: "x\n" },
    patch: ["*** Update File: a", "@@", " *** Delete File: b", "-1", "+2"],
    after: { a: "*** Delete File: b\n2\n", b: "x\n" },
  },
  "refuses an empty patch": { before: { a: "1\n" }, patch: [], after: /names no file/ },
  "refuses an update without changes": {
    before: { a: "1\n" },
    patch: ["*** Update File: a"],
    after: /changes nothing in a/,
  },
  "refuses lines that are not there": {
    before: { a: "1\n" },
    patch: ["*** Update File: a", "@@", "-9", "+2"],
    after: /does not match a/,
  },
  "refuses to delete a missing file": {
    before: { a: "1\n" },
    patch: ["*** Delete File: b"],
    after: /b does not exist/,
  },
  "refuses to delete a folder": {
    before: { "d/a": "1\n" },
    patch: ["*** Delete File: d"],
    after: /d is a folder/,
  },
  "refuses to update a missing file": {
    before: {},
    patch: ["*** Update File: b", "@@", "-1", "+2"],
    after: /b does not exist/,
  },
  "refuses an unknown header": {
    before: { a: "1\n" },
    patch: ["*** Rename File: a"],
    after: /Line 2 of the patch must be/,
  },
  "changes nothing when a later part fails": {
    before: { a: "1\n" },
    patch: ["*** Add File: new", "+x", "*** Update File: missing", "@@", "-1", "+2"],
    after: /missing does not exist/,
  },
  "refuses a file twice": {
    before: { a: "1\n2\n" },
    patch: ["*** Update File: a", "@@", "-1", "+x", "*** Update File: a", "@@", "-2", "+y"],
    after: /changed twice/,
  },
};

for (const [name, { before, patch, after }] of Object.entries(CASES)) {
  Deno.test(`apply_patch ${name}`, async () => {
    await using folder = await temporaryFolder();
    for (const [path, text] of Object.entries(before)) {
      await Deno.mkdir(`${folder.path}/${path}`.replace(/\/[^/]*$/, ""), { recursive: true });
      await Deno.writeTextFile(`${folder.path}/${path}`, text);
    }
    const coordinator = new TestCoordinator({ permissions: { read: [folder.path], write: [folder.path] } });
    await filesystem.mount(coordinator, { dialect: "patch" });
    const input = { patch: ["*** Begin Patch", ...patch, "*** End Patch"].join("\n") };
    const result = await coordinator.tools.apply_patch!.execute(input) as string | JsonObject;
    if (after instanceof RegExp) {
      assert(typeof result !== "string", String(result));
      assertMatch(JSON.stringify(result.error), after);
    } else assert(typeof result === "string", JSON.stringify(result));
    assertEquals(await filesIn(folder.path), after instanceof RegExp ? before : after);
  });
}

async function filesIn(folder: string, prefix = ""): Promise<Record<string, string>> {
  const files: Record<string, string> = {};
  for await (const { name, isDirectory } of Deno.readDir(`${folder}/${prefix}`)) {
    if (isDirectory) Object.assign(files, await filesIn(folder, `${prefix}${name}/`));
    else files[prefix + name] = await Deno.readTextFile(`${folder}/${prefix}${name}`);
  }
  return files;
}
