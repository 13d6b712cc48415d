import fc from "fast-check";
import { walkFiles } from "../../../modules/files/walk.ts";
import { assert, assertEquals } from "../../assert.ts";
import { inFolder } from "../../support/folder.ts";

async function write(folder: string, files: Record<string, string>): Promise<void> {
  for (const [name, content] of Object.entries(files)) {
    await Deno.mkdir(`${folder}/${name}`.replace(/\/[^/]*$/, ""), { recursive: true });
    await Deno.writeTextFile(`${folder}/${name}`, content);
  }
}

async function filesIn(folder: string, root = folder): Promise<string[]> {
  const found: string[] = [];
  await walkFiles(folder, ({ relative }) => void found.push(relative), { root });
  return found;
}

Deno.test("walkFiles() leaves out what git ignores: nested, negated, with case, and by info/exclude", () =>
  inFolder(async (folder) => {
    await write(folder, {
      ".git/info/exclude": "local.txt\n",
      ".gitignore": "\ufeffBuild/\r\n*.LOG\r\n*.tmp\n!keep.tmp\n/top.txt\n[z-a]\n",
      "build/a.ts": "",
      "Build/b.ts": "",
      "a.log": "",
      "a.LOG": "",
      "a.tmp": "",
      "keep.tmp": "",
      "top.txt": "",
      "sub/.gitignore": "!a.tmp\nkeep.tmp\n",
      "sub/a.tmp": "",
      "sub/keep.tmp": "",
      "sub/top.txt": "",
      "local.txt": "",
    });
    assertEquals(await filesIn(folder), [
      ".gitignore",
      "a.log",
      "build/a.ts",
      "keep.tmp",
      "sub/.gitignore",
      "sub/a.tmp",
      "sub/top.txt",
    ]);
  }));

Deno.test("walkFiles() lets .ignore decide before .gitignore, and ends git's rules at another repository", () =>
  inFolder(async (folder) => {
    await write(folder, {
      ".gitignore": "*.log\nvendor.txt\n",
      ".ignore": "!a.log\ndata\n",
      "a.log": "",
      "b.log": "",
      "data/x": "",
      "vendor/.git/HEAD": "",
      "vendor/b.log": "",
      "vendor/vendor.txt": "",
      "vendor/data/x": "",
    });
    assertEquals(await filesIn(folder), [
      ".gitignore",
      ".ignore",
      "a.log",
      "vendor/b.log",
      "vendor/vendor.txt",
    ]);
  }));

Deno.test("walkFiles() says what it left out", () =>
  inFolder(async (folder) => {
    await write(folder, { ".gitignore": "out/\n*.tmp\n", "out/a": "", "b.tmp": "", "c": "" });
    await Deno.symlink("/etc", `${folder}/link`);
    const left_out = await walkFiles(folder, () => {});
    assertEquals({ ...left_out, folders: left_out.folders.map(({ relative }) => relative) }, {
      folders: ["out"],
      files: [{ path: `${folder}/b.tmp`, relative: "b.tmp" }],
      links: 1,
      unreadable: 0,
    });
  }));

const HAS_GIT = await new Deno.Command("git", { args: ["--version"], stdout: "null" }).output()
  .then(({ success }) => success, () => false);

// without é: git compares its bytes, as if they were characters
const name = fc.constantFrom("a", "b", "A", "ab", "b.c", "[a]", "a b", ".a", "#a", "!b", "a*");
const paths = fc.array(fc.array(name, { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 8 });
const word = fc.constantFrom(
  "a",
  "b",
  "A",
  "*",
  "**",
  "a*",
  "?",
  "[ab]",
  "[!a]",
  "*.c",
  "\\#a",
  "\\!b",
  ".a",
  "[a]",
  "a\\*",
  "\\[a]",
);
const rule = fc.tuple(
  fc.constantFrom("", "", "", "!", "/", "!/", "**/", "#"),
  fc.array(word, { minLength: 1, maxLength: 3 }),
  fc.constantFrom("", "", "/", "/**", " ", "\\ "),
).map(([before, words, after]) => before + words.join("/") + after);
const rules = fc.array(rule, { maxLength: 5 });

Deno.test({
  name: "walkFiles() finds the files that git does not ignore, for any rules and names",
  ignore: !HAS_GIT,
  fn: () =>
    fc.assert(
      fc.asyncProperty(paths, rules, rules, (files, top, nested) =>
        inFolder(async (folder) => {
          for (const path of files) {
            await write(folder, { [path.join("/")]: "" }).catch(() => {}); // a file is in the place of a folder
          }
          await write(folder, { ".gitignore": top.join("\n"), "a/.gitignore": nested.join("\n") }).catch(
            () => {},
          );
          const git = async (...args: string[]) => {
            const { stdout, success } = await new Deno.Command("git", {
              args,
              cwd: folder,
              env: { GIT_CONFIG_GLOBAL: "/dev/null", GIT_CONFIG_NOSYSTEM: "1" },
            }).output();
            assert(success, args.join(" "));
            return new TextDecoder().decode(stdout);
          };
          await git("init", "-q");
          const known = await git("ls-files", "-z", "--others", "--exclude-standard");
          assertEquals(
            (await filesIn(folder)).sort(),
            known.split("\0").filter((path) => path !== "").sort(),
          );
        })),
      { numRuns: 50 },
    ),
});
