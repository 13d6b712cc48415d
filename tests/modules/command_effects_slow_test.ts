/**
 * What Bash, sed and awk really do with random words, compared with what `commandsOf()` says: a word that
 * runs a program, or writes a file, is never taken for a harmless one.
 */
import fc from "fast-check";
import { commandsOf } from "../../modules/hooks-approval/commands.ts";
import { assert, assertEquals } from "../assert.ts";
import { propertyOptions } from "../support/cases.ts";
import { temporaryFolder } from "../support/folder.ts";

/** Words that a builtin may evaluate again: each runs the program `aa` when it is. */
const WORDS: readonly string[] = [
  ...[
    "",
    "x ",
    "-v ",
    "-p ",
    "-a ",
    "-n ",
    "-R ",
    "-d ",
    "-t ",
    "-u ",
    "-N 1 ",
    "-r ",
    "-s ",
    "-o ",
    "-l ",
    "-- ",
    "! -v ",
  ]
    .map((before) => `${before}'a[$(aa)]'`),
  ...[
    "-v'a[$(aa)]'",
    "-vx 'a[$(aa)]'",
    "-v 'a[$(aa)]' x",
    "'a[$(aa)]' = x",
    "'a[$(aa)]' -eq 1",
    "1 -eq 'a[$(aa)]'",
  ],
  ...[
    "-v 'a[$(aa)]' ]",
    "1 = 1 -a -v 'a[$(aa)]'",
    "'a[$(aa)]' ]",
    "abc 'a[$(aa)]'",
    "abc 'a[$(aa)]' -a",
    "%d 'a[$(aa)]'",
  ],
  ...[
    "'x[$(aa)]=1'",
    "-i 'x=a[$(aa)]'",
    "-a 'x[$(aa)]=1'",
    "-g 'x=1'",
    "-ai 'x=a[$(aa)]'",
    "-n 'x=a[$(aa)]'",
  ],
  ...[
    "aa",
    "-C aa",
    "-F aa",
    "-f aa",
    "-e aa",
    "-c aa",
    "-x aa",
    "-p ./bin/aa zz",
    "-C aa x",
    "-c 1 -C aa x",
    "-W '$(aa)' x",
  ],
];

Deno.test("commandsOf() knows every builtin of Bash that evaluates its words", async () => {
  await using temporary = await temporaryFolder();
  const folder = temporary.path;
  await Deno.mkdir(`${folder}/bin`);
  await Deno.writeTextFile(`${folder}/bin/aa`, `#!/bin/sh\n: > ${folder}/ran\n`, { mode: 0o755 });
  const script = `for builtin in $(compgen -b); do
    case $builtin in exit|logout|suspend|exec|fg|.|source|eval|command|builtin|trap) continue;; esac
    while IFS= read -r words; do
      (eval "$builtin $words") > /dev/null 2>&1 <<< 1
      [ -e ran ] && { rm ran; printf '%s\\n' "$builtin $words"; }
    done < words
  done`;
  await Deno.writeTextFile(`${folder}/words`, WORDS.map((words) => `${words}\n`).join(""));
  const { stdout } = await new Deno.Command("bash", {
    args: ["-c", script],
    cwd: folder,
    env: { PATH: `${folder}/bin:/usr/bin:/bin` },
    clearEnv: true,
    stdin: "null",
    stderr: "null",
  }).output();
  const ran = new TextDecoder().decode(stdout).split("\n").filter((command) => command !== "");
  assert(ran.length > 20 && ran.includes("test -v 'a[$(aa)]'"), ran.join("\n"));
  assertEquals(ran.filter((command) => commandsOf({ command }, 1)?.every((words) => words !== null)), []);
});

/** Asserts that a program leaves its folder as it is whenever its words are taken for harmless ones. */
async function assertHarmless(program: string, pieces: readonly string[], sure: string): Promise<void> {
  await using temporary = await temporaryFolder();
  const folder = `${temporary.path}/work`;
  const names = () => Array.from(Deno.readDirSync(folder), ({ name }) => name).sort();
  let harmless = 0;
  const isHarmless = (script: string) =>
    commandsOf({ argv: [program, script, "in"] }, 1)?.every((words) => words?.[0]?.text === program);
  const scripts = fc.array(fc.constantFrom(...pieces), { minLength: 1, maxLength: 9 }).map((parts) =>
    parts.join("")
  );
  await fc.assert(
    fc.asyncProperty(scripts, async (script) => {
      if (!isHarmless(script)) return;
      harmless++;
      await Deno.remove(folder, { recursive: true }).catch(() => {});
      await Deno.mkdir(folder);
      await Deno.writeTextFile(`${folder}/in`, "a\nb a\n1\n");
      await new Deno.Command("timeout", {
        args: ["-k", "1", "2", program, script, "in"],
        cwd: folder,
        stdin: "null",
        stdout: "null",
        stderr: "null",
      }).output();
      assertEquals(names(), ["in"], script);
      assertEquals(await Deno.readTextFile(`${folder}/in`), "a\nb a\n1\n", script);
    }),
    propertyOptions(3_000, 20_000, 200_000),
  );
  assert(isHarmless(sure) && harmless > 20, `${harmless} harmless ones`);
}

Deno.test("what commandsOf() takes for a harmless script of sed writes no file and runs nothing", () =>
  assertHarmless(
    "sed",
    [
      ..."s/|a;{}[]\\,$!pd1ybtwe \n",
      "s/a/b/",
      "/a/",
      "w out",
      "e touch ran",
      "a\\\n",
      "W out",
      "[/]",
      "s[a[b[",
      "\\n",
      "I",
      "g",
      "x",
    ],
    "/a/,$s/[ab]\\/x/y/g;p",
  ));

Deno.test("what commandsOf() takes for a harmless program of awk writes no file and runs nothing", () =>
  assertHarmless(
    "awk",
    [
      "{",
      "}",
      "print",
      " ",
      '"out"',
      ">",
      ">>",
      "|",
      "||",
      '"touch ran"',
      "system(",
      ")",
      "$1",
      "/a/",
      "BEGIN",
      ";",
      "getline",
      "<",
      "in",
    ],
    "$1 ~ /a/ || NR < 2 { print $1 }",
  ));
