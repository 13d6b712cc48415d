/**
 * What `preamp run` displays while it runs: the answer in pieces, notifications, warnings, failures; plans by
 * their name.
 */
import { assert, assertEquals, assertMatch, assertStringIncludes } from "../assert.ts";
import type { Result } from "./after_effects.ts";
import { runCommand, startProgram } from "./program.ts";

/** Streams the first half of its answer, then waits for the end of the run. */
const HALF = `
export async function mount(coordinator) {
  await coordinator.mount("providers", {
    name: "half",
    getInfo: () => ({ id: "half", display_name: "Half", credential_env_vars: [], capabilities: [], defaults: {}, config_fields: [] }),
    listModels: () => [],
    parseToolCalls: () => [],
    complete: (_request, { onDelta, signal }) => new Promise((_, reject) => {
      for (const delta of ["Once ", "upon ", "a time"]) onDelta({ block_index: 0, block_type: "text", delta });
      coordinator.hooks.emit("user:notification", { message: "half is there", level: "info" });
      signal.addEventListener("abort", () => reject(signal.reason));
    }),
  }, "half");
}
`;

const SESSION = "session: {orchestrator: loop-streaming, context: context-simple}\n";

/** Fails, is not written yet, reports its progress. */
const TOOLS = `
const tool = (name, execute) => ({ name, description: name, input_schema: { type: "object" }, execute });
export async function mount(coordinator) {
  await coordinator.mount("tools", tool("boom", () => {
    throw new Error("it broke");
  }));
  await coordinator.mount("tools", tool("later", () => ({ success: false, output: "Not written yet. Use the scripts." })));
  await coordinator.mount("tools", tool("copy", (_input, { progress }) => {
    progress("1 of 2 files");
    return "copied";
  }));
}
`;

const HOOK = `
export async function mount(coordinator) {
  coordinator.hooks.register("tool:post", () => ({ action: "continue", user_message: "The tool is done.", user_message_source: "guard" }));
}
`;

const NO_TOOL =
  `export async function mount(coordinator) { await coordinator.mount("tools", { name: "bad" }); }`;

const CALLS = `[{name: boom, arguments: {}}, {name: later, arguments: {}}, {name: copy, arguments: {}}]`;

const FILES: Readonly<Record<string, string>> = {
  "half.ts": HALF,
  "tools.ts": TOOLS,
  "hook.ts": HOOK,
  "no_tool.ts": NO_TOOL,
  "half.yaml": `${SESSION}providers: [{module: provider-half, source: ./half.ts}]\n`,
  "half_tools.yaml":
    `${SESSION}providers: [{module: provider-half, source: ./half.ts}]\ntools: [tool-calculator]\n`,
  "tools.yaml":
    `${SESSION}providers: [{module: provider-mock, config: {responses: [{text: Let me try., tool_calls: ${CALLS}}, Done.]}}]
tools: [{module: tool-tools, source: ./tools.ts}]
hooks: [{module: hooks-done, source: ./hook.ts}]
`,
  "skipped.yaml":
    `${SESSION}providers: [{module: provider-mock, config: {response: Hello}}]\ntools: [{module: tool-bad, source: ./no_tool.ts}]\n`,
  "home/plans/dev.yaml": `${SESSION}providers: [{module: provider-mock, config: {response: I am dev.}}]\n`,
  "plans/short.yaml": `${SESSION}providers: [{module: provider-mock, config: {response: I am short.}}]\n`,
  "over.yaml": "providers: [{module: provider-mock, config: {response: Laid over.}}]\n",
};

const folder = await Deno.makeTempDir();
for (const [name, text] of Object.entries(FILES)) {
  await Deno.mkdir(`${folder}/${name}`.replace(/[^/]*$/, ""), { recursive: true });
  await Deno.writeTextFile(`${folder}/${name}`, text);
}
globalThis.addEventListener("unload", () => Deno.removeSync(folder, { recursive: true }));

const ENV = { PREAMP_HOME: `${folder}/home`, PREAMP_TRUST: "1" };
const run = (...args: string[]): Promise<Result> =>
  runCommand(["run", ...args], { cwd: folder, env: ENV, stdin: "" });

for (
  const [plan, streamed] of [["half.yaml", "Once upon a time"], ["half_tools.yaml", ""]] as const
) {
  Deno.test(`run keeps what arrived of the answer on Ctrl-C (${plan})`, async () => {
    const options = { cwd: folder, env: ENV };
    await using program = await startProgram(["run", "-p", plan, "Tell me a story"], options);
    await program.stderr.until((text) => text.includes("half is there"));
    if (streamed === "") assertEquals(program.stdout.text, ""); // it may precede a tool call
    else assertEquals(await program.stdout.until((text) => text.includes("time")), streamed);
    program.kill("SIGINT");
    const { code, stdout, stderr } = await program.ended;
    assertEquals([code, stdout], [130, "Once upon a time\n"]);
    assertMatch(stderr, /^Stopping the answer; press Ctrl-C again to end the process\.$/m);
    assertMatch(stderr, /^cancelled: 0 model calls, 0 tool calls, [1-9]\d* tokens/m);
  });
}

Deno.test("run keeps what arrived of the answer when a limit ends the run", async () => {
  for (const plan of ["half.yaml", "half_tools.yaml"]) {
    const { code, stdout } = await run("-p", plan, "--limit", "max_duration_s=2", "Tell me a story");
    assertEquals([plan, code, stdout], [plan, 1, "Once upon a time\n"]);
  }
});

Deno.test("run shows where a tool failed, what one that is not written yet says, progress and a hook's message", async () => {
  const { code, stdout, stderr } = await run("-p", "tools.yaml", "go");
  assertEquals([code, stdout], [0, "Done.\n"], stderr);
  assertMatch(stderr, /^Let me try\.$/m);
  assertMatch(stderr, /^failed boom \{\}: it broke at \.\/tools\.ts:5:11$/m);
  assertMatch(stderr, /^failed later \{\}: Not written yet\. Use the scripts\. \(\d+ ms\)$/m);
  assertMatch(stderr, /^copy: 1 of 2 files$/m);
  assertMatch(stderr, /^note: The tool is done\. \(guard\)$/m);
});

Deno.test("run reports a skipped module once and whole; with --strict it does not start", async () => {
  const skipped =
    'warning: Module "tool-bad" was skipped: Cannot mount module "tool-bad": tool_execute: execute must be a function\n';
  const lenient = await run("-p", "skipped.yaml", "go");
  assertEquals([lenient.code, lenient.stdout], [0, "Hello\n"]);
  assertEquals(lenient.stderr.split("tool-bad").length, 3, lenient.stderr);
  assertStringIncludes(lenient.stderr, skipped);
  const strict = await run("-p", "skipped.yaml", "--strict", "go");
  assertEquals(
    [strict.code, strict.stdout, strict.stderr],
    [1, "", `${skipped}error: Cannot start the run: --strict does not allow warnings, and there was 1\n`],
  );
  assertEquals((await run("--profile", "short", "--strict", "go")).code, 0);
});

Deno.test("run --strict lets a run end that warns on the way, and exits 1", async () => {
  const warn = HOOK.replace('"guard"', '"guard", user_message_level: "warning"');
  await Deno.writeTextFile(`${folder}/warn.ts`, warn);
  await Deno.writeTextFile(`${folder}/warn.yaml`, FILES["tools.yaml"]!.replace("./hook.ts", "./warn.ts"));
  const { code, stdout, stderr } = await run("-p", "warn.yaml", "--strict", "go");
  assertEquals([code, stdout], [1, "Done.\n"]);
  assert(stderr.endsWith("error: --strict does not allow warnings, and there were 2\n"), stderr);
});

Deno.test("run --profile takes a plan by its name, from plans/ and from the user's home; --bundle is the same", async () => {
  assertEquals((await run("--profile", "short", "go")).stdout, "I am short.\n");
  assertEquals((await run("--bundle", "dev", "go")).stdout, "I am dev.\n");
  assertEquals((await run("--profile", "short", "-p", "over.yaml", "go")).stdout, "Laid over.\n");
  const cases: [string[], string][] = [
    [
      ["--profile", "shrot"],
      `there is no plan named "shrot" in plans/ or home/plans/: did you mean "short"? The plans are dev, short`,
    ],
    [["--bundle", "over.yaml"], "The plans are dev, short; a file is named with -p FILE"],
    [["--profile", "short", "--bundle", "short"], "they name the same plan"],
  ];
  for (const [args, expected] of cases) {
    const { code, stdout, stderr } = await run(...args, "go");
    assertEquals([args, code, stdout], [args, 2, ""], stderr);
    assertStringIncludes(stderr, expected);
  }
});
