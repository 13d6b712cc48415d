/** The screen of a conversation on a virtual terminal: no process, no pty. */
import * as fc from "fast-check";
import { Text, TuiMainScreen, visibleWidth } from "@earendil-works/pi-tui";
import type { Entry } from "../../../src/kernel/host.ts";
import type { Run } from "../../../src/runs/types.ts";
import { Answer } from "../../../src/cli/chat/screen/answer.ts";
import { Completion } from "../../../src/cli/chat/screen/completion.ts";
import { ChatScreen } from "../../../src/cli/chat/screen/chat_screen.ts";
import { Question } from "../../../src/cli/chat/screen/question.ts";
import { markdownTheme } from "../../../src/cli/chat/screen/style.ts";
import { openScreen } from "../../../src/cli/chat/screen/terminal.ts";
import { ToolCard } from "../../../src/cli/chat/screen/tool_card.ts";
import { InputHistory } from "../../../src/cli/chat/history.ts";
import { printable } from "../../../src/cli/terminal/answer_writer.ts";
import { styleOf } from "../../../src/cli/terminal/format.ts";
import { assert, assertEquals, assertMatch, assertStringIncludes } from "../../assert.ts";
import { processorTime } from "../../support/busy_time.ts";
import { VirtualTerminal } from "../../support/virtual_terminal.ts";

const STYLE = styleOf({ color: true });
const THEME = markdownTheme(STYLE);
const ENTER = "\r", CTRL_C = "\x03", UP = "\x1b[A", DOWN = "\x1b[B";
const pasted = (text: string) => `\x1b[200~${text}\x1b[201~`;

/** A screen on a virtual terminal, with a clock that the test moves. */
function screenOf({ cols = 80, rows = 24, bare = false } = {}) {
  const terminal = new VirtualTerminal(cols, rows);
  terminal.write("what the shell has written before\r\n");
  let now = 0;
  const tui = bare ? new TuiMainScreen(terminal, true) : openScreen(terminal);
  const screen = new ChatScreen({
    tui,
    style: STYLE,
    history: new InputHistory(null, () => {}),
    commands: [{ name: "cost", description: "tokens" }],
    folder: "/nowhere/",
    describe: () => Promise.resolve(""),
    monotonic: () => now,
  });
  screen.open();
  return {
    terminal,
    screen,
    tui,
    draw: () => tui.renderNow(),
    pass: (ms: number) => void (now += ms),
    [Symbol.dispose]: () => screen.close(),
  };
}

let seq = 0;

function entry(event: string, data: Record<string, unknown>): Entry {
  return { seq: ++seq, ts: "2026-01-01T00:00:00.000Z", run_id: "r", session_id: "s", event, data } as Entry;
}

/** The entries of an answer that arrives in pieces. */
function* answerOf(text: string, size = 7): Generator<Entry> {
  const block = { request_id: `q${++seq}`, block_index: 0 };
  yield entry("content_block:start", { ...block, block_type: "text" });
  for (let at = 0; at < text.length; at += size) {
    yield entry("content_block:delta", { ...block, delta: text.slice(at, at + size) });
  }
  yield entry("content_block:end", block);
}

const ENDED = {
  status: "completed",
  output_text: "",
  error: null,
  warnings: [],
  tool_call_count: 0,
  usage: { total_tokens: 10, cost_usd: "0.0010" },
  context: { tokens: 50, budget: 1000, level: 0, compactions: 0 },
  created_at: "2026-01-01T00:00:00.000Z",
  ended_at: "2026-01-01T00:00:01.000Z",
} as unknown as Run; // what the screen reads

const call = (id: string, more: Record<string, unknown> = {}) => ({
  tool_call_id: id,
  tool_name: "bash",
  tool_input: { command: `run ${id}` },
  ...more,
});

Deno.test("a pasted text of 200 lines is one message: short in the input line, whole where it is sent", async () => {
  using it = screenOf();
  const text = Array.from({ length: 200 }, (_, at) => `line ${at}`).join("\n");
  const read = it.screen.read();
  it.terminal.type(pasted(text.replaceAll("\n", "\r")));
  it.draw();
  assertStringIncludes((await it.terminal.lines()).join("\n"), "[paste #1 +200 lines]");
  it.terminal.type(ENTER);
  assertEquals(await read, { text });
  it.draw();
  const lines = await it.terminal.lines();
  assert(lines.some((line) => line.startsWith("> line 0")));
  assert(lines.some((line) => line.includes("… 180 more lines")), lines.join("\n"));
  const again = it.screen.read();
  it.terminal.type(UP);
  it.terminal.type(ENTER);
  assertEquals(await again, { text }, "the history has it whole");
});

Deno.test("the input line is the person's while an answer arrives, and Enter steers", async () => {
  using it = screenOf();
  const first = it.screen.read();
  it.terminal.type(`story${ENTER}`);
  assertEquals(await first, { text: "story" });
  const steered: string[] = [];
  const stop = it.screen.listen((line) => steered.push(line));
  const entries = [...answerOf("once upon a time there was a story. ".repeat(20))];
  for (const [index, one] of entries.entries()) {
    it.screen.entry(one);
    if (index === 5) it.terminal.type("fas");
    if (index === 9) it.terminal.type("ter");
    it.draw();
  }
  const lines = await it.terminal.lines();
  assert(lines.some((line) => line.startsWith("faster")), lines.join("\n"));
  assertEquals(steered, []);
  it.terminal.type(ENTER);
  assertEquals(steered, ["faster"]);
  it.draw();
  assertStringIncludes((await it.terminal.lines()).join("\n"), "↪ faster");
  it.screen.entry(entry("orchestrator:steering_injected", { content: "faster" }));
  it.draw();
  const shown = (await it.terminal.lines()).filter((line) => line.includes("↪ faster"));
  assertEquals(shown.length, 1, "it is shown once, where the agent has read it");
  stop();
});

Deno.test("what was typed while nothing listened is the next message, or steers", async () => {
  using it = screenOf();
  it.terminal.type(`one${ENTER}`);
  it.terminal.type(`two${ENTER}`);
  assertEquals(await it.screen.read(), { text: "one" });
  const steered: string[] = [];
  it.screen.listen((line) => steered.push(line))();
  assertEquals(steered, ["two"]);
});

Deno.test("a long table and a long code block appear exactly once, whatever the window shows while they arrive", async () => {
  using it = screenOf({ cols: 60, rows: 20 });
  const rows = Array.from({ length: 60 }, (_, at) => `| row${at} | ${"x".repeat(at % 30)} |\n`).join("");
  const code = Array.from({ length: 60 }, (_, at) => `code${at}`).join("\n");
  const text = `Before.\n\n| a | b |\n|---|---|\n${rows}\nBetween.\n\n\`\`\`\n${code}\n\`\`\`\n\nAfter.`;
  it.screen.message("show");
  for (const one of answerOf(text, 11)) {
    it.screen.entry(one);
    it.draw();
  }
  it.screen.end(ENDED);
  it.draw();
  const lines = await it.terminal.lines();
  for (let at = 0; at < 60; at++) {
    for (const word of [`row${at}`, `code${at}`]) {
      const found = lines.filter((line) => new RegExp(`\\b${word}\\b`).test(line));
      assertEquals([word, found.length], [word, 1]);
    }
  }
  assertEquals(lines[0], "what the shell has written before");
});

Deno.test("calls that run at the same time appear exactly once, with their whole results, when they have ended", async () => {
  using it = screenOf({ cols: 60, rows: 20 });
  it.screen.message("run");
  const ids = Array.from({ length: 6 }, (_, at) => `c${at}`);
  for (const id of ids) it.screen.entry(entry("tool:pre", call(id)));
  for (let line = 0; line < 30; line++) {
    for (const id of ids) {
      it.screen.entry(
        entry("tool:output", { tool_call_id: id, text: `${id} writes ${line}\n`, stream: "stdout" }),
      );
    }
    it.draw();
  }
  for (const id of ids.toReversed()) {
    const output = Array.from({ length: 30 }, (_, line) => `${id} writes ${line}\n`).join("");
    it.screen.entry(entry("tool:post", call(id, { result: { success: true, output } })));
    it.draw();
  }
  const lines = await it.terminal.lines();
  for (const id of ids) {
    assertEquals(lines.filter((line) => line.startsWith(`● bash run ${id}`)).length, 1, lines.join("\n"));
    assertEquals(lines.filter((line) => line.trim() === `${id} writes 29`).length, 1);
    assertEquals(lines.filter((line) => line.trim() === `${id} writes 20`).length, 1, "the last ten lines");
    assertEquals(lines.filter((line) => line.trim() === `${id} writes 19`).length, 0);
  }
  it.terminal.type("\x0f"); // Ctrl-O
  it.draw();
  assert((await it.terminal.lines()).some((line) => line.trim() === "c0 writes 3"));
});

Deno.test("an answer appears once, whether blocks, a response or only the run has it; a void text is named so", async () => {
  const times = async (text: string, ...entries: Entry[]) => {
    using it = screenOf();
    it.screen.message("go");
    for (const one of entries) it.screen.entry(one);
    it.screen.end({ ...ENDED, output_text: text });
    it.draw();
    const lines = await it.terminal.lines();
    return { count: lines.filter((line) => line.includes(text)).length, lines: lines.join("\n") };
  };
  const response = { content: [{ type: "text", text: "the answer" }] };
  assertEquals((await times("the answer", ...answerOf("the answer"))).count, 1);
  assertEquals((await times("the answer", entry("provider:response", { response }))).count, 1);
  assertEquals((await times("the answer")).count, 1);
  const [start, ...pieces] = answerOf("half an ans");
  const retried = entry("provider:retry", { provider: "p", delay: 0, error_message: "it broke" });
  const { count, lines } = await times("the answer", start!, pieces[0]!, retried, ...answerOf("the answer"));
  assertEquals(count, 1);
  assertMatch(lines, /half[^]*that text is void[^]*it broke; trying again[^]*the answer/);
});

Deno.test("a denied call says why, once, and a sub-agent's calls are lines below its own", async () => {
  using it = screenOf();
  it.screen.message("go");
  const asked = { ...call("c1"), approval_id: "a1", prompt: "Allow?", options: [] };
  it.screen.entry(entry("tool:pre", call("c1")));
  it.screen.entry(entry("approval:required", asked));
  it.screen.entry(entry("approval:denied", { ...asked, decision: "deny", reason: "not now" }));
  it.screen.entry(
    entry("context:message", { message: { role: "tool", tool_call_id: "c1", content: "Denied" } }),
  );
  it.screen.entry(entry("tool:pre", call("c2", { tool_name: "task", tool_input: { agent: "explorer" } })));
  it.screen.entry(
    entry("task:agent_spawned", { tool_call_id: "c2", agent: "explorer", sub_session_id: "sub" }),
  );
  const inner = (event: string, more: Record<string, unknown> = {}) =>
    ({ ...entry(event, call("c1", more)), session_id: "sub", parent_id: "s" }) as Entry;
  it.screen.entry(inner("tool:pre"));
  it.screen.entry(inner("tool:post", { result: { success: true, output: "inner" } }));
  it.draw();
  const lines = (await it.terminal.lines()).map((line) => line.trimEnd());
  assertEquals(lines.filter((line) => line.includes("denied: not now")).length, 1);
  assertEquals(lines.filter((line) => line === "  ● bash run c1").length, 1);
  assert(lines.indexOf("  ● bash run c1") < lines.findIndex((line) => line.startsWith("● task")));
});

Deno.test("what runs stays in the window beside a question and a menu, and leaves no stale lines", async () => {
  using it = screenOf({ cols: 60, rows: 20 });
  it.screen.message("run");
  it.screen.listen(() => {});
  it.screen.entry(entry("tool:pre", call("c1")));
  for (let line = 0; line < 40; line++) {
    it.screen.entry(
      entry("tool:output", { tool_call_id: "c1", text: `written ${line}\n`, stream: "stdout" }),
    );
    if (line === 10) {
      const choices = ["a", "b", "c", "d", "e"].map((value) => ({ value, label: value }));
      void it.screen.choose("Allow it?", choices).then((value) => assertEquals(value, "b"));
    }
    if (line === 30) {
      it.pass(1_000);
      it.terminal.type("2");
    }
    it.draw();
  }
  const output = Array.from({ length: 40 }, (_, line) => `written ${line}\n`).join("");
  it.screen.entry(entry("tool:post", call("c1", { result: { success: true, output } })));
  it.draw();
  const lines = await it.terminal.lines();
  for (let line = 30; line < 40; line++) {
    assertEquals([line, lines.filter((text) => text.trim() === `written ${line}`).length], [line, 1]);
  }
  assertEquals(lines.filter((text) => text.includes("● bash run c1")).length, 1, lines.join("\n"));
  assertEquals(lines.filter((text) => text.includes("Allow it?")).length, 0);
});

Deno.test("a very long conversation appears exactly once, though its oldest parts are forgotten", async () => {
  using it = screenOf();
  for (let turn = 0; turn < 120; turn++) {
    it.screen.message(`message ${turn}.`);
    for (const one of answerOf(`answer ${turn}.`)) it.screen.entry(one);
    it.screen.end(ENDED);
    it.draw();
  }
  const lines = await it.terminal.lines();
  for (let turn = 0; turn < 120; turn++) {
    for (const text of [`> message ${turn}.`, `answer ${turn}.`]) {
      assertEquals([text, lines.filter((line) => line.trimEnd() === text).length], [text, 1]);
    }
  }
  assert(it.tui.render(80).length < 500, "the oldest parts are not drawn any more");
});

Deno.test("a change above the window with new lines below loses none of them, and nothing of the shell's", async () => {
  for (const first of [3, 15, 40]) {
    const terminal = new VirtualTerminal(40, 20);
    for (let line = 0; line < 15; line++) terminal.write(`shell ${line}.\r\n`);
    const tui = openScreen(terminal);
    const texts = Array.from({ length: first }, (_, at) => new Text(`line ${at}.`, 0, 0));
    texts.forEach((text) => tui.addChild(text));
    tui.start();
    tui.renderNow();
    texts[0]!.setText("changed");
    for (let at = first; at < first + 7; at++) tui.addChild(new Text(`line ${at}.`, 0, 0));
    tui.renderNow();
    const lines = (await terminal.lines()).map((line) => line.trimEnd());
    const expected = [
      ...Array.from({ length: 15 }, (_, line) => `shell ${line}.`),
      ...Array.from({ length: first + 6 }, (_, line) => `line ${line + 1}.`),
    ];
    for (const text of expected) {
      assertEquals([first, text, lines.filter((line) => line === text).length], [first, text, 1]);
    }
    tui.stop();
  }
});

/** Draws a long conversation, resizes the window, and changes a line above it. */
async function resized(it: ReturnType<typeof screenOf>): Promise<void> {
  for (let turn = 0; turn < 30; turn++) {
    it.screen.message(`message ${turn}`);
    for (const one of answerOf(`answer **${turn}**, in some words that wrap in a narrow window`)) {
      it.screen.entry(one);
    }
    it.screen.end(ENDED);
    it.draw();
  }
  for (const [cols, rows] of [[40, 12], [100, 30], [9, 5], [80, 24]] as const) {
    it.terminal.resize(cols, rows);
    it.draw();
    await it.terminal.lines();
  }
  it.tui.renderNow(true);
}

Deno.test("the scrollback is never erased, whatever is resized or drawn again", async () => {
  using it = screenOf();
  await resized(it);
  assert(!it.terminal.written.includes("\x1b[3J") && !it.terminal.written.includes("\x1b[2J"));
  assert(!it.terminal.written.includes("\x1b[?1049h"), "the main screen");
  const lines = await it.terminal.lines();
  assertEquals(lines[0], "what the shell has written before");
  assertStringIncludes(lines.slice(-24).join("\n"), "answer 29, in some words");
  using bare = screenOf({ bare: true });
  await resized(bare);
  assertStringIncludes(bare.terminal.written, "\x1b[3J", "the library alone erases it");
});

const EVIL = [
  "\x1b[2J",
  "\x1b]52;c;aGk=\x07",
  "\x9b31m",
  "\u202e",
  "\x1b_pi:c\x07",
  "\x00",
  "\ud83d",
  "\x1b]8;;http://evil/\x07",
];

Deno.test("no control sequence of a model, a tool or a paste reaches the terminal", async () => {
  using it = screenOf();
  const read = it.screen.read();
  it.terminal.type(pasted(EVIL.join("p")));
  it.draw();
  it.terminal.type(ENTER);
  await read;
  const text = EVIL.join("x");
  for (
    const one of answerOf(`${text} \`${text}\` [${text}](https://e.org/${text}) &#27;[2J &#x1b;]0;t&#7;`, 1)
  ) {
    it.screen.entry(one);
  }
  it.screen.entry(entry("tool:pre", call("c1", { tool_name: text, tool_input: { command: text } })));
  for (const piece of text) it.screen.entry(entry("tool:output", { tool_call_id: "c1", text: piece }));
  it.draw();
  const result = { success: true, output: `${text}\n@@ -1 +1 @@\n-${text}\n+${text}` };
  it.screen.entry(entry("tool:post", call("c1", { result })));
  it.screen.entry(entry("orchestrator:steering_injected", { content: text }));
  void it.screen.choose("Allow it?", [{ value: 1, label: printable(text) }]);
  it.draw();
  for (
    const sequence of ["\x1b[2J", "\x1b]52", "\x1b]0;", "\x9b", "\u202e", "\x1b_", "\x00", "\x1b]8;;http"]
  ) {
    assert(!it.terminal.written.includes(sequence), JSON.stringify(sequence));
  }
});

Deno.test("a question is not answered by what was typed before, by Enter alone, or by a paste", async () => {
  using it = screenOf();
  const read = it.screen.read();
  it.terminal.type(`go${ENTER}`);
  await read;
  const steered: string[] = [];
  it.screen.listen((line) => steered.push(line));
  it.terminal.type("I was wri");
  let answer: unknown = "open";
  const choices = [{ value: "once", label: "Allow once", letter: "y" }, {
    value: "deny",
    label: "Deny",
    letter: "n",
  }];
  const asked = it.screen.choose("Allow it?", choices).then((value) => answer = value);
  const settle = () => new Promise((next) => setTimeout(next));
  it.draw();
  for (const key of ["t", "i", "n", "g"]) {
    it.pass(50);
    it.terminal.type(key);
  }
  it.pass(1_000);
  it.draw();
  assertStringIncludes((await it.terminal.lines()).join("\n"), "letters go to your message");
  it.terminal.type("y");
  it.terminal.type(ENTER);
  await settle();
  assertEquals([answer, ...steered], ["open", "I was writingy"], "a draft is finished and sent");
  it.pass(1_000);
  it.draw();
  it.terminal.type(ENTER);
  it.terminal.type(pasted(`y${ENTER}`));
  await settle();
  assertEquals(answer, "open");
  it.pass(1_000);
  it.terminal.type(ENTER); // sends what was pasted
  it.pass(1_000);
  it.terminal.type("y");
  await asked;
  assertEquals(answer, "once");
  assertStringIncludes(it.terminal.written, "\x07", "a bell: someone is waited for");
});

Deno.test("a question is answered by arrows and Enter, left by Ctrl-C, denied by Escape, ended by its signal", async () => {
  using it = screenOf();
  const choices = ["a", "b", "c"].map((value) => ({ value, label: value }));
  const asked = async (
    keys: readonly string[],
    of: Parameters<typeof it.screen.choose<string>>[1] = choices,
  ) => {
    const answer = it.screen.choose<string>("Which?", of);
    it.draw();
    it.pass(1_000);
    keys.forEach((key) => it.terminal.type(key));
    return await answer;
  };
  assertEquals(await asked([DOWN, DOWN, ENTER]), "b");
  assertEquals(await asked([UP, ENTER]), "c");
  assertEquals(await asked(["3"]), "c");
  assertEquals(await asked([CTRL_C]), null);
  assertEquals(await asked(["\x1b"], [{ value: "no", label: "No", letter: "n" }]), "no");
  const stop = new AbortController();
  const ended = it.screen.choose("Which?", choices, stop.signal);
  stop.abort();
  assertEquals(await ended, null);
  const many = Array.from({ length: 40 }, (_, at) => ({ value: `m${at}`, label: `model ${at}` }));
  assertEquals(await asked([..."el 17", ENTER], many), "m17");
});

Deno.test("a question with many choices fits a low window, shows the chosen one, and leaves no stale lines", async () => {
  for (const rows of [9, 12, 14]) {
    using it = screenOf({ cols: 40, rows });
    it.screen.message("go");
    it.screen.end(ENDED);
    const choices = Array.from({ length: 12 }, (_, at) => ({
      value: at,
      label: `choice ${at} in words that need two rows`,
      letter: "abcdefghijkl"[at]!,
    }));
    for (const  of of[choices, [...choices, { value: 12, label: "choice 12 in words", letter: "m" }]]) {
      const answer = it.screen.choose("Which?", of);
      it.draw();
      it.pass(1_000);
      for (let at = 0; at < 12; at++) {
        it.terminal.type(DOWN);
        it.draw();
        const lines = await it.terminal.lines();
        const chosen = of === choices ? at : at + 1; // the first of a long list is chosen at its start
        assertMatch(lines.join("\n"), new RegExp(`(❯|→) .*choice ${chosen} in`), `${rows} rows`);
        assertEquals(lines.filter((line) => line.includes("Which?")).length, 1, lines.join("\n"));
      }
      it.terminal.type(ENTER);
      assertEquals(await answer, of === choices ? 11 : 12);
      it.draw();
      assert(!(await it.terminal.lines()).some((line) => line.includes("choice")));
    }
  }
});

Deno.test("a tool that is stopped keeps what it has written", async () => {
  using it = screenOf();
  it.screen.message("go");
  it.screen.entry(entry("tool:pre", call("c1")));
  it.screen.entry(entry("tool:output", { tool_call_id: "c1", text: "half\n" }));
  it.screen.entry(entry("cancel:requested", { mode: "immediate" }));
  const content = '{"error":"Tool execution was cancelled by user","cancelled":true}';
  it.screen.entry(entry("context:message", { message: { role: "tool", tool_call_id: "c1", content } }));
  it.draw();
  const lines = (await it.terminal.lines()).join("\n");
  assertMatch(lines, /✗ bash run c1\s+half\s+\(stopped\)/);
  assert(!lines.includes("cancelled"), lines);
});

Deno.test("Ctrl-C clears the line, then is an interrupt; while the agent works it stops the answer", async () => {
  using it = screenOf();
  let stops = 0;
  it.screen.onInterrupt(() => ++stops > 0);
  const read = it.screen.read();
  it.terminal.type("half a mess");
  it.terminal.type(CTRL_C);
  it.terminal.type(CTRL_C);
  assertEquals(await read, "interrupt");
  it.terminal.type(CTRL_C);
  assertEquals(stops, 1);
  const again = it.screen.read();
  it.terminal.type("\x04");
  assertEquals(await again, "end");
});

// deno-lint-ignore no-control-regex -- they are looked for
const CONTROL = /[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/;

const BITS = [
  ..."word |日本|👩‍👩‍👧‍👦|🇩🇪|e\u0301|שלום |\u0e33|\u1161|\u200d|\ufe0f|⌚️|1️⃣|`|**|*|_|~~|[x](|- |1. |> |# |<b>|&#27;|$x$|\\|﷽|ᄀᄀ"
    .split("|"),
  ...[
    "\n",
    "\n\n",
    "\n| a | b |\n|---|---|\n",
    "|",
    "```\n",
    "\t",
    "    ",
    "\x1b[31m",
    "\x9b",
    "\ud83d",
    "a".repeat(90),
  ],
];

Deno.test("no part is wider than the window, for any text and width", () => {
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom(...BITS), { maxLength: 40 }),
      fc.integer({ min: 8, max: 90 }),
      (bits, width) => {
        const text = bits.join("");
        const answer = new Answer(THEME);
        answer.add(printable(text));
        const card = new ToolCard({ data: call("c", { tool_input: { command: text } }) }, STYLE, () => 5_000);
        card.add(text);
        const question = new Question(printable(text).replaceAll("\n", " "), [{ value: 1, label: "Yes" }], {
          style: STYLE,
          monotonic: () => 0,
          mostRows: () => 20,
          hasDraft: () => false,
          other: () => {},
          answer: () => {},
        });
        const parts = { answer, card, question, whole: card.whole() };
        const terminal = new VirtualTerminal(width, 24);
        const tui = openScreen(terminal);
        for (const part of Object.values(parts)) tui.addChild(part);
        for (const line of tui.render(width)) {
          assert(visibleWidth(line) <= width, `${visibleWidth(line)} > ${width}: ${JSON.stringify(line)}`);
          assert(!CONTROL.test(line), JSON.stringify(line));
        }
        for (const part of [card, question, card.whole()]) {
          for (const line of part.render(width)) assert(visibleWidth(line) <= width, JSON.stringify(line));
        }
      },
    ),
    { numRuns: 400, seed: 7 },
  );
});

Deno.test("no Markdown holds up the screen, or ends it", async () => {
  const texts: [string, string][] = [
    "[",
    "*a ",
    "**",
    "`",
    ">",
    "<",
    "![",
    "_",
    "~",
    "$",
    "a@",
    "http://",
    "|",
    "[a](",
    "<!--",
  ]
    .map((mark) => [mark, mark.repeat(5_000)]);
  texts.push(["prose", "some words in a paragraph, and more of them. ".repeat(22_000)]);
  texts.push(["paragraphs", "some words in a paragraph, and more of them.\n\n".repeat(4_000)]);
  texts.push(["lists", Array.from({ length: 400 }, (_, at) => `${"  ".repeat(at)}- x`).join("\n")]);
  texts.push(["table", `|a|b|\n|-|-|\n${"|one|two words here|\n".repeat(1_000)}`]);
  texts.push(["code", `\`\`\`ts\n${"const a = 1;\n".repeat(7_700)}\`\`\``]);
  const warm = new Answer(THEME);
  warm.add("a **b** `c`\n\n- d");
  warm.render(80);
  for (const [name, text] of texts) {
    const answer = new Answer(THEME, () => 12);
    answer.add(text);
    answer.render(80);
    answer.add("x");
    const ms = await processorTime(() => void answer.render(80));
    assert(ms < 100, `${name}: ${ms} ms for a frame`);
    answer.end();
    assert(answer.render(80).length > 0);
  }
});

Deno.test("no keys end the screen or widen a line, whatever is displayed meanwhile", async () => {
  const keys = [
    ..."abyn1/@! ",
    ENTER,
    "\x1b",
    UP,
    DOWN,
    CTRL_C,
    "\x12",
    "\x0f",
    "\t",
    "\x7f",
    "\x15",
    "\x17",
    "\x19",
    "\x1b[D",
    "日",
  ];
  const events = [
    () => entry("tool:pre", call(`k${seq}`)),
    () => entry("tool:output", { tool_call_id: `k${seq - 1}`, text: "out\r\nput\r" }),
    () => entry("orchestrator:steering_injected", { content: "a" }),
    () => entry("user:notification", { message: "note", level: "warning" }),
  ];
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.oneof(fc.constantFrom(...keys, pasted("p\n".repeat(20))), fc.nat({ max: 9 })), {
        maxLength: 60,
      }),
      fc.integer({ min: 8, max: 60 }),
      async (steps, cols) => {
        using it = screenOf({ cols, rows: 10 });
        void it.screen.read();
        const stop = new AbortController();
        for (const step of steps) {
          if (typeof step === "string") it.terminal.type(step);
          else if (step < events.length) it.screen.entry(events[step]!());
          else if (step === 4) {
            for (const one of answerOf("a **b**\n\n| c |\n|--|\n| d |\n")) it.screen.entry(one);
          } else if (step === 5) it.screen.end(ENDED);
          else if (step === 6) it.terminal.resize(8 + cols % 40, 5 + cols % 20);
          else if (step === 7) {
            void it.screen.choose("Which?", [{ value: 1, label: "One", letter: "y" }], stop.signal);
          } else if (step === 8) void it.screen.read();
          else it.pass(500);
          it.draw();
        }
        stop.abort();
        for (const line of it.tui.render(it.terminal.columns)) {
          assert(visibleWidth(line) <= it.terminal.columns);
        }
        await it.terminal.lines();
      },
    ),
    { numRuns: 150, seed: 7 },
  );
});

Deno.test("Markdown is drawn with words wrapped, and says where links lead", () => {
  const answer = new Answer(THEME);
  answer.add(
    "# Title\n\nSome **bold** words with `code` and a [link](https://example.org/a) in a long line.\n\n1. one\n   - two\n",
  );
  answer.end();
  // deno-lint-ignore no-control-regex -- the codes of the styles
  const text = answer.render(30).map((line) => line.replaceAll(/\x1b\[[\d;]*m/g, "").trimEnd()).join("\n");
  assertStringIncludes(text, "Some bold words with code and\na link (https://example.org/a)");
  assertMatch(text, /^1\. one\n {2,4}- two$/m);
});

Deno.test("the status line has the model, the share of the context and the cost", async () => {
  using it = screenOf();
  it.screen.showModel("mock/x");
  it.screen.message("hello");
  it.screen.end(ENDED);
  void it.screen.read();
  it.draw();
  assertStringIncludes((await it.terminal.lines()).join("\n"), "mock/x · context 5 % · $0.0010");
});

Deno.test("the status line names the model that answers; the name gives way to the rest in a narrow window", async () => {
  using it = screenOf({ cols: 50 });
  it.screen.showModel("plan.yaml");
  it.screen.entry(
    entry("llm:request", { provider: "openai", model: "a-model-with-a-very-long-name-of-2026" }),
  );
  it.screen.end(ENDED);
  void it.screen.read();
  it.draw();
  const lines = (await it.terminal.lines()).join("\n");
  assertMatch(lines, /openai\/a-model-\S*… · context 5 % · \$0\.0010/);
});

Deno.test("a file that is named whole is not completed, so that Enter sends the message", async () => {
  const folder = await Deno.makeTempDir();
  await Promise.all(["a.ts", "a.test.ts"].map((name) => Deno.writeTextFile(`${folder}/${name}`, "")));
  const completion = new Completion([], `${folder}/`);
  const suggested = async (text: string) => {
    const options = { signal: new AbortController().signal };
    return (await completion.getSuggestions([text], 0, text.length, options))?.items.map(({ value }) =>
      value
    );
  };
  assertEquals(await suggested("see @a.t"), ["@a.ts", "@a.test.ts"]);
  assertEquals(await suggested("see @a.ts"), undefined);
  await Deno.remove(folder, { recursive: true });
});

Deno.test("when the screen is left, the conversation stays and nothing else", async () => {
  const it = screenOf();
  it.screen.message("hello");
  for (const one of answerOf("an answer")) it.screen.entry(one);
  it.screen.end(ENDED);
  void it.screen.read();
  it.terminal.type("half");
  it.draw();
  it.screen.close();
  const lines = (await it.terminal.lines()).map((line) => line.trimEnd());
  assertStringIncludes(lines.join("\n"), "> hello\n\nan answer\n");
  assert(!lines.some((line) => line.includes("half") || line.includes("────")), lines.join("\n"));
  assert(lines.some((line) => line.startsWith("10 tokens")), lines.join("\n"));
  assert(
    it.terminal.written.lastIndexOf("\x1b[?25h") > it.terminal.written.lastIndexOf("\x1b[?25l"),
    "the cursor",
  );
});
