/** `preamp chat` in a terminal of its own, in one without keys and colours, and in a pipe. */
import { assert, assertEquals, assertMatch, assertStringIncludes } from "../assert.ts";
import { HANGS_MS } from "../support/clock.ts";
import { temporaryFolder } from "../support/folder.ts";
import { type Program, ROOT, runCommand, runProgram, startProgram } from "./program.ts";

const CTRL_C = "\x03";
const CTRL_D = "\x04";
const UP = "\x1b[A";

/** Answers in words with 20 ms between them: how many messages there are, the last one, and a long story. */
const SLOW = `
export async function mount(coordinator) {
  await coordinator.mount("providers", {
    name: "slow",
    getInfo: () => ({ id: "slow", display_name: "Slow", credential_env_vars: [], capabilities: [], defaults: {}, config_fields: [] }),
    listModels: () => [],
    parseToolCalls: () => [],
    async complete({ messages }, { onDelta, signal }) {
      const last = messages.at(-1).content;
      const asked = typeof last === "string" ? last : last.map(({ text }) => text).join("");
      const story = asked === "story" ? "once upon a time ".repeat(25) : "";
      const text = \`\${messages.length}: \${asked}! \${story}\`;
      for (const delta of text.split(/(?<= )/)) {
        signal.throwIfAborted();
        onDelta({ block_index: 0, block_type: "text", delta });
        await new Promise((next) => setTimeout(next, 20));
      }
      return { content: [{ type: "text", text }], usage: { input_tokens: 10, output_tokens: 5 } };
    },
  }, "slow");
}
`;

const SLOW_PLAN = "session: {orchestrator: loop-streaming, context: context-simple}\n" +
  "providers: [{module: provider-slow, source: ./slow.ts}]\n";

/** Waits until the terminal displays a text after the last one that was waited for. */
class Screen {
  #seen = 0;
  constructor(readonly program: Program) {}

  async shows(text: string): Promise<void> {
    const late = setTimeout(() => this.program.kill("SIGKILL"), HANGS_MS); // then stdout ends
    const whole = shownText(
      await this.program.stdout.until((whole) => shownText(whole).slice(this.#seen).includes(text)),
    );
    clearTimeout(late);
    const at = whole.indexOf(text, this.#seen);
    assert(at >= 0, `The terminal does not display ${JSON.stringify(text)}:\n${whole.slice(this.#seen)}`);
    this.#seen = at + text.length;
  }

  /** Waits until the conversation has begun, or an answer has ended. */
  async begins(): Promise<void> {
    await this.shows("Ctrl-D leaves.");
  }
  async answered(): Promise<void> {
    await this.shows(" tokens");
  }

  async send(text: string): Promise<void> {
    await this.program.type(`${text}\r`);
  }
}

// deno-lint-ignore no-control-regex -- control sequences begin with a control character
const CONTROLS = /\x1b\[[\d;?<>=]*[A-Za-z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[^\x1b]{0,20}$/g;

/** Returns what is written to a terminal without control sequences, also one that has not arrived whole. */
function shownText(written: string): string {
  return written.replaceAll(CONTROLS, "");
}

async function slowFolder() {
  const folder = await temporaryFolder();
  await Deno.writeTextFile(`${folder.path}/slow.ts`, SLOW);
  await Deno.writeTextFile(`${folder.path}/slow.yaml`, SLOW_PLAN);
  return folder;
}

Deno.test("chat --demo mends a project in a terminal: asks, shows the change, runs the test, counts the cost", async () => {
  await using program = await startProgram(["chat", "--demo"], { terminal: true });
  const screen = new Screen(program);
  await screen.shows("No model is called");
  await screen.shows("+  sum=$((sum + price))");
  await screen.shows("Allow once");
  await screen.send("a message that was meant for the agent"); // has a y, an r, an n and Enter
  await screen.shows("its key, or");
  await program.type("y");
  await screen.shows("● edit total.sh");
  await screen.shows("$ sh test.sh");
  await screen.shows("Deny, with a reason");
  await screen.shows("its key, or");
  await program.type("y");
  await screen.shows("ok: the total is 42");
  await screen.answered();
  await program.type("\x15"); // what was typed ahead is still in the input line
  await screen.send("/cost");
  await screen.shows("1 answer");
  await screen.shows("$0.0000");
  await screen.send("/replay");
  await screen.shows("The replay is equal");
  await screen.send("/undo");
  await screen.shows("Take back the files and the conversation");
  await screen.shows("its key, or");
  await program.type("1");
  await screen.shows("restored");
  await screen.shows("total.sh");
  await program.type(CTRL_D);
  assertEquals((await program.ended).code, 0);
});

Deno.test("chat --demo changes nothing that is denied, and removes its folder", async () => {
  await using program = await startProgram(["chat", "--demo"], { terminal: true });
  const screen = new Screen(program);
  await screen.shows("/preamp-demo-");
  const [path] = /\/\S*preamp-demo-\w+/.exec(shownText(program.stdout.text))!;
  await screen.shows("Deny, with a reason");
  await screen.shows("its key, or");
  await program.type(UP); // to the last choice: none was chosen
  await program.type("\r");
  await screen.shows("Why not?");
  await program.type("wait for me\r");
  await screen.shows("denied: wait for me");
  await screen.shows("Deny, with a reason");
  await screen.shows("its key, or");
  await program.type("y");
  await screen.shows("FAILED: the total is 5, not 42");
  await screen.answered();
  await screen.send("/quit");
  assertEquals((await program.ended).code, 0);
  assertEquals(await Deno.stat(path!).catch(() => null), null);
});

Deno.test("chat -p plans/coder.yaml finds, mends and tests a project; one answer allows a command for the run", async () => {
  await using folder = await temporaryFolder();
  const project = `${folder.path}/project`;
  await Deno.mkdir(project);
  for (const file of ["total.sh", "test.sh"]) {
    await Deno.copyFile(`${ROOT}plans/broken_project/${file}`, `${project}/${file}`);
  }
  const options = { cwd: folder.path, terminal: true };
  const args = ["chat", "-p", `${ROOT}plans/coder.yaml`, "--workspace", project];
  await using program = await startProgram(args, options);
  const screen = new Screen(program);
  await screen.begins();
  await screen.send("The tests fail: find out why, and mend it");
  await screen.shows("$ sh test.sh");
  await screen.shows("Allow exactly this command until this answer ends");
  await screen.shows("its key, or");
  await program.type("r");
  await screen.shows("sum * tip / 100");
  await screen.shows("Allow edit until this answer ends");
  await screen.shows("its key, or");
  await program.type("y");
  await screen.shows("● bash sh test.sh"); // it is not asked about again
  await screen.shows("all tests pass");
  await screen.answered();
  await screen.send("/quit");
  const { code, stdout } = await program.ended;
  assertEquals([code, shownText(stdout).split("$ sh test.sh").length], [0, 2]);
  assertStringIncludes(await Deno.readTextFile(`${project}/total.sh`), "sum * tip / 100");
  assertEquals((await Array.fromAsync(Deno.readDir(folder.path))).map(({ name }) => name), ["project"]);
});

Deno.test("chat asks no more about calls that a person always allows in the folder, until they take it back", async () => {
  await using folder = await temporaryFolder();
  await using home = await temporaryFolder();
  const asking = {
    session: { orchestrator: "loop-streaming", context: "context-simple" },
    providers: [{
      module: "provider-mock",
      config: {
        responses: [
          { tool_calls: [{ name: "bash", arguments: { command: "ls -a one" } }] },
          { text: "The end." },
        ],
      },
    }],
    tools: [{ module: "tool-bash", permissions: { read: ["."], run: ["bash"] } }],
    hooks: ["hooks-approval"],
  };
  await Deno.mkdir(`${folder.path}/one`);
  await Deno.writeTextFile(`${folder.path}/one/inside`, "");
  await Deno.writeTextFile(`${folder.path}/plan.json`, JSON.stringify(asking));
  const options = { cwd: folder.path, terminal: true, env: { PREAMP_HOME: home.path } };
  const start = async () => {
    const program = await startProgram(["chat", "-p", "plan.json"], options);
    const screen = new Screen(program);
    await screen.begins();
    await screen.send("list");
    return { program, screen };
  };
  const leave = async ({ program, screen }: Awaited<ReturnType<typeof start>>) => {
    await screen.answered();
    await program.type(CTRL_D);
    assertEquals((await program.ended).code, 0);
  };
  const first = await start();
  await first.screen.shows("Always allow ls * in this folder");
  await first.screen.shows("its key, or");
  await first.program.type("f");
  await first.screen.shows("inside");
  await leave(first);
  const second = await start();
  await second.screen.shows("inside");
  await second.screen.answered();
  assert(!shownText(second.program.stdout.text).includes("Allow once"), "it asks again");
  await second.screen.send("/permissions");
  await second.screen.shows("bash:ls *");
  await second.screen.shows("its key, or");
  await second.program.type("1");
  await second.screen.shows("You are asked again about bash:ls *");
  await second.program.type(CTRL_D);
  await second.program.ended;
  const third = await start();
  await third.screen.shows("Allow once");
  await third.program.type(CTRL_C);
  await leave(third);
});

Deno.test("chat takes steering, stops at Ctrl-C, keeps what arrived, and leaves at the second Ctrl-C", async () => {
  await using folder = await slowFolder();
  const options = { cwd: folder.path, terminal: true };
  await using program = await startProgram(["chat", "-p", "slow.yaml"], options);
  const screen = new Screen(program);
  await screen.begins();
  await screen.send("story");
  await screen.shows("1: story! once upon");
  await screen.send("faster");
  await screen.shows("↪ faster");
  await screen.shows("3: faster!"); // the steered line is a message of the same run
  await screen.answered();
  await screen.send("story");
  await screen.shows("once upon");
  await program.type(CTRL_C);
  await screen.shows("stopped");
  await screen.answered();
  await screen.send("again");
  await screen.shows("7: again!"); // story, faster and their answers, story, what arrived of its answer, again
  await screen.answered();
  await program.type(CTRL_C);
  await screen.shows("Press Ctrl-C again to leave.");
  await program.type(CTRL_C);
  await screen.shows("Return with: preamp chat --session ses_");
  assertEquals((await program.ended).code, 0);
});

Deno.test("chat continues a conversation by its name, displays it, and has the history of messages", async () => {
  await using folder = await slowFolder();
  await using home = await temporaryFolder();
  const options = { cwd: folder.path, terminal: true, env: { PREAMP_HOME: home.path } };
  {
    await using program = await startProgram(["chat", "-p", "slow.yaml", "--session", "plans"], options);
    const screen = new Screen(program);
    await screen.begins();
    await screen.send("first\\");
    await program.type("line\r");
    await screen.shows("1: first");
    await screen.shows("line!");
    await screen.answered();
    await program.type(CTRL_D);
    assertEquals((await program.ended).code, 0);
  }
  await using program = await startProgram(["chat", "--session", "last"], options);
  const screen = new Screen(program);
  await screen.shows("plans, continued");
  await screen.shows("> first");
  await screen.shows("1: first");
  await program.type(`${UP}\r`);
  await screen.shows("3: first");
  await screen.answered();
  await screen.send("/sessions");
  await screen.shows("Begin a new one");
  await screen.shows("plans");
  await program.type(CTRL_C);
  await screen.send("/quit");
  assertEquals((await program.ended).code, 0);
});

Deno.test("preamp alone in a terminal is the coder on the model at hand; Ctrl-C in a tool lets it end, again ends it", async () => {
  await using folder = await temporaryFolder();
  const options = { cwd: folder.path, terminal: true, env: { PREAMP_MODEL: "mock/x" } };
  await using program = await startProgram([], options);
  const screen = new Screen(program);
  await screen.shows("Preamp chat · mock/x");
  await screen.shows("asks before it changes a file or runs a command");
  await screen.begins();
  await program.type(CTRL_C);
  await screen.shows("Press Ctrl-C again to leave.");
  const script = "touch started; while [ ! -e go ]; do sleep 0.02; done; echo ended\n";
  await Deno.writeTextFile(`${folder.path}/test.sh`, script);
  const runs = async () => {
    await screen.send("mend it");
    await screen.shows("$ sh test.sh");
    await screen.shows("Allow once");
    await screen.shows("its key, or");
    await program.type("y");
    while (!await Deno.stat(`${folder.path}/started`).catch(() => null)) {
      await new Promise((next) => setTimeout(next, 20));
    }
    await program.type(CTRL_C);
    await screen.shows("Stopping after this tool; press Ctrl-C again to stop the tool.");
  };
  await runs();
  await Deno.writeTextFile(`${folder.path}/go`, "");
  await screen.shows("ended");
  await screen.shows("stopped");
  await screen.answered();
  for (const file of ["go", "started"]) await Deno.remove(`${folder.path}/${file}`);
  await screen.send("/clear");
  await screen.shows("A new conversation");
  await runs();
  await program.type(CTRL_C); // the tool, and not the chat
  await screen.shows("stopped");
  await screen.answered();
  await screen.send("/quit");
  assertEquals((await program.ended).code, 0);
});

Deno.test("chat sends files along, runs the person's own commands, and completes both", async () => {
  await using folder = await slowFolder();
  await Deno.writeTextFile(`${folder.path}/notes.txt`, "the secret word is kumquat\n");
  const options = { cwd: folder.path, terminal: true };
  await using program = await startProgram(["chat", "-p", "slow.yaml"], options);
  const screen = new Screen(program);
  await screen.begins();
  await program.type("read @not");
  await screen.shows("notes.txt"); // completion
  await program.type("\t");
  await screen.shows("with notes.txt (27 bytes): about"); // before it is sent
  await program.type("\r");
  await screen.shows("kumquat");
  await screen.answered();
  await screen.send("!echo one; echo two >&2; exit 3");
  await screen.shows("(exit code 3)");
  await screen.send("what was that?");
  await screen.shows("I ran echo one; echo two >&2; exit 3 (exit code 3)");
  await screen.answered();
  await program.type("/expo");
  await screen.shows("write the conversation to a file");
  await program.type("\r");
  await screen.shows("Written: ");
  const [exported] = (await Array.fromAsync(Deno.readDir(folder.path))).filter(({ name }) =>
    name.endsWith(".md")
  );
  const text = await Deno.readTextFile(`${folder.path}/${exported!.name}`);
  assertStringIncludes(text, "## You\n\nread @notes.txt");
  await screen.send("/context");
  await screen.shows("your messages");
  await screen.send("/compact");
  await screen.shows("continues with this summary");
  await screen.send("and now?");
  await screen.shows("1: and now?Summary of the conversation so far:"); // it is the first message again
  await screen.answered();
  await program.type(CTRL_D);
  assertEquals((await program.ended).code, 0);
});

Deno.test("chat pastes 200 lines as one message, and no variable makes its screen write to a file", async () => {
  await using folder = await slowFolder();
  const options = {
    cwd: folder.path,
    terminal: true,
    env: { PI_TUI_WRITE_LOG: `${folder.path}/screen.log` },
  };
  await using program = await startProgram(["chat", "-p", "slow.yaml"], options);
  const screen = new Screen(program);
  await screen.begins();
  const lines = Array.from({ length: 200 }, (_, at) => `line ${at}`);
  await program.type(`\x1b[200~${lines.join("\r")}\x1b[201~`);
  await screen.shows("[paste #1 +200 lines]");
  await program.type("\r");
  await screen.shows("1: line 0");
  await screen.shows("line 199!");
  await screen.answered();
  await program.type(CTRL_D);
  const { code, stdout } = await program.ended;
  assertEquals([code, stdout.includes("\x1b[3J"), stdout.includes("\x1b[?1049h")], [0, false, false]);
  assertEquals(await Deno.stat(`${folder.path}/screen.log`).catch(() => null), null);
});

Deno.test("chat leaves the terminal as it was, also when it is ended from outside", async () => {
  await using folder = await slowFolder();
  await using program = await startProgram(["chat", "-p", "slow.yaml"], { cwd: folder.path, terminal: true });
  const screen = new Screen(program);
  await screen.begins();
  const { stdout } = await new Deno.Command("ps", {
    args: ["-o", "pid=,args=", "--ppid", String(program.pid)],
  })
    .output();
  const [pid] = /\d+/.exec(new TextDecoder().decode(stdout)) ?? [];
  Deno.kill(Number(pid), "SIGTERM");
  const { code, stdout: written } = await program.ended;
  assertEquals(code, 130);
  for (
    const [on, off] of [["\x1b[?2004h", "\x1b[?2004l"], ["\x1b[?25l", "\x1b[?25h"], ["\x1b[>7u", "\x1b[<u"]]
  ) {
    assert(written.lastIndexOf(off!) > written.lastIndexOf(on!), JSON.stringify(off));
  }
});

Deno.test("chat leaves the terminal as it was when the program fails where no one catches it", async () => {
  await using folder = await temporaryFolder();
  const cli = new URL("../../src/cli/mod.ts", import.meta.url).href;
  const failing = `import process from "node:process";
import { cli } from "${cli}";
setInterval(() => { // once the screen is drawn
  if (process.stdin.isRaw) throw new Error("it broke");
}, 500);
Deno.exit(await cli(["chat", "-m", "mock/x"]));
`;
  await Deno.writeTextFile(`${folder.path}/failing.ts`, failing);
  const command =
    `stty cols 100 rows 40; exec ${Deno.execPath()} run -A --no-check --config ${ROOT}deno.json failing.ts`;
  const { stdout } = await new Deno.Command("script", {
    args: ["-qefc", command, "/dev/null"],
    cwd: folder.path,
    env: { PREAMP_HOME: folder.path, TERM: "xterm" },
  }).output();
  const written = new TextDecoder().decode(stdout);
  assertStringIncludes(written, "mock/x");
  assert(written.lastIndexOf("\x1b[?2004l") > written.lastIndexOf("\x1b[?2004h"), "bracketed paste is off");
  assert(written.lastIndexOf("\x1b[?25h") > written.lastIndexOf("\x1b[?25l"), "the cursor is shown");
  assert(
    written.lastIndexOf("it broke") > written.lastIndexOf("\x1b[?2026l"),
    "the error is below the screen",
  );
});

Deno.test("chat in a terminal without keys and colours asks by number, and writes no control sequences", async () => {
  const options = { terminal: true, env: { TERM: "dumb" } };
  await using program = await startProgram(["chat", "--demo"], options);
  const screen = new Screen(program);
  await screen.shows("+  sum=$((sum + price))");
  await screen.shows("1-4 > ");
  await pause();
  await program.type("1\n");
  await screen.shows("Edited total.sh");
  await screen.shows("1-4 > ");
  await pause();
  await program.type("4\n");
  await screen.shows("Why not?");
  await program.type("\n");
  await screen.shows("That is the tour.");
  await screen.shows("> ");
  await program.type(CTRL_D);
  const { code, stdout } = await program.ended;
  const written = stdout.slice(stdout.indexOf("Preamp chat")); // Deno writes before it
  assertEquals([code, written.includes("\x1b")], [0, false]);
});

Deno.test("chat in a pipe answers each line, asks nothing and denies with a clear line", async () => {
  await using folder = await temporaryFolder();
  const asking =
    "session: {orchestrator: loop-streaming, context: context-simple}\nproviders: [provider-mock]\n" +
    "tools: [tool-calculator]\nhooks: [{module: hooks-approval, config: {rules: [{tool: calculator, action: ask}]}}]\n";
  await Deno.writeTextFile(`${folder.path}/plan.yaml`, asking);
  const { code, stdout, stderr } = await runProgram(["chat", "-p", "plan.yaml"], {
    cwd: folder.path,
    stdin: "Hello\nWhat is 6 × 7?\n/cost\n",
  });
  assertEquals(code, 4, stderr); // as preamp run
  const [hello, sum, cost] = stdout.split("\n");
  assertStringIncludes(hello!, 'You said: "Hello"');
  assertMatch(sum!, /Denied by hook: No one could be asked/);
  assertMatch(cost!, /2 answers/);
  assertStringIncludes(stderr, "No one can be asked here: calls that need an approval are denied");
  assertEquals(stderr.split("Denied a call of calculator").length, 2, "the warning is shown once");
});

Deno.test("chat without a key or a local server says it in a sentence, with three ways to get one", async () => {
  await using folder = await temporaryFolder();
  const none = { ANTHROPIC_API_KEY: "", OPENAI_API_KEY: "", GEMINI_API_KEY: "", GOOGLE_API_KEY: "" };
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr;
  listener.close(); // nothing listens there now
  const env = { ...none, OLLAMA_HOST: `127.0.0.1:${port}` };
  const { code, stdout, stderr } = await runCommand(["chat"], { cwd: folder.path, env });
  assertEquals([code, stdout], [1, ""]);
  for (
    const text of [
      "ANTHROPIC_API_KEY",
      "OPENAI_API_KEY",
      `127.0.0.1:${port}`,
      "ollama pull",
      "preamp chat --demo",
    ]
  ) {
    assertStringIncludes(stderr, text);
  }
  assert(stderr.trimEnd().split("\n").length <= 5, stderr);
  await using program = await startProgram(["chat"], { cwd: folder.path, env, terminal: true });
  const screen = new Screen(program);
  await screen.shows("Play the tour");
  await pause();
  await program.type("t\n");
  await screen.shows("No model is called");
  for (const shown of ["Allow edit?", "stopped", "Press Ctrl-C again"]) { // the tour, the end of it, empty
    await screen.shows(shown);
    await program.type(CTRL_C);
  }
  await program.ended;
});

Deno.test("chat refuses what cannot be used together, and an invalid plan, before the first message", async () => {
  await using folder = await temporaryFolder();
  await Deno.writeTextFile(`${folder.path}/bad.yaml`, "session: {orchestrator: loop-streamin}\n");
  const cases: [string[], number, string][] = [
    [["--demo", "-m", "mock/x"], 2, "Cannot use --demo with --model"],
    [["-p", "-"], 2, "Cannot read the plan from stdin"],
    [["hello"], 2, "chat takes flags only"],
    [["--session", "last"], 2, "none is stored"],
    [["-p", "bad.yaml"], 3, "bad.yaml"],
  ];
  for (const [args, expected, message] of cases) {
    const { code, stderr } = await runCommand(["chat", ...args], { cwd: folder.path });
    assertEquals([args, code], [args, expected], stderr);
    assertStringIncludes(stderr, message);
  }
});

/** An answer that comes at once was typed before its question, and is no answer: see `question.ts`. */
function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 600));
}
