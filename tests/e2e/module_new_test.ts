/** What `preamp module new` writes: it passes `module validate --strict` and its own tests, for each type. */
import { assert, assertEquals, assertMatch } from "../assert.ts";
import { ROOT, runProgram } from "./program.ts";

const SDK = new URL("src/sdk/mod.ts", `file://${ROOT}`).href;

async function inFolder(use: (folder: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir();
  try {
    await use(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

async function namesIn(folder: string): Promise<string[]> {
  const entries = await Array.fromAsync(Deno.readDir(folder));
  return entries.map(({ name }) => name).sort();
}

async function deno(args: readonly string[], cwd: string): Promise<string> {
  const { success, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: [...args],
    cwd,
    env: { NO_COLOR: "1" },
  }).output();
  const text = new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr);
  assert(success, `deno ${args.join(" ")}\n${text}`);
  return text;
}

const types: [type: string, id: string][] = [
  ["tool", "tool-city-clock"],
  ["provider", "provider-city-clock"],
  ["hook", "hooks-city-clock"],
  ["orchestrator", "loop-city-clock"],
  ["context", "context-city-clock"],
];

for (const [type, id] of types) {
  Deno.test(`module new ${type} writes what passes validate --strict, its own tests, fmt and lint`, () =>
    inFolder(async (cwd) => {
      const made = await runProgram(["module", "new", type, "city-clock", "--sdk", SDK], { cwd });
      assertEquals([made.code, made.stderr], [0, ""]);
      const files = await namesIn(`${cwd}/${id}`);
      assertEquals(files, ["README.md", "deno.json", "mod.ts", "mod_test.ts"]);
      const { code, stdout, stderr } = await runProgram(
        ["module", "validate", "--strict", "-o", "json", id],
        { cwd },
      );
      const report = JSON.parse(stdout);
      assertEquals([code, report.ok, report.errors, report.type], [0, true, 0, type], stdout + stderr);
      assertEquals(report.checklist.filter(({ state }: { state: string }) => state !== "ok"), []);
      assert(report.suite.length >= 8);
      const folder = `${cwd}/${id}`;
      assertMatch(await deno(["test", "--no-prompt", "--no-lock"], folder), /\d\d passed \| 0 failed/);
      await deno(["fmt", "--check"], folder);
      await deno(["lint"], folder);
    }));
}

Deno.test("module new never overwrites, and says what it would have", () =>
  inFolder(async (cwd) => {
    await Deno.mkdir(`${cwd}/mine`);
    await Deno.writeTextFile(`${cwd}/mine/README.md`, "mine");
    const { code, stderr } = await runProgram(["module", "new", "tool", "clock", "--dir", "mine"], { cwd });
    assertEquals(code, 2);
    assertMatch(stderr, /Cannot write mine\/README.md: there already; nothing was written/);
    assertEquals(await namesIn(`${cwd}/mine`), ["README.md"]);
    assertEquals(await Deno.readTextFile(`${cwd}/mine/README.md`), "mine");
  }));

Deno.test("module new leaves deno.json away where one says what preamp is", () =>
  inFolder(async (cwd) => {
    await Deno.writeTextFile(`${cwd}/deno.json`, JSON.stringify({ imports: { preamp: SDK } }));
    assertEquals((await runProgram(["module", "new", "hook", "a"], { cwd })).code, 0);
    await Deno.mkdir(`${cwd}/other`);
    await Deno.writeTextFile(`${cwd}/other/deno.json`, `{ "name": "preamp" }`);
    assertEquals((await runProgram(["module", "new", "hook", "b", "--dir", "other/b"], { cwd })).code, 0);
    assert((await namesIn(`${cwd}/other/b`)).includes("deno.json"));
    const files = await namesIn(`${cwd}/hooks-a`);
    assertEquals(files, ["README.md", "mod.ts", "mod_test.ts"]);
  }));

const wrong: [args: string[], text: RegExp][] = [
  [[], /it needs a type: tool, provider/],
  [["tol", "x"], /"tol": did you mean tool\?/],
  [["tool"], /it needs a name/],
  [["tool", "My Tool"], /Cannot name a module "My Tool": take small letters/],
  [["tool", "../x"], /Cannot name a module/],
  [["tool", "a", "b"], /Cannot use "b": a module has one name/],
];

Deno.test("module new says what is wrong with its words", () =>
  inFolder(async (cwd) => {
    for (const [args, text] of wrong) {
      const { code, stderr } = await runProgram(["module", "new", ...args], { cwd });
      assertEquals(code, 2, args.join(" "));
      assertMatch(stderr, text);
    }
    assertEquals(await namesIn(cwd), []);
  }));
