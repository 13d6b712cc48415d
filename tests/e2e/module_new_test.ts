/**
 * What `preamp module new` and `preamp init` write: modules of each type pass `module validate --strict` and
 * their own tests, and a plan runs.
 */
import { assert, assertEquals, assertMatch } from "../assert.ts";
import { inFolder } from "../support/folder.ts";
import { ROOT, runCommand, runProgram } from "./program.ts";

const SDK = new URL("src/sdk/mod.ts", `file://${ROOT}`).href;
/** The executable writes what Deno needs beside the module: Deno gets an empty cache and no network then. */
const EXECUTABLE = Deno.env.has("PROGRAM_UNDER_TEST");
const CACHE = EXECUTABLE ? await Deno.makeTempDir() : undefined;
const ALONE = CACHE === undefined ? {} : { DENO_DIR: CACHE, HTTPS_PROXY: "http://127.0.0.1:9" };
globalThis.addEventListener("unload", () => {
  if (CACHE !== undefined) Deno.removeSync(CACHE, { recursive: true });
});

async function namesIn(folder: string): Promise<string[]> {
  const entries = await Array.fromAsync(Deno.readDir(folder));
  return entries.map(({ name }) => name).sort();
}

async function deno(args: readonly string[], cwd: string): Promise<string> {
  const { success, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: [...args],
    cwd,
    env: { NO_COLOR: "1", ...ALONE },
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
  Deno.test(`module new ${type} writes what passes validate --strict`, () =>
    inFolder(async (cwd) => {
      const made = await runCommand(["module", "new", type, "city-clock"], { cwd });
      assertEquals([made.code, made.stderr], [0, ""]);
      const files = await namesIn(`${cwd}/${id}`);
      const own = EXECUTABLE ? [".preamp"] : [];
      assertEquals(files, [...own, "README.md", "deno.json", "mod.ts", "mod_test.ts"]);
      const { code, stdout, stderr } = await runCommand(
        ["module", "validate", "--strict", "-o", "json", id],
        { cwd },
      );
      const report = JSON.parse(stdout);
      assertEquals([code, report.ok, report.errors, report.type], [0, true, 0, type], stdout + stderr);
      assertEquals(report.checklist.filter(({ state }: { state: string }) => state !== "ok"), []);
      assert(report.suite.length >= 8);
    }));
}

Deno.test("module new writes what type-checks, passes its own tests, is formatted and has nothing for the linter, of every type", () =>
  inFolder(async (cwd) => {
    for (const [type] of types) {
      assertEquals((await runCommand(["module", "new", type, "city-clock"], { cwd })).code, 0);
    }
    const [[, first] = []] = types;
    const alone = await deno(["test", "--no-check", "--no-prompt", "--no-lock"], `${cwd}/${first}`);
    assertMatch(alone, /\d\d passed \| 0 failed/);
    const config = `--config=${first}/deno.json`; // all are the same but for the name
    const tested = await deno(
      ["test", "--no-prompt", "--no-lock", config, ...types.map(([, id]) => id)],
      cwd,
    );
    for (const [, id] of types) assertMatch(tested, new RegExp(`running \\d\\d tests from .*${id}`));
    assertMatch(tested, /\d\d passed \| 0 failed/);
    await deno(["fmt", "--check", ...types.map(([, id]) => id)], cwd);
    await deno(["lint", ...types.map(([, id]) => id)], cwd);
  }));

Deno.test("init writes a plan that runs its own tool, whose test passes, and overwrites nothing", () =>
  inFolder(async (cwd) => {
    await Deno.writeTextFile(`${cwd}/.gitignore`, "dist/\n");
    const made = await runCommand(["init"], { cwd });
    assertEquals([made.code, made.stderr], [0, ""]);
    assertMatch(made.stdout, /run -p plan\.yaml "Greet Ada"\n {2}deno test\n$/);
    const own = EXECUTABLE ? [".preamp"] : [];
    const files = [".env.example", ".gitignore", ...own, "deno.json", "plan.yaml", "tools"];
    assertEquals(await namesIn(cwd), files);
    assertEquals(await Deno.readTextFile(`${cwd}/.gitignore`), "dist/\n");
    const ran = await runProgram(["run", "-p", "plan.yaml", "Greet Ada"], { cwd });
    assertEquals([ran.code, ran.stdout], [0, "Ada has been greeted.\n"], ran.stderr);
    assertMatch(ran.stderr, /called greet \{"person":"Ada"\} = Good morning, Ada!/);
    assertMatch(await deno(["test", "--no-prompt", "--no-lock"], cwd), /\d\d passed \| 0 failed/);
    await deno(["fmt", "--check"], cwd);
    const again = await runCommand(["init"], { cwd });
    assertEquals(again.code, 2);
    assertMatch(again.stderr, /Cannot write plan\.yaml, .*it already exists, and nothing was written/);
    const { stdout } = await runCommand(["provider", "list", "--json"]);
    const variables = (await Deno.readTextFile(`${cwd}/.env.example`)).matchAll(/^# ([A-Z]+_API_KEY)=$/gm);
    for (const [, variable] of variables) assert(stdout.includes(`"${variable}"`), variable);
  }));

Deno.test("init prints what a deno.json that is there lacks", () =>
  inFolder(async (cwd) => {
    await Deno.mkdir(`${cwd}/agent`);
    await Deno.writeTextFile(`${cwd}/agent/deno.json`, "{}");
    const { code, stdout } = await runCommand(["init", "agent"], { cwd });
    assertEquals(code, 0);
    assertMatch(
      stdout,
      /^ {2}agent\/plan\.yaml$[^]*^Add this to deno\.json:\n\{\n {2}"imports"[^]*^ {2}cd agent$/m,
    );
    assertEquals(await Deno.readTextFile(`${cwd}/agent/deno.json`), "{}");
  }));

Deno.test("module new never overwrites a file, and names it", () =>
  inFolder(async (cwd) => {
    await Deno.mkdir(`${cwd}/mine`);
    await Deno.writeTextFile(`${cwd}/mine/README.md`, "mine");
    const { code, stderr } = await runCommand(["module", "new", "tool", "clock", "--dir", "mine"], { cwd });
    assertEquals(code, 2);
    assertMatch(stderr, /Cannot write mine\/README.md: it already exists, and nothing was written/);
    assertEquals(await namesIn(`${cwd}/mine`), ["README.md"]);
    assertEquals(await Deno.readTextFile(`${cwd}/mine/README.md`), "mine");
  }));

Deno.test("module new leaves deno.json away where one says what preamp is", () =>
  inFolder(async (cwd) => {
    await Deno.writeTextFile(`${cwd}/deno.json`, JSON.stringify({ imports: { preamp: SDK } }));
    assertEquals((await runCommand(["module", "new", "hook", "a"], { cwd })).code, 0);
    await Deno.mkdir(`${cwd}/other`);
    await Deno.writeTextFile(`${cwd}/other/deno.json`, `{ "name": "preamp" }`);
    assertEquals((await runCommand(["module", "new", "hook", "b", "--dir", "other/b"], { cwd })).code, 0);
    assert((await namesIn(`${cwd}/other/b`)).includes("deno.json"));
    const files = await namesIn(`${cwd}/hooks-a`);
    assertEquals(files, ["README.md", "mod.ts", "mod_test.ts"]);
  }));

Deno.test("module types writes the SDK again where it is missing, and says what deno.json lacks", () =>
  inFolder(async (cwd) => {
    const types = async (...args: string[]) => {
      const { code, stdout, stderr } = await runCommand(["module", "types", ...args], { cwd });
      assertEquals([code, stderr], [0, ""], stdout);
      return stdout;
    };
    const printed = await types();
    if (!EXECUTABLE) return assertMatch(printed, /^Nothing to write: this program runs from its sources/);
    assertEquals(printed, "The SDK is in .preamp/sdk\n");
    assertEquals(await namesIn(cwd), [".preamp", "deno.json"]);
    await Deno.writeTextFile(`${cwd}/.preamp/sdk/of_another_version.ts`, "");
    await types();
    assertEquals((await namesIn(`${cwd}/.preamp/sdk`)).includes("of_another_version.ts"), false);
    await Deno.writeTextFile(
      `${cwd}/use.ts`,
      `import { defineTool, z } from "preamp";
import { createLoop } from "preamp/loop";
import { SimpleContext } from "preamp/context";
import { testTool } from "preamp/testing";
import { z as whole } from "zod";
const name: z.infer<ReturnType<typeof whole.string>> = "ada";
console.log([defineTool, createLoop, SimpleContext, testTool].map((one) => typeof one), whole.string().parse(name));
`,
    );
    assertMatch(
      await deno(["run", "--check", "use.ts"], cwd),
      /\[ "function", "function", "function", "function" \] ada/,
    );
    await Deno.mkdir(`${cwd}/other`);
    await Deno.writeTextFile(`${cwd}/other/deno.json`, "{}");
    assertMatch(
      await types("other"),
      /^The SDK is in other\/\.preamp\/sdk\nAdd this to deno\.json:\n\{\n {2}"imports"/,
    );
    assertEquals(await Deno.readTextFile(`${cwd}/other/deno.json`), "{}");
  }));

const wrong: [args: string[], text: RegExp][] = [
  [[], /without a type; the types are tool, provider/],
  [["tol", "x"], /"tol": did you mean tool\?/],
  [["tool"], /without a name/],
  [["tool", "My Tool"], /Cannot name a module "My Tool": use lower-case letters/],
  [["tool", "../x"], /Cannot name a module/],
  [["tool", "a", "b"], /Cannot use "b": a module has one name/],
];

Deno.test("module new reports a wrong type or name", () =>
  inFolder(async (cwd) => {
    for (const [args, text] of wrong) {
      const { code, stderr } = await runCommand(["module", "new", ...args], { cwd });
      assertEquals(code, 2, args.join(" "));
      assertMatch(stderr, text);
    }
    assertEquals(await namesIn(cwd), []);
  }));
