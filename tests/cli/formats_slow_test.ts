/** Rules of all commands: `--output-format json` and `--json`, exit codes 3 and 4, plans of several files. */
import { cli } from "../../src/cli/mod.ts";
import { COMMANDS } from "../../src/cli/commands.ts";
import { assert, assertEquals, assertStringIncludes } from "../assert.ts";
import { type FakeIo, fakeIo } from "../support/io.ts";

const SESSION = "session: {orchestrator: loop-streaming, context: context-simple}\n";
const FILES: Readonly<Record<string, string>> = {
  "base.yaml": `${SESSION}providers: [provider-mock]\nlimits: {max_tool_calls: 3}\n`,
  "less.yaml": "limits: {max_tool_calls: 2}\n",
  "more.yaml": "limits: {max_tool_calls: 9}\n",
  "merged.yaml": `${SESSION}providers: [provider-mock]\nlimits: {max_tool_calls: 2}\n`,
  "preamp.yaml": "limits: {max_tool_calls: 9}\n",
  "tool.ts": "export const mount = () => {};\n",
  "mcp.json": '{"mcpServers": {"docs": {"url": "https://mcp.example.com/mcp"}}}\n',
};

const folder = await Deno.makeTempDir();
for (const [name, text] of Object.entries(FILES)) await Deno.writeTextFile(`${folder}/${name}`, text);
globalThis.addEventListener("unload", () => Deno.removeSync(folder, { recursive: true }));

async function run(args: readonly string[], stdin = ""): Promise<FakeIo & { code: number }> {
  const io = fakeIo({
    cwd: new URL(`file://${folder}/`),
    env: { PREAMP_HOME: `${folder}/home`, PREAMP_TRUST: "1" },
    stdin,
  });
  const code = await cli(args, io);
  return Object.defineProperties(io, { code: { value: code } }) as FakeIo & { code: number }; // just defined
}

/** Valid arguments of each command; null for a command without a JSON answer. */
const ARGUMENTS: Readonly<Record<string, readonly string[] | null>> = {
  "serve": null,
  "chat": null,
  "docs": null,
  "config example": null,
  "config reference": null,
  "config check": ["preamp.yaml"],
  "run": ["-p", "base.yaml", "hi"],
  "trust": ["."],
  "init": ["project"],
  "sessions": [],
  "runs": [],
  "undo": ["last"],
  "replay": ["run.json"],
  "plan check": ["base.yaml"],
  "plan explain": ["base.yaml"],
  "plan lock": ["base.yaml"],
  "plan vendor": ["base.yaml"],
  "plan diff": ["base.yaml", "merged.yaml"],
  "plan import": ["--mcp", "mcp.json"],
  "module list": [],
  "module new": ["tool", "clock"],
  "module types": [],
  "module validate": ["--structure-only", "tool.ts"],
  "module bundle": ["tool.ts"],
  "module hash": ["tool.ts"],
  "provider list": [],
  "provider models": ["mock"],
  "provider test": ["mock"],
  "doctor": [],
  "store check": [],
  "store migrate": [],
  "store vacuum": [],
  "store erase": ["--namespace", "unknown"],
  "source add": ["tool-x", "./tool.ts"],
  "source remove": ["tool-x"],
  "source list": [],
  "version": [],
  "help": [],
};

Deno.test("every command that prints an answer prints it as JSON, by --json and by --output-format json", async () => {
  const trace = await run(["run", "-p", "base.yaml", "--output-format", "json-trace", "hi"]);
  await Deno.writeTextFile(`${folder}/run.json`, trace.stdout);
  await run(["run", "-p", "base.yaml", "--session", "new", "hi"]); // for undo
  for (const { name } of COMMANDS) {
    const args = ARGUMENTS[name];
    if (args === null) continue;
    assert(args, `${name} is not in ARGUMENTS`);
    for (const flags of [["--json"], ["--output-format", "json"], ["--output-format=json"]]) {
      if (name === "source remove") await run(["source", "add", ...ARGUMENTS["source add"]!]);
      const written = { "module new": "tool-clock", "init": "project" }[name];
      if (written !== undefined) {
        await Deno.remove(`${folder}/${written}`, { recursive: true }).catch(() => {}); // it does not exist the first time
      }
      const { code, stdout, stderr } = await run([...name.split(" "), ...args, ...flags]);
      assert(code === 0 || name === "module validate", `${name} ${flags}: ${code} ${stderr}`);
      assertEquals([name, typeof JSON.parse(stdout), stdout.endsWith("\n")], [name, "object", true]);
    }
    for (const flags of [["--output-format", "xml"], ["--json", "--output-format", "text"]]) {
      const { code, stdout, stderr } = await run([...name.split(" "), ...args, ...flags]);
      assertEquals([name, code, stdout], [name, 2, ""]);
      assertStringIncludes(stderr, "--output-format");
    }
  }
});

const UNKNOWN = `${SESSION}providers: [provider-mock]\ntools: [tool-calculater]\n`;
const WRONG_CONFIG =
  `${SESSION}providers: [provider-mock]\nhooks: [{module: hooks-approval, config: {rules: 3}}]\n`;
const UNREADABLE = "session: [\n";
const REFUSED =
  `${SESSION}providers: [provider-mock]\ntools: [{module: tool-x, source: "http://example.com/x.ts"}]\n`;
const UNKNOWN_AND_REFUSED = `${REFUSED}hooks: [hooks-aproval]\n`;

for (
  const [problem, plan, code, expected] of [
    ["an unknown module", UNKNOWN, 3, 'did you mean "tool-calculator"?'],
    ["a wrong config", WRONG_CONFIG, 3, "must be a list: received 3"],
    ["invalid YAML", UNREADABLE, 3, "Cannot read YAML"],
    ["a source that the policy refuses", REFUSED, 4, "use the https:// URL"],
    ["both", UNKNOWN_AND_REFUSED, 4, 'did you mean "hooks-approval"?'],
  ] as const
) {
  Deno.test(`every command on plans exits ${code} for a plan with ${problem}`, async () => {
    for (const command of ["plan check", "plan explain", "plan lock", "plan lock --check", "run -p"]) {
      const args = [...command.split(" "), "-", ...(command === "run -p" ? ["hi"] : [])];
      const result = await run(args, plan);
      assertEquals([command, result.code], [command, code], result.stderr);
      assertStringIncludes(result.stdout + result.stderr, expected);
    }
  });
}

Deno.test("plan check merges the files of -p, and checks each other file separately", async () => {
  const merged = await run(["plan", "check", "-p", "base.yaml", "-p", "less.yaml", "--json"]);
  const [first, ...rest] = JSON.parse(merged.stdout).data;
  const [{ plan_hash }] = JSON.parse((await run(["plan", "check", "merged.yaml", "--json"])).stdout).data;
  assertEquals(
    [merged.code, first.file, first.plan_hash, rest],
    [0, "base.yaml + less.yaml", plan_hash, []],
  );
  const alone = await run(["plan", "check", "base.yaml", "less.yaml"]);
  assertEquals(alone.code, 3); // less.yaml alone has no session
  const both = await run(["plan", "check", "-p", "base.yaml", "-p", "less.yaml", "merged.yaml"]);
  assertEquals([both.code, both.stdout.split("\n").length], [0, 3]);
});

Deno.test("plan diff merges the files of --from and of -p", async () => {
  const cases: [string[], number][] = [
    [["base.yaml", "merged.yaml"], 0],
    [["base.yaml", "-p", "base.yaml", "-p", "less.yaml"], 0],
    [["base.yaml", "-p", "base.yaml", "-p", "more.yaml"], 1],
    [["--from", "base.yaml", "--from", "more.yaml", "merged.yaml"], 0],
    [["--from", "base.yaml", "--from", "less.yaml", "-p", "base.yaml", "-p", "more.yaml"], 1],
  ];
  for (const [args, expected] of cases) {
    const { code, stderr } = await run(["plan", "diff", ...args]);
    assertEquals([args, code], [args, expected], stderr);
  }
  const wrong: string[][] = [["base.yaml"], ["-p", "base.yaml"], [
    "base.yaml",
    "less.yaml",
    "-p",
    "more.yaml",
  ]];
  for (const args of wrong) {
    const { code, stderr } = await run(["plan", "diff", ...args]);
    assertEquals([args, code], [args, 2]);
    assertStringIncludes(stderr, "name two, <from> and <to>");
  }
  assertStringIncludes((await run(["plan", "diff", "-", "-"])).stderr, "stdin can be read only once");
});

Deno.test("module new maps every entry point of the SDK", async () => {
  await run(["module", "new", "tool", "mapped"]);
  const { imports } = JSON.parse(await Deno.readTextFile(`${folder}/tool-mapped/deno.json`));
  const entries = Object.keys(imports).filter((name) => name.startsWith("preamp"));
  const parts = ["base", "loop", "context", "provider", "testing"];
  assertEquals(entries, ["preamp", ...parts.map((part) => `preamp/${part}`)]);
});

Deno.test("a text on stdin that is not UTF-8 is wrong usage, and no bug", async () => {
  for (const args of [["plan", "check", "-"], ["config", "check", "-"], ["replay", "-"], ["run", "-"]]) {
    const io = fakeIo({ cwd: new URL(`file://${folder}/`), env: { PREAMP_TRUST: "1" } });
    const text = () => Promise.reject(new TypeError("The encoded data is not valid"));
    const code = await cli(args, { ...io, in: { ...io.in, text } });
    assertEquals([code, io.stderr.split("\n")[0]], [
      2,
      "error: Cannot read stdin: it is not UTF-8 text; convert it, such as with iconv",
    ]);
  }
});

Deno.test("source add refuses an id that no document may have as a key", async () => {
  const { code, stderr } = await run(["source", "add", "constructor", "./tool.ts"]);
  assertEquals([code, stderr.includes('"constructor" is not the id of a module')], [2, true]);
});

Deno.test("module hash reports a URL with a lone % as any other that cannot be fetched", async () => {
  const { code, stderr } = await run(["module", "hash", "http://127.0.0.1:1/%zz.ts"]);
  assertEquals([code, /URIError|^ +at /m.test(stderr)], [1, false], stderr);
});

Deno.test("an overlay in another folder must not have relative paths, of any permission and any agent", async () => {
  await Deno.mkdir(`${folder}/other`, { recursive: true });
  const overlays = [
    ...["read", "write", "ffi"].map((name) => `permissions: {${name}: [./data]}\n`),
    ...["config", "file"].map((name) => `agents: {${name}: {permissions: {read: [./data]}}}\n`),
  ];
  for (const overlay of overlays) {
    await Deno.writeTextFile(`${folder}/other/overlay.yaml`, overlay);
    const { code, stderr } = await run(["plan", "check", "-p", "base.yaml", "-p", "other/overlay.yaml"]);
    assertEquals([code, stderr.includes('"./data" is relative')], [2, true], overlay + stderr);
  }
});

Deno.test("config check prints its findings as JSON", async () => {
  const { code, stdout } = await run(["config", "check", "-", "--json"], "limits: {max_tool_call: 1}\n");
  const { file, ok, errors } = JSON.parse(stdout);
  assertEquals([code, file, ok, errors.length, errors[0].path], [
    3,
    "<stdin>",
    false,
    1,
    "limits.max_tool_call",
  ]);
});

Deno.test("version and --version are the same", async () => {
  const [command, flag, json] = [
    await run(["version"]),
    await run(["--version"]),
    await run(["-V", "--json"]),
  ];
  assertEquals([command.code, command.stdout], [0, flag.stdout]);
  assertEquals(JSON.parse(json.stdout).deno, Deno.version.deno);
  assertStringIncludes((await run(["version", "now"])).stderr, "flags only");
});

Deno.test("help names every command, and describes all, a group or one as JSON", async () => {
  const { stdout } = await run(["help"]);
  const lines = stdout.split("\n").map((line) => line.trim().split(/ {2,}/).join(": "));
  for (const { name, summary } of COMMANDS) assert(lines.includes(`${name}: ${summary}`), name);
  const wide = fakeIo({ terminal: true });
  await cli(["help", "run"], wide);
  const lines_of_text = wide.stdout.split("\n").filter((line) => !line.startsWith("  preamp "));
  assertEquals(lines_of_text.filter((line) => line.length > 80), []);
  const names = async (...words: string[]) =>
    JSON.parse((await run(["help", ...words, "--json"])).stdout).data.map((one: { name: string }) =>
      one.name
    );
  assertEquals(await names(), COMMANDS.map(({ name }) => name));
  assertEquals(await names("source"), ["source add", "source remove", "source list"]);
  assertEquals(await names("plan", "diff"), ["plan diff"]);
  assertEquals((await run(["help", "plna", "--json"])).code, 2);
});
