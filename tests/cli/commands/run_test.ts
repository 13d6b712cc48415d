import { createRuntime } from "../../../src/app/runtime.ts";
import { cli } from "../../../src/cli/mod.ts";
import { readArguments } from "../../../src/cli/arguments.ts";
import { continuation } from "../../../src/cli/run_session.ts";
import { TERMINAL } from "../../../src/cli/terminal_caller.ts";
import { EXIT, exitOfCode, exitOfStatus } from "../../../src/cli/errors.ts";
import { cutToWidth, tableText, wrapText } from "../../../src/cli/terminal/format.ts";
import { openSqliteStore } from "../../../src/store/sqlite/sqlite_store.ts";
import { assert, assertEquals, assertMatch, assertStringIncludes } from "../../assert.ts";
import { fakeIo } from "../../support/io.ts";
import { temporaryFolder } from "../../support/folder.ts";

const TALKING = {
  session: { orchestrator: "loop-basic", context: "context-simple" },
  providers: [{ module: "provider-mock", config: { response: "Hello." } }],
};
const ASKING = `
session: {orchestrator: loop-streaming, context: context-simple}
providers: [provider-mock]
tools: [tool-calculator]
hooks: [{module: hooks-approval, config: {rules: [{tool: calculator, action: ask}]}}]
`;

Deno.test("run asks at the terminal and continues as decided", async () => {
  const io = fakeIo({ terminal: true, stdin: ASKING, lines: ["y"] });
  assertEquals(await cli(["run", "-p", "-", "compute 6*7"], io), 0);
  assertEquals(io.stdout, "6*7 is 42.\n");
  assertStringIncludes(io.stderr, "Allow calculator?");
  assertStringIncludes(io.stderr, "allowed calculator by terminal");
});

const PAUSING = `
session: {orchestrator: loop-streaming, context: context-simple}
providers: [provider-mock]
tools: [tool-calculator]
limits: {max_tool_calls: 0, on_limit: pause}
`;

Deno.test("run asks at the terminal to raise a limit", async () => {
  const io = fakeIo({ terminal: true, stdin: PAUSING, lines: ["y"] });
  assertEquals(await cli(["run", "-p", "-", "compute 6*7"], io), 0);
  assertEquals(io.stdout, "6*7 is 42.\n");
  assertStringIncludes(io.stderr, "The run has reached max_tool_calls: 0 of 0 tool calls are used.");
});

Deno.test("without a person, and with --yes, a run ends at its limit", async () => {
  for (const flags of [[], ["--yes"]]) {
    const io = fakeIo({ stdin: PAUSING });
    assertEquals(await cli(["run", "-p", "-", ...flags, "compute 6*7"], io), 1);
    assertStringIncludes(io.stderr, "incomplete (limit:max_tool_calls)");
    assertEquals(io.stderr.includes("no one could be asked"), false);
  }
});

Deno.test("run answers with the demo agent, with and without a terminal", async () => {
  for (const options of [{}, { terminal: true, lines: ["y"] }]) {
    await using folder = await temporaryFolder();
    const io = fakeIo({ ...options, cwd: new URL(`file://${folder.path}/`) });
    assertEquals(await cli(["run", "What is 6 × 7?"], io), EXIT.done, io.stderr);
    assertEquals(io.stdout, "6 × 7 is 42.\n");
    assertEquals(io.stderr.includes("Allow calculator?"), "terminal" in options);
  }
});

Deno.test("a model of -m without its key is answered with the variable, and with nothing of a plan", async () => {
  await using folder = await temporaryFolder();
  const cwd = new URL(`file://${folder.path}/`);
  await Deno.writeTextFile(`${folder.path}/own.yaml`, JSON.stringify(TALKING));
  const of = async (...args: string[]) => {
    const io = fakeIo({ cwd, stdin: "" });
    assertEquals(await cli(["run", ...args, "hi"], io), EXIT.failed);
    return io.stderr;
  };
  for (const args of [["-m", "groq/x"], ["-m", "groq/x", "-p", "own.yaml"]]) {
    const text = await of(...args);
    assertMatch(
      text,
      /^error: Cannot use provider-groq without a key: set the variable GROQ_API_KEY; keys /m,
    );
    assertEquals(/\bplan\b|api_key|providers\[/.test(text), false, text);
  }
  const config = { api_key: "${MY_GROQ_KEY}", model: "x" };
  const plan = { ...TALKING, providers: [{ module: "provider-groq", config, required: true }] };
  await Deno.writeTextFile(`${folder.path}/groq.yaml`, JSON.stringify(plan));
  assertMatch(await of("-p", "groq.yaml"), /groq\.yaml {2}providers\[0\] {2}.*set the variable MY_GROQ_KEY;/);
});

/** Returns what the mock model was sent, which it repeats, and the end of a command. */
async function runWithInput(args: readonly string[], stdin: string, options: { terminal?: boolean } = {}) {
  await using folder = await temporaryFolder();
  const io = fakeIo({ ...options, stdin, cwd: new URL(`file://${folder.path}/`) });
  const code = await cli(["run", "--json", ...args], io);
  const sent = io.stdout === "" ? undefined : JSON.parse(io.stdout).output_text.split('"')[1];
  return { code, sent, stderr: io.stderr };
}

Deno.test("run adds what is piped in to the prompt, in a fence that it cannot close", async () => {
  for (
    const [stdin, added] of [
      ["one\ntwo\n", "\n\nStandard input:\n\n```text\none\ntwo\n```"],
      ["one\r\n\n\n", "\n\nStandard input:\n\n```text\none\r\n\n\n```"],
      ["a\n```\nb\n`````\n", "\n\nStandard input:\n\n``````text\na\n```\nb\n`````\n``````"],
      ["", ""],
      [" \n", ""],
    ] as const
  ) {
    assertEquals((await runWithInput(["sum it up"], stdin)).sent, `sum it up${added}`);
  }
  const words = [["--stdin=ignore", "sum it up"], ["sum it up", "--stdin", "ignore"]];
  for (const args of words) assertEquals((await runWithInput(args, "one")).sent, "sum it up");
  assertEquals((await runWithInput(["sum it up"], "one", { terminal: true })).sent, "sum it up");
  for (const args of [[], ["-"]]) assertEquals((await runWithInput(args, "one\n")).sent, "one");
});

Deno.test("run --file sends a file along, and says how much it is before", async () => {
  await using folder = await temporaryFolder();
  await Deno.writeTextFile(`${folder.path}/notes.txt`, "the word is kumquat\n");
  const cwd = new URL(`file://${folder.path}/`);
  const io = fakeIo({ cwd });
  assertEquals(await cli(["run", "--file", "notes.txt", "What is @notes.txt?"], io), EXIT.done, io.stderr);
  assertMatch(
    io.stdout,
    /^You said: "What is @notes.txt\?\n\nFile notes.txt:\n\n```text\nthe word is kumquat\n```"/,
  );
  assertMatch(io.stderr, /^With notes.txt \(20 bytes\): about \d+ tokens\n/);
  const named = fakeIo({ cwd });
  await cli(["run", "What is @notes.txt?"], named);
  assertMatch(named.stdout, /^You said: "What is @notes.txt\?"/); // a script may have got its prompt from anyone
});

Deno.test("run refuses more input than a prompt may have, and says what to do", async () => {
  const { code, stderr } = await runWithInput(["--limits.max_body_bytes", "100", "x"], "é".repeat(51));
  assertEquals(code, EXIT.usage);
  assertStringIncludes(stderr, "Cannot read stdin: it has more than 100 bytes");
  assertStringIncludes(stderr, "--stdin=ignore");
  const fits = await runWithInput(["--limits.max_body_bytes", "100", "x"], "é".repeat(50));
  assertEquals(fits.code, EXIT.done);
  for (
    const [args, message] of [
      [["--stdin=ignore"], "Cannot run without a prompt"],
      [["--stdin=ignore", "-"], "Cannot use --stdin=ignore: - reads the prompt from stdin"],
      [["--stdin=ignore", "-p", "-", "x"], "Cannot use --stdin=ignore: - reads the plan from stdin"],
      [["--stdin=none", "x"], "--stdin: must be read or ignore"],
    ] as const
  ) {
    const refused = await runWithInput(args, "one");
    assertEquals([refused.code, refused.stderr.includes(message)], [EXIT.usage, true], refused.stderr);
  }
});

/** A call is asked about, and one of a sub-agent too. Both hooks would allow a call after their timeout. */
const ASKING_AGENTS = JSON.stringify({
  session: { orchestrator: "loop-basic", context: "context-simple" },
  providers: [calling("task", { agent: "b", instruction: "go" })],
  tools: ["tool-task", "tool-calculator"],
  hooks: [{
    module: "hooks-approval",
    config: { rules: [{ tool: "*", action: "ask", default: "allow" }] },
  }],
  agents: {
    b: { description: "adds", providers: [calling("calculator", { expression: "6*7" })], agents: "none" },
  },
});

/** Returns a provider that calls a tool, then ends. */
function calling(name: string, args: unknown) {
  const responses = [{ tool_calls: [{ name, arguments: args }] }, { text: "Done." }];
  return { module: "provider-mock", config: { responses } };
}

Deno.test("run denies what no one can be asked about, of sub-agents too, whatever the default is", async () => {
  const run = async (...flags: string[]) => {
    const io = fakeIo({ stdin: ASKING_AGENTS });
    const code = await cli(["run", "-p", "-", "--json", ...flags, "hi"], io);
    return { code, run: JSON.parse(io.stdout), stderr: io.stderr };
  };
  const denied = (approvals: { tool_name: string; decision: string }[]) =>
    approvals.map(({ tool_name, decision }) => [tool_name, decision]);
  const codes = (warnings: { code: string }[]) => warnings.map(({ code }) => code);
  const nothing = await run();
  assertEquals([nothing.code, nothing.run.tool_call_count], [EXIT.refused, 0]);
  assertEquals(denied(nothing.run.approvals), [["task", "unanswered"]]);
  assertEquals(codes(nothing.run.warnings), ["approval_unanswered"]);
  assertStringIncludes(nothing.stderr, "--allow task or --yes");
  const task = await run("--allow", "task");
  assertEquals([task.code, denied(task.run.approvals)], [EXIT.refused, [["calculator", "unanswered"]]]);
  for (const flags of [["--allow", "task", "--allow", "calc*"], ["--yes"]]) {
    const all = await run(...flags);
    assertEquals([all.code, all.run.approvals, codes(all.run.warnings)], [EXIT.done, [], []]);
  }
});

Deno.test("run names the command that was denied as a rule of --allow, which then allows it", async () => {
  await using folder = await temporaryFolder();
  const plan = (command: string) =>
    JSON.stringify({
      session: { orchestrator: "loop-basic", context: "context-simple" },
      providers: [calling("bash", { command })],
      tools: [{ module: "tool-bash", config: { root: folder.path }, permissions: { run: ["echo"] } }],
      hooks: ["hooks-approval"],
    });
  const run = async (command: string, ...flags: string[]) => {
    const io = fakeIo({ stdin: plan(command) });
    return { code: await cli(["run", "-p", "-", ...flags, "hi"], io), stderr: io.stderr };
  };
  const denied = await run("echo one two");
  assertEquals(denied.code, EXIT.refused);
  assertStringIncludes(denied.stderr, "or with --allow 'bash:echo one two' or --yes");
  assertEquals((await run("echo one two", "--allow", "bash:echo one two")).code, EXIT.done);
  assertStringIncludes((await run("echo one > two")).stderr, "or with --allow bash or --yes");
});

Deno.test("run refuses a rule of --allow that names no tool", async () => {
  for (const rule of ["", ":git *", "bash:"]) {
    const io = fakeIo();
    assertEquals(await cli(["run", `--allow=${rule}`, "hi"], io), EXIT.usage);
    assertStringIncludes(
      io.stderr,
      'Cannot use --allow: must be a tool, or a tool and a command, such as "bash:git *"',
    );
  }
});

Deno.test("run names the command that continues its session, with the store of the run", async () => {
  await using folder = await temporaryFolder();
  const plan = `${folder.path}/plan.json`;
  await Deno.writeTextFile(plan, JSON.stringify(TALKING));
  for (const name of ["one.db", "my one.db"]) {
    const store = `sqlite:${folder.path}/${name}`;
    const io = fakeIo();
    assertEquals(await cli(["run", "-p", plan, "--store", store, "hi"], io), EXIT.done);
    const word = name.includes(" ") ? `'${store}'` : store;
    assertStringIncludes(io.stderr, `Continue with: preamp run --store ${word} --session ses_`);
  }
});

Deno.test("the command that continues a session has no URL of a store, which may have a password", () => {
  const flags = [{ name: "config", value: "FILE", help: "" }, { name: "store", value: "STORE", help: "" }];
  const words = ["--config=my file.yaml", "--store", "postgres://ann:secret@db.example/runs"];
  assertEquals(
    continuation(readArguments(words, flags), { session_id: "ses_1" }),
    `preamp run --config 'my file.yaml' --store … --session ses_1 "…"`,
  );
});

Deno.test("help says which store is the default: of run without --session memory", async () => {
  const helps = await Promise.all(["run", "serve"].map(async (name) => {
    const io = fakeIo();
    assertEquals(await cli(["help", name], io), EXIT.done);
    return io.stdout.replace(/\s+/g, " ");
  }));
  for (const help of helps) assertStringIncludes(help, "postgres://…; default sqlite:~/.preamp/preamp.db");
  assertEquals(helps.map((help) => help.includes("store is memory")), [true, false]);
  assertEquals(helps.map((help) => help.includes("(run:")), [false, false]);
});

Deno.test("run displays the message of a failed model call once", async () => {
  const failing = (orchestrator: string) =>
    JSON.stringify({
      session: { orchestrator, context: "context-simple" },
      providers: [{
        module: "provider-mock",
        config: { responses: [{ error: { type: "AuthenticationError", message: "The key is wrong" } }] },
      }],
    });
  for (const orchestrator of ["loop-basic", "loop-streaming"]) {
    const io = fakeIo({ stdin: failing(orchestrator) });
    assertEquals(await cli(["run", "-p", "-", "hi"], io), EXIT.failed);
    assertEquals(io.stderr.split("The key is wrong").length, 2, io.stderr);
    assertStringIncludes(io.stderr, "error: The model call failed (provider_auth)\n");
  }
});

Deno.test("run displays where the code of a module failed", async () => {
  await using folder = await temporaryFolder();
  const write = (name: string, text: string) => Deno.writeTextFile(`${folder.path}/${name}`, text);
  await write(
    "loop.ts",
    'export const mount = (c) => c.mount("orchestrator", { execute() { throw new Error("loop boom"); } });',
  );
  await write(
    "hook.ts",
    'export const mount = (c) => {\n  c.hooks.register("session:start", () => { throw new Error("hook boom"); }, { name: "h" });\n};',
  );
  await write(
    "plan.yaml",
    "session: {orchestrator: {module: loop-x, source: ./loop.ts}, context: context-simple}\n" +
      "providers: [provider-mock]\nhooks: [{module: hooks-x, source: ./hook.ts}]\n",
  );
  const io = fakeIo();
  const inline = ["--modules.inline", `file://${folder.path}/loop.ts,file://${folder.path}/hook.ts`];
  assertEquals(await cli(["run", "-p", `${folder.path}/plan.yaml`, ...inline, "hi"], io), EXIT.failed);
  assertMatch(io.stderr, /warning: hook_failed: .*hook boom at \S*hook\.ts:2:\d+\n/);
  assertMatch(io.stderr, /error: loop boom \(internal\) at \S*loop\.ts:1:\d+\n/);
});

Deno.test("run ends on the second Ctrl-C during a model call", async () => {
  const slow = "session: {orchestrator: loop-streaming, context: context-simple}\n" +
    "providers: [{module: provider-mock, config: {responses: [{delay_ms: 60000, text: late}]}}]\n";
  const io = fakeIo({ stdin: slow });
  const write = io.err.write;
  io.err.write = (text) => {
    write(text);
    if (!text.startsWith("asking")) return;
    io.stop();
    try {
      io.stop();
    } catch { /* exit never returns */ }
  };
  assertEquals(await cli(["run", "-p", "-", "hi"], io), EXIT.interrupted);
  assertEquals(io.exits, [EXIT.interrupted]);
});

Deno.test("run -m runs the demo agent on a model, and names the providers for an unknown one", async () => {
  const io = fakeIo();
  assertEquals(await cli(["run", "-m", "mock/any/model:1", "Good day"], io), EXIT.done);
  assertStringIncludes(io.stdout, 'You said: "Good day".');
  const unknown = fakeIo();
  assertEquals(await cli(["run", "--model=mocc/x", "hi"], unknown), EXIT.usage);
  assertStringIncludes(unknown.stderr, 'there is no provider "mocc"');
  assertStringIncludes(unknown.stderr, "did you mean mock?");
  const invalid = fakeIo();
  assertEquals(await cli(["run", "-m", "gpt 5", "hi"], invalid), EXIT.usage);
  assertStringIncludes(
    invalid.stderr,
    "Cannot use --model: Cannot read model: must be PROVIDER or PROVIDER/MODEL",
  );
});

Deno.test("PREAMP_MODEL is the model of a run without a plan", async () => {
  const io = fakeIo({ env: { PREAMP_MODEL: "mocc/x" } });
  assertEquals(await cli(["run", "hi"], io), EXIT.usage);
  assertStringIncludes(io.stderr, 'Cannot use model "mocc/x"');
  const planned = fakeIo({ env: { PREAMP_MODEL: "mocc/x" } });
  assertEquals(await cli(["run", "-p", "plans/minimal.yaml", "hi"], planned), EXIT.done);
});

Deno.test("run refuses an overlay of another folder that has relative paths", async () => {
  await using temporary = await temporaryFolder();
  const folder = temporary.path;
  await Deno.writeTextFile(`${folder}/over.yaml`, "tools: [{module: tool-mine, source: ./mod.ts}]\n");
  const io = fakeIo();
  assertEquals(
    await cli(["plan", "check", "-p", "plans/minimal.yaml", "-p", `${folder}/over.yaml`], io),
    EXIT.usage,
  );
  assertStringIncludes(io.stderr, '"./mod.ts" is relative');
  await Deno.writeTextFile(`${folder}/over.yaml`, "limits: {max_tool_calls: 1}\n");
  const fine = fakeIo();
  assertEquals(
    await cli(["plan", "check", "-p", "plans/minimal.yaml", "-p", `${folder}/over.yaml`], fine),
    EXIT.done,
  );
});

Deno.test("exitOfStatus() and exitOfCode() return the exit codes of src/docs/http.md", () => {
  const statuses = ["completed", "incomplete", "denied", "cancelled", "failed"] as const;
  assertEquals(statuses.map(exitOfStatus), [0, 1, 4, 130, 1]);
  const codes = [
    "plan_invalid",
    "plan_limit_exceeded",
    "policy_refused",
    "module_source_denied",
    "isolation_unavailable",
    "internal",
    "module_load_failed",
    undefined,
  ];
  assertEquals(codes.map(exitOfCode), [3, 3, 4, 4, 4, 1, 1, 1]);
});

Deno.test("tableText() and wrapText() count columns, not characters", () => {
  assertEquals(tableText([["漢字", "a"], ["abcd", "b"]]), "漢字  a\nabcd  b\n");
  assertEquals(wrapText("漢字 漢字 ab", 7), ["漢字", "漢字 ab"]);
});

Deno.test("cutToWidth() counts columns, not characters", () => {
  assertEquals(cutToWidth("short", 10), "short");
  assertEquals(cutToWidth("a long line", 6), "a lon…");
  assertEquals(cutToWidth("漢字漢字", 5), "漢字…");
  assert([...cutToWidth("e\u0301".repeat(9), 4)].length >= 7);
});

Deno.test("run --session last continues the session of the latest run, of more sessions than a page has", async () => {
  await using temporary = await temporaryFolder();
  const folder = temporary.path;
  const file = `${folder}/preamp.db`;
  const run = async (...words: string[]) => {
    const io = fakeIo();
    assertEquals(await cli(["run", "--store", `sqlite:${file}`, "--json", ...words, "Hello"], io), EXIT.done);
    return JSON.parse(io.stdout).session_id;
  };
  const first = await run("--session", "new");
  const store = await openSqliteStore(file);
  const runtime = createRuntime({ store });
  for (let count = 0; count < 101; count++) {
    const handle = await runtime.runs.create({ prompt: "Hello", plan: TALKING }, TERMINAL);
    await handle.settled("end");
  }
  await runtime.close();
  await store.close();
  assertEquals(await run("--session", first), first);
  assertEquals(await run("--session", "last"), first);
});
