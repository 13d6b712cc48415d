/** The parts of `preamp chat` that need no terminal. */
import { InputHistory } from "../../../src/cli/chat/history.ts";
import { LineView } from "../../../src/cli/chat/line_view.ts";
import { LineInput } from "../../../src/cli/terminal/line_input.ts";
import { HeldOutput, MarkdownOutput } from "../../../src/cli/chat/output.ts";
import { isCommand } from "../../../src/cli/chat/slash_commands.ts";
import { inputLines, resultLines } from "../../../src/cli/terminal/tool_lines.ts";
import { StopKey } from "../../../src/cli/terminal/stop_key.ts";
import { styleOf } from "../../../src/cli/terminal/format.ts";
import type { Output } from "../../../src/cli/terminal/io.ts";
import type { Entry } from "../../../src/kernel/host.ts";
import { assertEquals, assertMatch } from "../../assert.ts";
import { temporaryFolder } from "../../support/folder.ts";
import { fakeIo } from "../../support/io.ts";

const PLAIN = styleOf({ color: false });

function recorder(color: boolean): Output & { text: string } {
  return {
    text: "",
    terminal: true,
    color,
    columns: () => 80,
    write(text) {
      this.text += text;
    },
  };
}

/** Returns styled Markdown, with letters in place of colours. */
function styled(markdown: string, step: number): string {
  const output = recorder(true);
  const styling = new MarkdownOutput(output);
  for (let at = 0; at < markdown.length; at += step) styling.write(markdown.slice(at, at + step));
  // deno-lint-ignore no-control-regex -- the codes of the colours
  return output.text.replaceAll(/\x1b\[(\d+)m/g, (_, code) => `<${code}>`)
    .replaceAll(/<22><1>|<39><36>|<22><2>/g, "");
}

Deno.test("MarkdownOutput styles bold text, code and headings as they arrive, in pieces of any size", () => {
  const cases: [string, string][] = [
    ["a **b c** d\n", "a <1>b c<22> d\n"],
    ["`x**y` z\n", "<36>x**y<39> z\n"],
    ["# Title\ntext\n", "<1># Title<22>\ntext\n"],
    [
      "```ts\na **b**\n\n# c\n```\n**d**\n",
      "<2>```ts<22>\n<36>a **b**<39>\n\n<36># c<39>\n<2>```<22>\n<1>d<22>\n",
    ],
    ["2 ** 3 is 8\n", "2 ** 3 is 8\n"],
    ["**open\nnext `too\nplain\n", "<1>open<22>\nnext <36>too<39>\nplain\n"],
    ["* item\n- **i**: *x*\n", "* item\n- <1>i<22>: *x*\n"],
  ];
  for (const [markdown, expected] of cases) {
    for (const step of [1, 2, 3, 100]) assertEquals([step, styled(markdown, step)], [step, expected]);
  }
});

Deno.test("MarkdownOutput writes text unchanged where there are no colours", () => {
  const output = recorder(false);
  new MarkdownOutput(output).write("a **b** `c`");
  assertEquals(output.text, "a **b** `c`");
});

Deno.test("HeldOutput keeps text back while a question is open, and replaces a status line", () => {
  const output = recorder(false);
  const held = new HeldOutput(output, true);
  held.status("waiting");
  held.write("a");
  const release = held.hold();
  held.write("b");
  held.status("waiting");
  assertEquals(output.text, "waiting\r\x1b[2Ka");
  release();
  assertEquals(output.text, "waiting\r\x1b[2Kab");
  const plain = recorder(false);
  new HeldOutput(plain, false).status("waiting");
  assertEquals(plain.text, "");
});

Deno.test("LineInput reads the lines of a pipe as messages, joins continued ones, and gives none as steering", async () => {
  const io = fakeIo({ lines: ["a", "b\\", "c"] });
  const input = new LineInput(io, io.out);
  assertEquals(input.asks, false);
  assertEquals(await input.read(), { text: "a" });
  const stop = input.listen(() => {
    throw new Error("a message of a pipe is no steering");
  });
  stop();
  assertEquals(await input.read(), { text: "b\nc" });
  assertEquals(io.stdout, "");
});

Deno.test("LineInput gives typed lines to a question before they are steering, and asks again for a wrong number", async () => {
  const io = fakeIo({ terminal: true, lines: ["9", "2", "steer me", "next"] });
  const input = new LineInput(io, io.out);
  const steered: string[] = [];
  const choices = [{ value: "x", label: "X" }, { value: "y", label: "Y", hint: "why" }];
  assertEquals(await input.choose("Which?", choices), "y");
  assertEquals(io.stdout, "Which?\n  1) X\n  2) Y (why)\n1-2 > 1-2 > ");
  const { promise, resolve } = Promise.withResolvers<void>();
  const stop = input.listen((line) => {
    steered.push(line);
    stop();
    resolve();
  });
  await promise;
  assertEquals(steered, ["steer me"]);
  assertEquals(await input.read(), { text: "next" });
});

Deno.test("InputHistory keeps messages for their owner, newest first, without repetitions and foreign lines", async () => {
  await using folder = await temporaryFolder();
  const file = new URL(`file://${folder.path}/home/chat_history`);
  const warnings: string[] = [];
  const history = new InputHistory(file, (text) => warnings.push(text));
  await history.load();
  for (const message of ["one", "one", "two\n  lines"]) await history.add(message);
  await Deno.writeTextFile(file, "not JSON\n{}\n", { append: true });
  const later = new InputHistory(file, (text) => warnings.push(text));
  await later.load();
  assertEquals([later.lines, warnings], [["two\n  lines", "one"], []]);
  if (Deno.build.os !== "windows") assertEquals((await Deno.stat(file)).mode! & 0o777, 0o600);
});

Deno.test("InputHistory keeps the last 1,000 messages of a long file", async () => {
  await using folder = await temporaryFolder();
  const file = new URL(`file://${folder.path}/chat_history`);
  const messages = Array.from({ length: 2_100 }, (_, index) => `${JSON.stringify(String(index))}\n`);
  await Deno.writeTextFile(file, messages.join(""));
  const history = new InputHistory(file, () => {});
  await history.load();
  assertEquals([history.lines.length, history.lines[0], history.lines.at(-1)], [1_000, "2099", "1100"]);
  assertEquals((await Deno.readTextFile(file)).split("\n").length, 1_001);
});

Deno.test("InputHistory warns once where it may not write, and the conversation continues", async () => {
  await using folder = await temporaryFolder();
  await Deno.writeTextFile(`${folder.path}/file`, "");
  const warnings: string[] = [];
  const history = new InputHistory(
    new URL(`file://${folder.path}/file/chat_history`),
    (text) => warnings.push(text),
  );
  await history.load();
  await history.add("one");
  await history.add("two");
  assertEquals([history.lines, warnings.length], [["two", "one"], 1]);
});

Deno.test("inputLines() shows all that a call would do", () => {
  const cases: [Parameters<typeof inputLines>[0], string[]][] = [
    [null, []],
    [{ command: "ls\nrm -r x", timeout_s: 5 }, ["$ ls", "  rm -r x", "timeout_s: 5"]],
    [{ path: "a.ts", content: "x\ny\n" }, ["a.ts", "+x", "+y"]],
    [{ path: "a.ts", old_string: "x", new_string: "y", replace_all: true }, [
      "a.ts",
      "-x",
      "+y",
      "replace_all: true",
    ]],
    [
      {
        file_path: "a",
        edits: [{ old_string: "1", new_string: "2" }, {
          old_string: "3",
          new_string: "4",
          replace_all: true,
        }],
      },
      ["a", "-1", "+2", "-3", "+4", "replace_all: true"],
    ],
    [{ command: "ls", description: "Lists files", a: "1", "b\nc": "x\ny", d: { e: [1] } }, [
      "$ ls",
      "description: Lists files",
      'a: "1"',
      '"b\\nc": "x\\ny"',
      'd: {"e":[1]}',
    ]],
    [{ path: 7, edits: "all", content: ["x"] }, ['"all"', "path: 7", 'content: ["x"]']],
    [{ command: "echo \x1b[2K\u202e" }, ["$ echo \\u001b[2K\\u202e"]],
  ];
  for (const [input, expected] of cases) assertEquals(inputLines(input, PLAIN), expected);
  const long = inputLines({ content: "line\n".repeat(500) }, PLAIN);
  assertEquals(long.length, 500);
});

Deno.test("resultLines() shortens a result, shows a diff unless it is known, and a failure once", () => {
  const lines = (result: unknown, is_known = false) =>
    resultLines({ event: "tool:post", data: { result }, style: PLAIN, columns: 20 }, is_known);
  assertEquals(lines({ success: true, output: "x".repeat(50) }), [`${"x".repeat(15)}…`]);
  assertEquals(lines({ success: true, output: "1\n".repeat(12) }).at(-1), "… 4 more lines");
  assertEquals(lines({ success: true, output: "1\n".repeat(9) }).length, 9);
  assertEquals(lines({ success: true, output: null }), []);
  assertEquals(lines({ success: true, output: { response: "done", session_id: "s" } }), ["done"]);
  const edited = { success: true, output: "Edited a\n@@ -1 +1 @@\n-x\n+y" };
  assertEquals(lines(edited), ["Edited a", "@@ -1 +1 @@", "-x", "+y"]);
  assertEquals(lines(edited, true), ["Edited a"]);
  const failed = { success: false, output: "no such file", error: { message: "no such file" } };
  assertEquals(lines(failed), ["no such file"]);
  assertEquals(lines({ success: false, output: "out", error: { message: "exit 1" } }), ["out", "exit 1"]);
  const thrown = { event: "tool:error", data: { error: { msg: "it broke" } }, style: PLAIN, columns: 80 };
  assertEquals(resultLines(thrown, false), ["it broke"]);
});

Deno.test("StopKey stops a question and an answer at once, and a tool after its end, then at once", () => {
  const entry = (event: string, more: Partial<Entry> = {}) =>
    ({ event, session_id: "s", data: { tool_call_id: "c" }, ...more }) as Entry; // what it reads
  const after = (...entries: Entry[]) => {
    const key = new StopKey();
    entries.forEach((entry) => key.take(entry));
    return [key.press()?.mode, key.press()?.mode, key.press()?.mode];
  };
  const answer = ["immediate", undefined, undefined];
  const tool = ["graceful", "immediate", undefined];
  assertEquals(after(), answer);
  assertEquals(after(entry("tool:pre")), tool);
  assertEquals(after(entry("tool:pre"), entry("tool:post")), answer);
  assertEquals(after(entry("tool:pre"), entry("approval:required")), answer);
  assertEquals(after(entry("tool:pre"), entry("approval:required"), entry("approval:granted")), tool);
  assertEquals(after(entry("tool:pre", { parent_id: "p" })), answer);
  assertEquals(after(entry("tool:pre", { verdict: { action: "deny", hook_name: "h" } })), answer);
});

Deno.test("isCommand() finds commands, and takes a path for a message", () => {
  const cases = ["/help", " /model x", "/etc/hosts is odd", "/", "a /help"].map(isCommand);
  assertEquals(cases, [true, true, false, false, false]);
});

Deno.test("LineView shows the first lines that a tool writes while it runs, and none of them again", () => {
  const io = fakeIo({ terminal: true });
  const view = new LineView(io);
  const of = (event: string, more: Record<string, unknown>) =>
    ({
      event,
      session_id: "s",
      ts: "2026-01-01T00:00:00.000Z",
      data: { tool_call_id: "c", tool_name: "bash", tool_input: { command: "count" }, ...more },
    }) as unknown as Entry; // what it reads
  view.entry(of("tool:pre", {}));
  view.entry(of("tool:output", { text: "one\ntw" }));
  assertMatch(io.stdout, /● bash count\n {2}one\n$/);
  view.entry(of("tool:output", { text: "o\nthree" }));
  view.entry(of("tool:post", { result: { success: true, output: "one\ntwo\nthree\n(exit code 0)" } }));
  assertMatch(io.stdout, /● bash count\n {2}one\n {2}two\n {2}three\n {2}\(exit code 0\)\n$/);
});
