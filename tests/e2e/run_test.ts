/** `preamp run` and the commands around it: what they write where, and the code they end with. */
import { assert, assertEquals, assertMatch, assertStringIncludes } from "../assert.ts";
import { runCommand, runProgram, startProgram } from "./program.ts";
import { temporaryFolder } from "../support/folder.ts";

const SESSION = "session: {orchestrator: loop-streaming, context: context-simple}\n";
const CALCULATOR = `${SESSION}providers: [provider-mock]\ntools: [tool-calculator]\n`;
const ASKING =
  `${CALCULATOR}hooks: [{module: hooks-approval, config: {rules: [{tool: calculator, action: ask}]}}]\n`;
const SLOW =
  `${SESSION}providers: [{module: provider-mock, config: {responses: [{delay_ms: 60000, text: never}]}}]\n`;

/** Returns a module whose tool waits until a file exists. */
function waitsFor(file: string): string {
  return `
async function execute(_input, { progress }) {
  progress("waiting");
  while (!await Deno.stat(${
    JSON.stringify(file)
  }).catch(() => null)) await new Promise((next) => setTimeout(next, 10));
  return "done";
}
export async function mount(coordinator) {
  await coordinator.mount("tools", { name: "wait", description: "Waits.", input_schema: { type: "object" }, execute });
}
`;
}

Deno.test("run writes the answer alone to stdout, progress in plain lines to stderr", async () => {
  const { code, stdout, stderr } = await runProgram(["run", "-p", "plans/calculator.yaml", "What is 6 × 7?"]);
  assertEquals([code, stdout], [0, "6 × 7 is 42.\n"]);
  assertMatch(stderr, /^called calculator \{"expression":"6\*7"\} = 42 \(\d+ ms\)$/m);
  assertMatch(stderr, /^completed: 2 model calls, 1 tool call, [\d,]+ tokens, /m);
  assert(!stderr.includes("\x1b") && !stderr.includes("\r"));
});

Deno.test("run reads the prompt from stdin without an argument, and the plan with `-p -`", async () => {
  const prompt = await runProgram(["run", "-p", "plans/minimal.yaml"], { stdin: "Hello\n" });
  assertEquals([prompt.code, prompt.stdout], [0, "Hello from the smallest plan.\n"]);
  const plan = await runProgram(["run", "-p", "-", "compute 2*21"], { stdin: CALCULATOR });
  assertEquals([plan.code, plan.stdout], [0, "2*21 is 42.\n"]);
});

Deno.test("run gives the run object, or run and events, as JSON", async () => {
  const json = await runCommand(["run", "-p", "plans/minimal.yaml", "--output-format", "json", "Hello"]);
  const run = JSON.parse(json.stdout);
  assertEquals([json.code, run.object, run.status], [0, "run", "completed"]);
  const trace = await runCommand(["run", "-p", "plans/minimal.yaml", "--output-format=json-trace", "Hello"]);
  const { run: traced, events } = JSON.parse(trace.stdout);
  assertEquals(events.at(-1).data.run, traced);
  assertEquals(
    events.map((entry: { seq: number }) => entry.seq),
    events.map((_: unknown, index: number) => index + 1),
  );
});

Deno.test("run without a plan is the plan named default, else the demo", async () => {
  await using temporary = await temporaryFolder();
  const folder = temporary.path;
  const demo = await runCommand(["run", "hi", "--output-format", "json"], { cwd: folder });
  assertStringIncludes(JSON.stringify(JSON.parse(demo.stdout).isolation), "tool-todo");
  await Deno.mkdir(`${folder}/plans`);
  await Deno.copyFile("plans/minimal.yaml", `${folder}/plans/default.yaml`);
  const named = await runCommand(["run", "hi"], { cwd: folder, env: { PREAMP_TRUST: "1" } });
  assertEquals(named.stdout, "Hello from the smallest plan.\n");
});

Deno.test("run lays plans over one another, as plan check does", async () => {
  const files = ["plans/calculator.yaml", "plans/minimal.yaml"];
  const merged = await runCommand([
    "run",
    "-p",
    files[0]!,
    "-p",
    files[1]!,
    "--output-format",
    "json",
    "Hello",
  ]);
  const checked = await runCommand(["plan", "check", "--json", "-p", files[0]!, "-p", files[1]!]);
  const run = JSON.parse(merged.stdout);
  const [{ plan_hash }] = JSON.parse(checked.stdout).data;
  assertEquals([run.output_text, run.plan_hash], ["Hello from the smallest plan.", plan_hash]);
  assertEquals(Object.keys(run.isolation).includes("tool-calculator"), true);
});

Deno.test("run without a terminal denies a call that needs an approval, and names what allows it", async () => {
  const { code, stdout, stderr } = await runCommand(["run", "-p", "-", "compute 6*7"], { stdin: ASKING });
  assertEquals(code, 4);
  assertStringIncludes(stdout, "No one could be asked: Allow calculator?");
  assertStringIncludes(stderr, "approval_unanswered: Denied a call of calculator: no one could be asked");
  assertStringIncludes(stderr, "with --allow calculator or --yes");
});

Deno.test("run exits with the code of its status", async () => {
  const denied =
    `${CALCULATOR}hooks: [{module: hooks-approval, config: {rules: [{tool: calculator, action: deny}]}}]\n`;
  const broken =
    `${SESSION}providers: [{module: provider-mock, config: {responses: [{error: {type: AuthenticationError, message: no key}}]}}]\n`;
  const cases: [string[], string, number, string][] = [
    [
      ["-p", "-", "--limit", "max_tool_calls=0", "compute 2*3"],
      CALCULATOR,
      1,
      "incomplete (limit:max_tool_calls)",
    ],
    [["-p", "-", "compute 2*3"], denied, 0, "denied calculator"],
    [["-p", "-", "hi"], "tols: []\n", 3, "<stdin>:1:1"],
    [["-p", "-", "hi"], "session: [\n", 3, "<stdin>:"],
    [["-p", "-", "--limit", "max_iterations=51", "hi"], CALCULATOR, 4, "max_iterations"],
    [["-p", "-", "hi"], `${CALCULATOR}limits: {max_iterations: 51}\n`, 4, "limits.max_iterations"],
    [["-p", "-", "hi"], broken, 1, "provider_auth"],
  ];
  for (const [args, stdin, expected, message] of cases) {
    const { code, stderr } = await runCommand(["run", ...args], { stdin });
    assertEquals([args, code], [args, expected], stderr);
    assertStringIncludes(stderr, message);
  }
});

Deno.test("run stops a model call at the first Ctrl-C, and exits 130", async () => {
  await using program = await startProgram(["run", "-p", "-", "hi"], { stdin: SLOW });
  await program.stderr.until((text) => text.includes("asking mock"));
  program.kill("SIGINT");
  const { code, stdout, stderr } = await program.ended;
  assertEquals([code, stdout], [130, ""]);
  assertMatch(stderr, /^Stopping the answer; press Ctrl-C again to end the process\.$/m);
  assertMatch(stderr, /^cancelled: 0 model calls/m);
});

Deno.test("run lets a tool end after the first Ctrl-C, and stops it at the second", async () => {
  for (const presses of [1, 2]) {
    await using folder = await temporaryFolder();
    const ends = `${folder.path}/ends`;
    await Deno.writeTextFile(`${folder.path}/tool.ts`, waitsFor(ends));
    await Deno.writeTextFile(
      `${folder.path}/plan.yaml`,
      `${SESSION}providers: [{module: provider-mock, config: {responses: [{tool_calls: [{name: wait}]}, never]}}]\n` +
        `tools: [{module: tool-wait, source: ./tool.ts, permissions: {read: [${folder.path}]}}]\n`,
    );
    await using program = await startProgram(["run", "-p", `${folder.path}/plan.yaml`, "hi"]);
    await program.stderr.until((text) => text.includes("wait: waiting"));
    program.kill("SIGINT");
    await program.stderr.until((text) => text.includes("Ctrl-C again to stop at once"));
    if (presses === 1) await Deno.writeTextFile(ends, "");
    else program.kill("SIGINT");
    const { code, stderr } = await program.ended;
    assertEquals([presses, code], [presses, 130], stderr);
    assertEquals([presses, stderr.includes("called wait {} = done")], [presses, presses === 1], stderr);
  }
});

Deno.test("wrong usage exits 2, writes nothing to stdout and suggests a correction", async () => {
  const cases: [string[], string][] = [
    [[], "Usage: preamp"],
    [["plan"], "preamp plan check"],
    [["rnu"], 'did you mean "run"?'],
    [["What is 6 × 7?"], "to run a prompt, write: preamp run 'What is 6 × 7?'"],
    [["What", "is", "6*7"], "to run a prompt, write: preamp run 'What is 6*7'"],
    [["plan", "chek"], 'did you mean "plan check"?'],
    [["--json"], "the command must come first"],
    [["run"], "empty"],
    [["run", "a", "b"], "quotes"],
    [["run", "--limt", "max_cost_usd=1", "hi"], "did you mean --limit?"],
    [["run", "--limit", "max_cost_us=1", "hi"], "max_cost_usd"],
    [["run", "--limit", "max_cost_usd", "hi"], "NAME=VALUE"],
    [["run", "-p"], "argument missing"],
    [["run", "-p", "nowhere.yaml", "hi"], "no such file\n"],
    [["run", "-p", "plans/minimal.yml", "hi"], 'no such file; did you mean "plans/minimal.yaml"?'],
    [["run", "-p", "plans", "hi"], "folder"],
    [["run", "--store", "memory", "--session", "ses_1", "hi"], "leave out --store memory"],
    [["run", "--output-format", "xml", "hi"], "json-trace"],
    [["plan", "check"], "no file"],
    [["plan", "check", "--json=yes", "x.yaml"], "does not take an argument"],
    [["module", "list", "all"], "flags only"],
    [["help", "srve"], 'did you mean "serve"?'],
    [["help", "run", "it"], 'Cannot use "it": the name of the command is run'],
    [["plan", "foo"], "Try: preamp help plan\n"],
    [["run", "--limit", "cost=1", "hi"], "the limits are max_iterations, "],
  ];
  for (const [args, message] of cases) {
    const { code, stdout, stderr } = await runCommand(args, { stdin: "" });
    assertEquals([args, code, stdout], [args, 2, ""], stderr);
    assertStringIncludes(stderr, message);
  }
});

Deno.test("plan check lists every finding with its place and hint, and accepts valid plans", async () => {
  const good = await runCommand(["plan", "check", "plans/minimal.yaml", "plans/todo.yaml"]);
  assertEquals(good.code, 0);
  assertMatch(good.stdout, /^plans\/minimal\.yaml: ok {2}sha256-\S+\nplans\/todo\.yaml: ok {2}sha256-\S+\n$/);
  const bad = await runCommand(["plan", "check", "-"], {
    stdin: `${CALCULATOR}tols: []\nlimits: {max_tool_calls: many}\n`,
  });
  assertEquals(bad.code, 3);
  assertMatch(bad.stdout, /^<stdin>:4:1 {2}tols {2}Cannot use .*\n {4}hint: did you mean "tools"\?$/m);
  assertMatch(bad.stdout, /^<stdin>:5:\d+ {2}limits\.max_tool_calls {2}Cannot /m);
  assertMatch(bad.stdout, /^<stdin>: 2 errors$/m);
});

Deno.test("plan check exits 4 for a plan that the policy refuses, and prints JSON", async () => {
  const { code, stdout } = await runCommand(["plan", "check", "--json", "-"], {
    stdin: `${CALCULATOR}limits: {max_iterations: 51}\n`,
  });
  const [found] = JSON.parse(stdout).data;
  assertEquals([code, found.file, found.ok, found.errors.length], [4, "<stdin>", false, 1]);
});

Deno.test("module list, help and --version write to stdout and exit 0", async () => {
  const modules = await runCommand(["module", "list", "--json"]);
  const ids = JSON.parse(modules.stdout).data.map((one: { id: string }) => one.id);
  assertEquals([modules.code, ids.includes("tool-calculator")], [0, true]);
  const table = await runCommand(["module", "list"]);
  assertMatch(table.stdout, /^tool-calculator +tool +\d+\.\d+\.\d+ /m);
  for (
    const args of [
      ["help"],
      ["--help"],
      ["-h"],
      ["help", "serve"],
      ["serve", "--help"],
      ["run", "-h"],
      [
        "help",
        "plan",
      ],
      ["plan", "--help"],
      ["store", "-h"],
    ]
  ) {
    const { code, stdout } = await runCommand(args);
    assertEquals([args, code], [args, 0]);
    assertStringIncludes(stdout, "preamp ");
  }
  const version = await runCommand(["--version"]);
  assertMatch(version.stdout, /^preamp \d+\.\d+\.\d+ \(deno /);
});

Deno.test("run reads .env of a trusted folder, which overrides no variable and may not change how programs start", async () => {
  await using folder = await temporaryFolder();
  const plan =
    `${SESSION}providers: [{module: provider-mock, config: {response: "${"${GREETING} ${NAME}"}"}}]\n`;
  await Deno.writeTextFile(`${folder.path}/plan.yaml`, plan);
  await Deno.writeTextFile(
    `${folder.path}/.env`,
    'GREETING="Hey" # a comment\nNAME=Grace\nLD_PRELOAD=./x.so\n',
  );
  const options = { cwd: folder.path, env: { NAME: "Ada", PREAMP_HOME: `${folder.path}/home` } };
  assertEquals((await runCommand(["trust"], options)).code, 0);
  const { code, stdout, stderr } = await runProgram(["run", "-p", "plan.yaml", "hi"], options);
  assertEquals([code, stdout], [0, "Hey Ada\n"], stderr);
  assertStringIncludes(stderr, "warning: The variable LD_PRELOAD of .env is ignored: set it in the shell");
});
