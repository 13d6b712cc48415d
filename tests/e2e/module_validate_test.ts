/**
 * `preamp module validate | bundle | hash` as a process, on files and URLs: hostile modules cost their author
 * an error alone.
 */
import { assert, assertEquals, assertMatch } from "../assert.ts";
import { serveFiles } from "../support/loader.ts";
import { type Json, ROOT, runCommand, runProgram } from "./program.ts";
import { temporaryFolder } from "../support/folder.ts";

/** Keeps the bundles of all commands: what was bundled once needs no bundler. */
const home = await Deno.makeTempDir();
const env = { PREAMP_HOME: home };
Deno.test.afterAll(() => Deno.remove(home, { recursive: true }));

const TOOL = `export const module = { id: "tool-x", type: "tool", version: "1.0.0" };
export async function mount(coordinator, config) {
  const tool = { name: "x", description: "d", input_schema: { type: "object", properties: {} }, execute: EXECUTE };
  await coordinator.mount("tools", tool);
  return { name: "tool-x", version: "1.0.0", provides: ["x"] };
}
`;
const tool = (execute = `async () => "out"`) => TOOL.replace("EXECUTE", execute);

async function withFiles(files: Record<string, string>, use: (cwd: string) => Promise<void>): Promise<void> {
  await using temporary = await temporaryFolder();
  const cwd = temporary.path;
  for (const [name, text] of Object.entries(files)) {
    await Deno.mkdir(`${cwd}/${name}`.replace(/\/[^/]*$/, ""), { recursive: true });
    await Deno.writeTextFile(`${cwd}/${name}`, text);
  }
  await use(cwd);
}

async function validate(
  args: readonly string[],
  cwd: string,
  run: typeof runCommand = runCommand,
): Promise<{ code: number; report: Json; stderr: string }> {
  const { code, stdout, stderr } = await run([
    "module",
    "validate",
    "--output-format",
    "json",
    ...args,
  ], { cwd, env });
  return { code, report: JSON.parse(stdout || "null"), stderr };
}

const errorsOf = (report: Json): string[] =>
  [...report.checks, ...report.suite].filter(({ passed, severity }: Json) => !passed && severity === "error")
    .map(({ name, message }: Json) => `${name}: ${message}`);

Deno.test("module validate prints the message of Amplifier's validator and exits 1", () =>
  withFiles(
    { "tool-none/mod.ts": "export async function mount(coordinator, config) { return null; }" },
    async (cwd) => {
      const { code, stdout } = await runCommand(["module", "validate", "tool-none"], { cwd });
      assertEquals(code, 1);
      assert(
        stdout.includes(
          "protocol_compliance: No tool was mounted and mount() did not return a Tool instance",
        ),
      );
      assertMatch(stdout, /tool-none: 1 error/);
    },
  ));

/** The complete example of Amplifier's guide for tools, as it is in TypeScript. */
const COMPLETE = `
class MyTool {
  get name() { return "my_tool"; }
  get description() { return "Description of what this tool does and when to use it."; }
  get input_schema() {
    return {
      type: "object",
      properties: { param: { type: "string", description: "What this parameter does" } },
      required: ["param"],
    };
  }
  async execute(input: { param: string }) {
    return { success: true, output: input.param.toUpperCase() };
  }
}
export async function mount(coordinator: any, config?: any) {
  const tool = new MyTool();
  await coordinator.mount("tools", tool, { name: tool.name });
  return { name: "tool-my-tool", version: "0.1.0", provides: ["my_tool"] };
}
`;

Deno.test("module validate --strict takes the complete example of a tool, and one with a placeholder", () =>
  withFiles({
    "my_tool.ts": COMPLETE,
    "later.ts": COMPLETE.replace(
      "success: true, output: input.param.toUpperCase()",
      'success: false, output: "Later"',
    ),
  }, async (cwd) => {
    for (const file of ["my_tool.ts", "later.ts"]) {
      const { code, report } = await validate(["--strict", file], cwd);
      assertEquals([code, report.ok, report.warnings, errorsOf(report)], [0, true, 0, []]);
      assertEquals(report.suite.filter(({ message }: Json) => message !== "ok"), []);
    }
  }));

Deno.test("module validate --strict takes the modules of plans/ as they are", async () => {
  for await (const { name } of Deno.readDir(`${ROOT}plans/modules`)) {
    const { code, report } = await validate(["--strict", `plans/modules/${name}`], ROOT);
    assertEquals([code, report.ok, errorsOf(report)], [0, true, []], name);
  }
});

Deno.test("module validate looks for the tests of a single file beside it, and finds none without a word", () =>
  withFiles({ "a.ts": tool(), "b.ts": tool(), "b_test.ts": "// nothing yet" }, async (cwd) => {
    const found = async (file: string) => {
      const { report } = await validate([file], cwd);
      return report.checks.filter(({ name }: Json) => name === "module_tests").map(({ message }: Json) =>
        message
      );
    };
    assertEquals(await found("a.ts"), []);
    const text = 'write b_test.ts with testTool("…", () => module) from "preamp/testing"';
    assertEquals(await found("b.ts"), [`no test calls mount() or testTool(); ${text}`]);
  }));

Deno.test("module validate exits 0 with warnings, 1 with --strict (VAL-12)", () =>
  withFiles(
    { "provider-x/mod.ts": "export async function mount(coordinator, config) { return null; }" },
    async (cwd) => {
      const { code, report } = await validate(["provider-x"], cwd);
      assertEquals([code, report.ok, report.errors], [0, true, 0]);
      assert(report.warnings > 0);
      const strict = await validate(["--strict", "provider-x"], cwd);
      assertEquals([strict.code, strict.report.ok, strict.report.warnings], [1, false, 0]);
    },
  ));

Deno.test("module validate takes a URL, and its type from -t, its exports or its id", async () => {
  await using server = serveFiles({
    "tool-x/mod.ts": tool(),
    "hooks-tool-y.ts": "export async function mount(a, b) {}",
  });
  const good = await validate([`${server.url}tool-x/mod.ts`], ROOT);
  assertEquals([good.code, good.report.type, good.report.id], [0, "tool", "tool-x"], good.stderr);
  assertMatch(good.report.integrity, /^sha256-/);
  const hook = await validate([`${server.url}hooks-tool-y.ts`], ROOT);
  assertEquals(errorsOf(hook.report), [
    "protocol_compliance: No hook was registered and mount() did not return a Hook instance",
  ]);
  const given = await validate(["-t", "context", `${server.url}tool-x/mod.ts`], ROOT);
  assertMatch(errorsOf(given.report).join(), /No context manager was mounted/);
});

Deno.test("module validate names file and line of what cannot be loaded", () =>
  withFiles({
    "bad/mod.ts": "export const a = 1;\nexport async function mount( {",
    "none/mod.ts": "export const start = 1;",
    "throws/mod.ts": "\nthrow new Error('at once');\nexport async function mount(a, b) {}",
  }, async (cwd) => {
    const bad = await validate(["bad"], cwd);
    assertEquals(bad.code, 1);
    assertMatch(errorsOf(bad.report).join(), /^module_importable: .*\.\/bad\/mod\.ts:2:\d+: /);
    const none = await validate(["none"], cwd);
    assertMatch(
      errorsOf(none.report).join(),
      /^mount_exists: the module must export mount\(coordinator, config\), or a default .*; it exports start/,
    );
    const throws = await validate(["throws"], cwd);
    assertMatch(
      errorsOf(throws.report).join(),
      /^module_importable: .*\.\/throws\/mod\.ts:2:\d+: Error: at once/,
    );
  }));

Deno.test("module validate survives a module that ends the process or floods its console", () =>
  withFiles({
    "exits.ts": tool("async () => { Deno.exit(0); }"),
    "rejects.ts": tool(
      `async () => { Promise.reject(new Error("not awaited")); await new Promise((r) => setTimeout(r, 50)); return "out"; }`,
    ),
    "talks.ts": tool(
      `async () => { for (let i = 0; i < 20000; i++) console.log("x".repeat(100)); return "out"; }`,
    ),
  }, async (cwd) => {
    const options = ["-t", "tool"];
    const exits = await validate([...options, "exits.ts"], cwd, runProgram);
    assertEquals(exits.code, 1);
    assertMatch(errorsOf(exits.report).join(), /execute crashed .*: TypeError: Deno\.exit is not available/);
    const rejects = await validate([...options, "rejects.ts"], cwd, runProgram);
    assertEquals(rejects.code, 1);
    assertMatch(errorsOf(rejects.report).join(), /its process exited with code \d+ during execute\(\)/);
    const talks = await validate([...options, "talks.ts"], cwd, runProgram);
    assertEquals(talks.code, 0);
    assertMatch(talks.stderr, /Console output of the module:\n {2}\| x{100}\n/);
  }));

Deno.test("module validate gives a module no permission and no variable, but what --allow names", () =>
  withFiles({
    "mod.ts": `export const module = { id: "tool-x", type: "tool", version: "1.0.0" };
export async function mount(coordinator, config) {
  const kinds = ["net", "read", "write", "env", "run", "sys", "ffi", "import"];
  const granted = kinds.filter((name) => Deno.permissions.querySync({ name }).state === "granted");
  const secret = granted.includes("env") ? Deno.env.get("A_SECRET") : "unseen";
  throw new Error(granted.join() + " " + secret);
}`,
  }, async (cwd) => {
    const run = async (...allow: string[]) => {
      const args = ["module", "validate", "-o", "json", ...allow, "mod.ts"];
      const { stdout } = await runProgram(args, { cwd, env: { A_SECRET: "seen" } });
      return errorsOf(JSON.parse(stdout)).join();
    };
    assertMatch(await run(), /mount\(\) failed: Error: {2}unseen \(\.\/mod\.ts:6:\d+\)/);
    assertMatch(await run("--allow", "env,net"), /mount\(\) failed: Error: net,env seen/);
  }));

Deno.test("module validate refuses a config that the module's schema refuses", () =>
  withFiles({
    "mod.ts":
      `const config_schema = { type: "object", properties: { size: { type: "integer", minimum: 1 } } };
export const module = { id: "tool-x", type: "tool", version: "1.0.0", config_schema };
export async function mount(coordinator) {
  const tool = { name: "x", description: "Does x.", input_schema: { type: "object" }, execute: async () => "x" };
  await coordinator.mount("tools", tool, "x");
}`,
  }, async (cwd) => {
    const run = async (config: string) => {
      const args = ["module", "validate", "--structure-only", "--module-config", config, "mod.ts"];
      return await runCommand(args, { cwd });
    };
    assertEquals((await run('{"size": 2}')).code, 0);
    for (
      const [config, text] of [['{"size": "big"}', /config\.size: .*whole number/], [
        '{"sise": 1}',
        /"size"/,
      ]] as const
    ) {
      const { code, stdout } = await run(config);
      assertEquals(code, 1, stdout);
      assertMatch(stdout, /error +config_accepted: /);
      assertMatch(stdout, text);
    }
  }));

Deno.test("module validate says what is wrong with its words", async () => {
  const wrong: [string[], RegExp][] = [
    [[], /name it by its path or its URL/],
    [["nowhere"], /there is no such file or folder/],
    [["src"], /it has no mod.ts/],
    [["-t", "toll", "x"], /Cannot use --type: must be tool, provider/],
    [["-o", "xml", "x"], /--output-format: must be text or json/],
    [["--allow", "all", "x"], /--allow: the kinds are net, read/],
    [["--module-config", "[1]", "x"], /--module-config: it must be an object/],
    [["git+ssh://host/x"], /git\+ssh: is not supported/],
  ];
  for (const [args, text] of wrong) {
    const { code, stderr } = await runCommand(["module", "validate", ...args]);
    assertEquals(code, 2, args.join(" "));
    assertMatch(stderr, text);
  }
});

Deno.test("module hash prints the digest for `integrity`, and every file", async () => {
  await using server = serveFiles({ "mod.ts": `export { mount } from "./a.ts";`, "a.ts": tool() });
  const { code, stdout } = await runCommand(["module", "hash", "--json", `${server.url}mod.ts`], { env });
  assertEquals(code, 0);
  const { integrity, files, exports } = JSON.parse(stdout);
  assertMatch(integrity, /^sha256-[\w+/]{43}=$/);
  assertEquals(files.map(({ url }: Json) => url.slice(server.url.length)).sort(), ["a.ts", "mod.ts"]);
  assertEquals(exports, ["mount"]);
  const text = await runCommand(["module", "hash", `${server.url}mod.ts`], { env });
  assertEquals(text.stdout.split("\n")[0], integrity);
  server.files["a.ts"] = `${tool()} `;
  const changed = await runCommand(["module", "hash", `${server.url}mod.ts`], { env });
  assert(changed.stdout.split("\n")[0] !== integrity);
});

Deno.test("module hash takes a folder for what its deno.json exports, or for its mod.ts", () =>
  withFiles({
    "a/mod.ts": tool(),
    "b/deno.json": `{ "exports": { ".": "./tool.ts" } }`,
    "b/tool.ts": tool(),
    "b/mod.ts": "export const other = 1;",
    "c/deno.json": "{",
  }, async (cwd) => {
    const entries: [string, string][] = [["a", "/a/mod.ts"], ["./b/", "/b/tool.ts"], [
      "b/tool.ts",
      "/b/tool.ts",
    ]];
    for (const [name, entry] of entries) {
      const { stdout, stderr } = await runCommand(["module", "hash", "--json", name], { cwd, env });
      assert(JSON.parse(stdout || stderr).url.endsWith(entry));
    }
    assertMatch(
      (await runCommand(["module", "hash", "c"], { cwd })).stderr,
      /Cannot read \.\/c\/deno\.json: it is not valid JSON/,
    );
  }));

Deno.test("module bundle writes one file that is the same module, and names no folder of this machine", () =>
  withFiles({
    "mod.ts":
      `import { z } from "preamp";\nimport { run } from "./run.ts";\nexport const schema = z.string();\n${
        tool("run")
      }`,
    "run.ts":
      `import { ToolResult } from "preamp";\nexport async function run(): Promise<unknown> {\n  throw new RangeError("here");\n  return ToolResult({});\n}`,
  }, async (cwd) => {
    const made = await runCommand(["module", "bundle", "-o", "out.js", "mod.ts"], { cwd });
    assertEquals(made.code, 0, made.stderr);
    const code = await Deno.readTextFile(`${cwd}/out.js`);
    assertMatch(code, /^import \* as preamp_0 from "preamp";/);
    const map = JSON.parse(atob(code.trimEnd().split("base64,").at(-1)!));
    assertEquals(map.sources.sort(), ["mod.ts", "run.ts", "sdk:preamp"]);
    assert(!JSON.stringify(map).includes(cwd));
    const { report, stderr } = await validate(["-t", "tool", "out.js"], cwd);
    assertEquals([report.checks[0].name, report.suite.length], ["module_importable", 11], stderr);
    assertEquals(errorsOf(report), []);
    const again = await runCommand(["module", "bundle", "-o", "mod.ts", "mod.ts"], { cwd });
    assertMatch(again.stderr, /it is a file of the module; choose another name/);
  }));
