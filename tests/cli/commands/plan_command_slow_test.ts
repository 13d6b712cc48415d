/** Output, files and exit codes of `plan explain`, `plan lock` and `plan diff`. */
import { cli } from "../../../src/cli/mod.ts";
import { wrapText } from "../../../src/cli/terminal/format.ts";
import { assert, assertEquals, assertMatch, assertStringIncludes } from "../../assert.ts";
import { testWithUnitPermissions } from "../../support/permissions.ts";
import { type FakeIo, fakeIo, type FakeIoOptions } from "../../support/io.ts";

const TOOL = `import { help } from "./help.ts";
throw new Error("it ran");
export const module = { id: "tool-x", permissions: { net: ["a.example.com"] } };
export const mount = () => help;
`;
const PLAN = `session: {orchestrator: loop-streaming, context: context-simple}
providers: [provider-mock]
tools:
  - module: tool-x
    source: ./tool.ts
    permissions: {net: [a.example.com], run: [git]}
limits: {max_iterations: 5, max_tool_calls: 5, max_total_tokens: 500, max_cost_usd: "1", max_duration_s: 9}
`;

interface Workspace {
  url: URL;
  /** Runs a command in the folder. */
  run(args: readonly string[], options?: FakeIoOptions): Promise<FakeIo & { code: number }>;
  write(name: string, text: string): Promise<void>;
  read(name: string): Promise<string>;
}

// the folder of every test has one path, so that one home has the bundles of all of them
const ROOT = await Deno.realPath(await Deno.makeTempDir());
const FOLDER = `${ROOT}/plans/`;
Deno.test.afterAll(() => Deno.remove(ROOT, { recursive: true }));

async function inFolder(use: (folder: Workspace) => Promise<void>): Promise<void> {
  await Deno.mkdir(FOLDER);
  const url = new URL(`file://${FOLDER}`);
  const write = (name: string, text: string) => Deno.writeTextFile(new URL(name, url), text);
  await write("tool.ts", TOOL);
  await write("help.ts", "export const help = 1;\n");
  await write("plan.yaml", PLAN);
  try {
    await use({
      url,
      write,
      read: (name) => Deno.readTextFile(new URL(name, url)),
      async run(args, options = {}) {
        const io = fakeIo({ cwd: url, env: { PREAMP_HOME: `${ROOT}/home` }, ...options });
        const code = await cli(args, io);
        return Object.defineProperties(io, { code: { value: code } }) as FakeIo & { code: number }; // just defined
      },
    });
  } finally {
    await Deno.remove(FOLDER, { recursive: true });
  }
}

testWithUnitPermissions(
  "plan explain prints modules, files, permissions and red flags, and exits 0",
  () =>
    inFolder(async ({ run, read }) => {
      const { code, stdout, stderr } = await run(["plan", "explain", "plan.yaml"]);
      assertEquals([code, stderr], [0, ""]);
      for (
        const text of [
          "plan.yaml",
          "./tool.ts",
          "./help.ts",
          "a.example.com",
          "permission_run",
        ]
      ) {
        assertStringIncludes(stdout, text);
      }
      assertMatch(
        stdout,
        /^deno flags {2}--allow-net=a\.example\.com --allow-read=\.\/help\.ts,\.\/tool\.ts$/m,
      );
      assertMatch(stdout, /^ {12}--allow-run=git$/m);
      assertMatch(stdout, /^tool-x +tool +process +2 files +\d+ B +2$/m);
      assertMatch(stdout, /^ {2}net +a\.example\.com +a\.example\.com +- +a\.example\.com$/m);
      const bytes = new TextEncoder().encode(await read("tool.ts"));
      const sha256 = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)).toHex();
      assertStringIncludes(stdout, sha256);
      for (const line of stdout.split("\n")) assert(line.length <= 80, line);
    }),
);

Deno.test("plan explain prints the object of the API as JSON, also of merged plans", () =>
  inFolder(async ({ run, write }) => {
    await write("over.yaml", "tools: [{module: tool-x, permissions: {run: false}}]\n");
    const { code, stdout } = await run([
      "plan",
      "explain",
      "-p",
      "plan.yaml",
      "-p",
      "over.yaml",
      "--output-format=json",
    ]);
    assertEquals(code, 0);
    const explanation = JSON.parse(stdout);
    assertEquals(explanation.modules.at(-1).permissions.asked, { net: ["a.example.com"] });
    assertEquals((await run(["plan", "explain", "plan.yaml", "--output-format", "xml"])).code, 2);
  }));

Deno.test("plan explain --strict exits 1 for a red flag, and 0 without any", () =>
  inFolder(async ({ run, write }) => {
    assertEquals((await run(["plan", "explain", "--strict", "plan.yaml"])).code, 1);
    await write("fine.yaml", PLAN.replace(/tools:[^]*limits/, "limits"));
    const fine = await run(["plan", "explain", "--strict", "fine.yaml"]);
    assertEquals([fine.code, fine.stdout.includes("no red flags")], [0, true]);
  }));

Deno.test("plan explain exits 3 for a bad plan, 2 without a file, 1 for a module that is not there", () =>
  inFolder(async ({ run, write }) => {
    await write("bad.yaml", "session: {orchestrator: loop-streaming}\n");
    const bad = await run(["plan", "explain", "bad.yaml"]);
    assertEquals(bad.code, 3);
    assertStringIncludes(bad.stderr, "bad.yaml:1");
    assertEquals((await run(["plan", "explain"])).code, 2);
    await write("lost.yaml", PLAN.replace("./tool.ts", "./lost.ts"));
    const lost = await run(["plan", "explain", "lost.yaml"]);
    assertEquals(lost.code, 1);
    assertStringIncludes(lost.stderr, "lost.ts");
  }));

Deno.test("plan explain escapes control characters of modules", () =>
  inFolder(async ({ run, write }) => {
    await write("tool.ts", TOOL.replace('["a.', '["\\u202ea.'));
    const { code, stdout } = await run(["plan", "explain", "plan.yaml"]);
    assertEquals([code, stdout.includes("\u202e"), stdout.includes("\\u202ea.example.com")], [
      0,
      false,
      true,
    ]);
  }));

Deno.test("plan lock displays where the lock of a plan in another folder is", () =>
  inFolder(async ({ url, run }) => {
    const { stdout } = await run(["plan", "lock", `${url.pathname}plan.yaml`], { cwd: new URL("../", url) });
    const folder = url.pathname.split("/").at(-2);
    assertEquals(stdout, `written  ${folder}/plan.lock.json, 1 module, 2 files\n`);
  }));

Deno.test("plan lock writes the lock beside the plan, once; --check compares it", () =>
  inFolder(async ({ run, read, write }) => {
    const missing = await run(["plan", "lock", "--check", "plan.yaml"]);
    assertEquals([missing.code, missing.stdout], [1, "differs  there is no plan.lock.json\n"]);
    const written = await run(["plan", "lock", "plan.yaml"]);
    assertEquals([written.code, written.stdout], [0, "written  plan.lock.json, 1 module, 2 files\n"]);
    const lock = JSON.parse(await read("plan.lock.json"));
    assertEquals([lock.version, Object.keys(lock.files)], [1, ["./help.ts", "./tool.ts"]]);
    assertStringIncludes((await run(["plan", "lock", "plan.yaml"])).stdout, "unchanged");
    assertEquals((await run(["plan", "lock", "--check", "plan.yaml"])).code, 0);
    await write("help.ts", "export const help = 2;\n");
    const changed = await run(["plan", "lock", "--check", "plan.yaml"]);
    assertEquals(changed.code, 1);
    assertStringIncludes(changed.stdout, "differs  ./help.ts has other bytes");
    const refused = await run(["plan", "explain", "plan.yaml"]);
    assertEquals(refused.code, 1);
    assertStringIncludes(refused.stderr, "./help.ts");
    assertEquals((await run(["plan", "lock", "plan.yaml"])).code, 0);
    assertEquals((await run(["plan", "explain", "plan.yaml"])).code, 0);
  }));

Deno.test("plan lock keeps the pins of other plans of the folder, unless --prune is given", () =>
  inFolder(async ({ run, read, write }) => {
    await write("other.ts", "export const mount = 1;\n");
    await write("other.yaml", PLAN.replace("./tool.ts", "./other.ts"));
    await run(["plan", "lock", "plan.yaml"]);
    await run(["plan", "lock", "other.yaml"]);
    const modules = async () => Object.keys(JSON.parse(await read("plan.lock.json")).modules);
    assertEquals(await modules(), ["./other.ts", "./tool.ts"]);
    await run(["plan", "lock", "--prune", "other.yaml"]);
    assertEquals(await modules(), ["./other.ts"]);
    await write("plan.lock.json", "<<<<<<< ours\n");
    assertEquals((await run(["plan", "lock", "plan.yaml"])).code, 3);
    assertEquals((await run(["plan", "lock", "--prune", "plan.yaml"])).code, 0);
    assertEquals(await modules(), ["./tool.ts"]);
  }));

Deno.test("plan lock writes nothing for a plan of built-in modules", () =>
  inFolder(async ({ run, url, write }) => {
    await write("plain.yaml", PLAN.replace(/tools:[^]*limits/, "limits"));
    const { code, stdout } = await run(["plan", "lock", "plain.yaml"]);
    assertEquals([code, stdout], [0, "Nothing to lock: every module is built in\n"]);
    assertEquals((await Array.fromAsync(Deno.readDir(url))).some(({ name }) => name.includes("lock")), false);
    assertEquals((await run(["plan", "lock", "--check", "plain.yaml"])).code, 0);
  }));

Deno.test("plan diff exits 1 if something widens, else 0, and prints the changes", () =>
  inFolder(async ({ run, write }) => {
    await write("less.yaml", PLAN.replace(", run: [git]", ""));
    const wider = await run(["plan", "diff", "less.yaml", "plan.yaml"]);
    assertEquals(wider.code, 1);
    assertEquals(
      wider.stdout,
      '1 widening change\n+ tools[0].permissions.run\n    "tool-x" is granted run "git"\n    to   ["git"]\n',
    );
    const narrower = await run(["plan", "diff", "plan.yaml", "less.yaml"]);
    assertEquals([narrower.code, narrower.stdout.split("\n")[0]], [0, "1 narrowing change"]);
    assertEquals((await run(["plan", "diff", "plan.yaml", "plan.yaml"])).stdout, "no difference\n");
    const json = await run(["plan", "diff", "--output-format", "json", "-", "plan.yaml"], { stdin: PLAN });
    assertEquals([json.code, JSON.parse(json.stdout)], [0, { widens: [], narrows: [], other: [] }]);
    await write("bad.yaml", "session: 1\n");
    const bad = await run(["plan", "diff", "plan.yaml", "bad.yaml"]);
    assertEquals(bad.code, 3);
    assertStringIncludes(bad.stderr, "bad.yaml:1");
    assertEquals((await run(["plan", "diff", "plan.yaml"])).code, 2);
    assertEquals((await run(["plan", "diff", "-", "-"])).code, 2);
  }));

Deno.test("wrapText() breaks at spaces and never inside a word", () => {
  assertEquals(wrapText("a bb ccc dddddd e", 4), ["a bb", "ccc", "dddddd", "e"]);
  assertEquals(wrapText("", 4), [""]);
});
