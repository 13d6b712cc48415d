/** What models that were trained on `apply_patch` expect of it, one small folder for each case. */
import { type ToolResult, toToolResult } from "../../src/sdk/tools.ts";
import { TestCoordinator } from "preamp/testing";
import * as filesystem from "../../modules/tool-filesystem/mod.ts";
import { assert, assertEquals, assertMatch, assertRejects } from "../assert.ts";
import { temporaryFolder } from "../support/folder.ts";

type Files = Readonly<Record<string, string>>;

interface Case {
  readonly before: Files;
  /** File that was read before. */
  readonly read?: string;
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
  "adds over a file that was read": {
    before: { a: "old\n" },
    read: "a",
    patch: ["*** Add File: a", "+new"],
    after: { a: "new\n" },
  },
  "does not add over a file that was not read": {
    before: { a: "old\n" },
    patch: ["*** Add File: a", "+new"],
    after: /^a exists and was not read in this conversation/,
  },
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
  "does not move a file over one that was not read": {
    before: { a: "1\n", b: "other\n" },
    patch: ["*** Update File: a", "*** Move to: b"],
    after: /^b exists and was not read in this conversation/,
  },
  "moves a file over one that was read": {
    before: { a: "1\n", b: "other\n" },
    read: "b",
    patch: ["*** Update File: a", "*** Move to: b", "@@", "-1", "+2"],
    after: { b: "2\n" },
  },
  "moves a file without changes": {
    before: { a: "1\n" },
    patch: ["*** Update File: a", "*** Move to: b"],
    after: { b: "1\n" },
  },
  "moves a file with only context": {
    before: { a: "1\n2\n" },
    patch: ["*** Update File: a", "*** Move to: b", "@@", " 1"],
    after: { b: "1\n2\n" },
  },
  "refuses an update with only context": {
    before: { a: "1\n2\n" },
    patch: ["*** Update File: a", "@@", " 1"],
    after: /changes nothing in a/,
  },
  "leaves the end of a file without a newline": {
    before: { a: "1\n2" },
    patch: ["*** Update File: a", "@@", "-2", "+two"],
    after: { a: "1\ntwo" },
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
  "changes only the lines of its hunks, with the line ends of their place": {
    before: { a: "h\r\nb\nc\nd\ne" },
    patch: ["*** Update File: a", "@@", " b", "-c", "+C", "+D", " d"],
    after: { a: "h\r\nb\nC\nD\nd\ne" },
  },
  "keeps a byte order mark": {
    before: { a: "\ufeffone\ntwo\n" },
    patch: ["*** Update File: a", "@@", "-one", "+1", " two"],
    after: { a: "\ufeff1\ntwo\n" },
  },
  "keeps context lines as the file has them, and fits new ones to their indentation": {
    before: { a: "def f():\n\tif x:\n\t\ta()\n\tb()\n" },
    patch: [
      "*** Update File: a",
      "@@",
      " def f():",
      "     if x:",
      "-        a()",
      "+        a(1)",
      "     b()",
    ],
    after: { a: "def f():\n\tif x:\n\t\ta(1)\n\tb()\n" },
  },
  "leaves out blank lines between its parts": {
    before: { a: "1\n2\n3\n", b: "1\n", c: "x\n" },
    patch: [
      "",
      "*** Update File: a",
      "",
      "@@",
      "-1",
      "+one",
      "",
      "@@",
      "-3",
      "+three",
      "",
      "*** Delete File: c",
      "",
      "*** Add File: d",
      "+d",
      "",
      "+e",
      "",
      "*** Update File: b",
      "-1",
      "+2",
      "",
    ],
    after: { a: "one\n2\nthree\n", b: "2\n", d: "d\n\ne\n" },
  },
  "deletes the last line, and adds one to a file without a newline": {
    before: { a: "1\n2", b: "1" },
    patch: ["*** Update File: a", "@@", " 1", "-2", "*** Update File: b", "@@", "+2"],
    after: { a: "1\n", b: "1\n2" },
  },
  "fills an empty file, and empties one": {
    before: { a: "", b: "1\n" },
    patch: ["*** Update File: a", "@@", "+1", "*** Update File: b", "@@", "-1"],
    after: { a: "1\n", b: "" },
  },
  "takes the lines of repeated context that only one order allows": {
    before: { a: "a\nb\na\nb\n" },
    patch: ["*** Update File: a", "@@", " a", "-b", "+1", "@@", " a", "-b", "+2"],
    after: { a: "a\n1\na\n2\n" },
  },
  "takes the lines after the line of @@": {
    before: { a: "f\n x\ng\n x\nh\n x\n" },
    patch: ["*** Update File: a", "@@ -3,2 +3,2 @@ g", "- x", "+ y"],
    after: { a: "f\n x\ng\n y\nh\n x\n" },
  },
  "deletes one of equal lines": {
    before: { a: "x\nx\nx\n" },
    patch: ["*** Update File: a", "@@", "-x"],
    after: { a: "x\nx\n" },
  },
  "refuses lines that are there twice": {
    before: { a: "a\nb\n-\na\nb\n" },
    patch: ["*** Update File: a", "@@", " a", "-b", "+1"],
    after: /more than once \(such as at lines 1 and 4\)/,
  },
  "refuses lines whose @@ line is there twice": {
    before: { a: "f\n x\nf\n x\n" },
    patch: ["*** Update File: a", "@@ f", "- x", "+ y"],
    after: /more than once/,
  },
  "refuses an indentation that is not certain": {
    before: { a: "\tf()\n\t\tg()\n" },
    patch: ["*** Update File: a", "@@", " f()", "-  g()", "+      h()"],
    after: /which indentation this line has in the file is not certain/,
  },
  "refuses a file below another one": {
    before: { a: "1\n" },
    patch: ["*** Update File: a", "-1", "+2", "*** Add File: x", "+1", "*** Add File: x/y", "+2"],
    after: /x\/y and x cannot both be files/,
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

for (const [name, { before, read, patch, after }] of Object.entries(CASES)) {
  Deno.test(`apply_patch ${name}`, () =>
    withPatches(async ({ folder, read: readFile, apply }) => {
      for (const [path, text] of Object.entries(before)) {
        await Deno.mkdir(`${folder}/${path}`.replace(/\/[^/]*$/, ""), { recursive: true });
        await Deno.writeTextFile(`${folder}/${path}`, text);
      }
      if (read !== undefined) await readFile(read);
      const result = await apply(...patch);
      if (after instanceof RegExp) {
        assert(!result.success, String(result.output));
        assertMatch(String(result.error?.message), after);
      } else assert(result.success, String(result.output));
      assertEquals(await filesIn(folder), after instanceof RegExp ? before : after);
    }));
}

interface Patches {
  readonly folder: string;
  read(path: string): Promise<void>;
  apply(...lines: string[]): Promise<ToolResult>;
}

async function withPatches(use: (patches: Patches) => Promise<void>): Promise<void> {
  await using folder = await temporaryFolder();
  const coordinator = new TestCoordinator({ permissions: { read: [folder.path], write: [folder.path] } });
  await filesystem.mount(coordinator, { dialect: "patch" });
  await use({
    folder: folder.path,
    async read(path) {
      await coordinator.tools.read!.execute({ path });
    },
    apply: async (...lines) => {
      const patch = ["*** Begin Patch", ...lines, "*** End Patch"].join("\n");
      return toToolResult(await coordinator.tools.apply_patch!.execute({ patch }));
    },
  });
}

Deno.test("apply_patch deletes and moves links themselves, files that are no text, and keeps modes", () =>
  withPatches(async ({ folder, apply }) => {
    const mode = async (name: string) => (await Deno.lstat(`${folder}/${name}`)).mode! & 0o7777;
    await Deno.writeTextFile(`${folder}/rules.md`, "rules\n");
    for (const name of ["one.md", "two.md", "dangling"]) {
      await Deno.symlink(name === "dangling" ? "none" : "rules.md", `${folder}/${name}`);
    }
    await Deno.writeFile(`${folder}/a.png`, new Uint8Array([0x89, 0x50, 0, 0xff]));
    await Deno.writeFile(`${folder}/b.png`, new Uint8Array([0x89, 0x50, 0, 0xff]), { mode: 0o640 });
    await Deno.writeTextFile(`${folder}/run.sh`, "#!/bin/sh\necho 1\n", { mode: 0o755 });
    const result = await apply(
      "*** Delete File: one.md",
      "*** Update File: two.md",
      "*** Move to: three.md",
      "*** Delete File: dangling",
      "*** Delete File: a.png",
      "*** Update File: b.png",
      "*** Move to: img/b.png",
      "*** Update File: run.sh",
      "*** Move to: bin/run.sh",
      "-echo 1",
      "+echo 2",
    );
    assertMatch(String(result.output), /^Deleted the link one\.md\nMoved two\.md to three\.md\n/);
    const names = await Array.fromAsync(Deno.readDir(folder), ({ name }) => name);
    assertEquals(names.sort(), ["bin", "img", "rules.md", "three.md"]);
    assertEquals(await Deno.readLink(`${folder}/three.md`), "rules.md");
    assertEquals([await mode("img/b.png"), await mode("bin/run.sh")], [0o640, 0o755]);
    // a change through a link leaves the link
    await apply("*** Update File: three.md", "-rules", "+more rules");
    assertEquals(await Deno.readTextFile(`${folder}/rules.md`), "more rules\n");
    assert((await Deno.lstat(`${folder}/three.md`)).isSymlink);
    assertMatch(
      JSON.stringify(await apply("*** Update File: three.md", "*** Move to: four.md", "-more rules", "+x")),
      /three\.md is a link: change the file that it leads to/,
    );
  }));

Deno.test("apply_patch takes back all files when the disk refuses one of them", () =>
  withPatches(async ({ folder, read, apply }) => {
    await Deno.writeTextFile(`${folder}/a.sh`, "1\n", { mode: 0o755 });
    await Deno.link(`${folder}/a.sh`, `${folder}/other name`);
    for (const name of ["moved", "gone", "over"]) await Deno.writeTextFile(`${folder}/${name}`, `${name}\n`);
    await Deno.symlink("gone", `${folder}/link`);
    await read("over");
    const stateOf = async () => {
      const names = (await Array.fromAsync(Deno.readDir(folder), ({ name }) => name)).sort();
      return await Promise.all(names.map(async (name) => {
        const { ino, mode, mtime } = await Deno.lstat(`${folder}/${name}`);
        return { name, ino, mode, mtime };
      }));
    };
    const before = await stateOf();
    const patch = [
      ...["*** Update File: a.sh", "-1", "+2"],
      ...["*** Delete File: gone", "*** Delete File: link"],
      ...["*** Update File: moved", "*** Move to: over"],
      ...["*** Add File: new/deep/file", "+x"],
    ];
    const name = "n".repeat(300); // longer than a name may be
    await assertRejects(() => apply(...patch, `*** Add File: ${name}`, "+x"), Error);
    assertEquals(await stateOf(), before);
    // the last change fails when the others are made already: its folder is gone
    const rename = Deno.rename;
    let left = 0;
    for (let steps = 1;; steps++) {
      left = steps;
      Deno.rename = async (from, to) => {
        if (left-- === 0) throw new Deno.errors.PermissionDenied("the disk");
        await rename(from, to);
      };
      const result = await apply(...patch).finally(() => Deno.rename = rename);
      if (result.success) break;
      assertMatch(String(result.output), /the operating system does not permit it/);
      assertEquals(await stateOf(), before);
      assert(steps < 20);
    }
    assertEquals(await Deno.readTextFile(`${folder}/over`), "moved\n");
  }));

async function filesIn(folder: string, prefix = ""): Promise<Record<string, string>> {
  const files: Record<string, string> = {};
  for await (const { name, isDirectory } of Deno.readDir(`${folder}/${prefix}`)) {
    if (isDirectory) Object.assign(files, await filesIn(folder, `${prefix}${name}/`));
    else files[prefix + name] = await Deno.readTextFile(`${folder}/${prefix}${name}`);
  }
  return files;
}
