import type { Approval } from "../../../src/runs/types.ts";
import { styleOf } from "../../../src/cli/terminal/format.ts";
import { LineInput } from "../../../src/cli/terminal/line_input.ts";
import { type QuestionsDeps, questionsOf } from "../../../src/cli/terminal/questions.ts";
import { assertEquals, assertStringIncludes } from "../../assert.ts";
import { type FakeIo, fakeIo } from "../../support/io.ts";

const APPROVAL: Approval = {
  id: "apr_1",
  object: "approval",
  run_id: "run_1",
  session_id: "ses_1",
  tool_name: "bash",
  tool_call_id: "call_1",
  tool_input: { command: "rm -r x" },
  args_hash: "sha256-x",
  action: "execute",
  risk_level: "high",
  prompt: "Allow bash?",
  options: ["Allow once", { label: "Never", effect: "deny" }],
  default: "deny",
  hook_name: "hooks-approval",
  status: "pending",
  created_at: "2026-01-01T00:00:00.000Z",
  expires_at: "2026-01-01T00:04:30.000Z",
};
const NEVER = new AbortController().signal;

/** Returns the questions of a run in a terminal of lines; `held` counts the questions that are open. */
function asking(io: FakeIo, more: Partial<QuestionsDeps> = {}) {
  const state = { held: 0 };
  const hold = () => {
    state.held++;
    return () => void state.held--;
  };
  const input = new LineInput(io, io.err);
  const now = () => Date.parse(APPROVAL.created_at);
  const ask = questionsOf({ io, input, output: io.err, style: styleOf(io.err), hold, now, ...more });
  return { ask, state };
}

Deno.test("questionsOf() resolves to null at once without a terminal", async () => {
  const io = fakeIo();
  assertEquals(await asking(io).ask(APPROVAL, NEVER), null);
  assertEquals(io.stderr, "");
});

Deno.test("questionsOf() displays the whole call, the choices and the time, and takes a number", async () => {
  const io = fakeIo({ terminal: true, lines: ["3"] });
  const { ask, state } = asking(io);
  assertEquals(await ask(APPROVAL, NEVER), { decision: "Never" });
  const [, question, command, ...choices] = /^(.*\n.*)\n(.*)\n([^]*)$/.exec(io.stderr)!;
  assertEquals(
    question,
    "? Allow bash? risk high, asked by hooks-approval, denied in 4 min 30 s if\n  unanswered",
  );
  assertEquals([command, state.held], ["  $ rm -r x", 0]);
  assertEquals(
    choices[0],
    "Allow it?\n  1) Allow once\n  2) Allow exactly this command until this answer ends\n" +
      "  3) Never\n  4) Deny, with a reason\n1-4 > ",
  );
});

Deno.test("questionsOf() names the tool beside a question that is a hook's own", async () => {
  const io = fakeIo({ terminal: true, lines: ["y"] });
  await asking(io).ask({ ...APPROVAL, prompt: "Allow a look?" }, NEVER);
  assertStringIncludes(io.stderr, "? Allow a look? bash, risk high");
});

Deno.test("questionsOf() wraps its first line by words, whose colours have no width", async () => {
  const io = fakeIo({ terminal: true, lines: ["y"] });
  const output = { write: (text: string) => io.err.write(text), columns: () => 30 };
  await asking(io, { output, style: styleOf({ color: true }) }).ask(APPROVAL, NEVER);
  // deno-lint-ignore no-control-regex -- the codes of the colours
  const lines = io.stderr.replaceAll(/\x1b\[\d+m/g, "").split("\n");
  const wrapped = ["? Allow bash? risk high,", "  asked by hooks-approval,", "  denied in 4 min 30 s if"];
  assertEquals(lines.slice(0, 3), wrapped);
});

Deno.test("questionsOf() displays both paths of a call: which of them its tool takes is not known", async () => {
  const io = fakeIo({ terminal: true, lines: ["n", ""] });
  const tool_input = { path: "notes.txt", file_path: "/etc/passwd" };
  await asking(io).ask({ ...APPROVAL, tool_name: "edit_file", tool_input }, NEVER);
  assertStringIncludes(io.stderr, "  notes.txt\n  file_path: /etc/passwd\n");
});

Deno.test("questionsOf() takes y and n, and gives the reason of a denial", async () => {
  const io = fakeIo({ terminal: true, lines: ["maybe", "y", "n", "not now", "N", " "] });
  const { ask } = asking(io);
  assertEquals(await ask(APPROVAL, NEVER), { decision: "allow" });
  assertEquals(await ask(APPROVAL, NEVER), { decision: "deny", reason: "not now" });
  assertEquals(await ask(APPROVAL, NEVER), { decision: "deny" });
});

Deno.test("an answer for the run holds for the same tool, and of a command for the same arguments", async () => {
  const io = fakeIo({ terminal: true, lines: ["2", "2", "1", "1", "1"] });
  const { ask } = asking(io);
  const edit = { ...APPROVAL, tool_name: "edit", tool_input: { path: "a" }, args_hash: "sha256-a" };
  const allowed = { decision: "allow", reason: "allowed for this run" };
  assertEquals(await ask(edit, NEVER), { decision: "allow" });
  assertEquals(await ask({ ...edit, args_hash: "sha256-b" }, NEVER), allowed);
  assertEquals(await ask(APPROVAL, NEVER), { decision: "allow" });
  assertEquals(await ask(APPROVAL, NEVER), allowed);
  assertEquals(await ask({ ...APPROVAL, args_hash: "sha256-y" }, NEVER), { decision: "allow" });
  assertEquals(await ask({ ...edit, tool_name: "write" }, NEVER), { decision: "allow" });
  assertEquals(await ask({ ...edit, hook_name: "other" }, NEVER), { decision: "allow" });
  assertEquals(io.stderr.split("Allow it?").length - 1, 5);
});

Deno.test("questionsOf() ignores an answer that was typed before its question", async () => {
  const io = fakeIo({ terminal: true, lines: ["y", "n", ""] });
  const times_ms = [0, 10, 20, 1_000];
  const { ask } = asking(io, { io: { monotonic: () => times_ms.shift()! } });
  assertEquals(await ask(APPROVAL, NEVER), { decision: "deny" });
  assertStringIncludes(io.stderr, "typed before the question was displayed. Please answer again.");
});

Deno.test("questionsOf() ends the line of an aborted question, and releases what waited", async () => {
  const io = fakeIo({ terminal: true, lines: [] });
  const { ask, state } = asking(io);
  const abort = new AbortController();
  const answer = ask(APPROVAL, abort.signal);
  await new Promise((next) => setTimeout(next));
  assertEquals([state.held, io.stderr.endsWith("1-4 > ")], [1, true]);
  abort.abort();
  assertEquals(await answer, null);
  assertEquals([state.held, io.stderr.endsWith("1-4 > \n")], [0, true]);
});

Deno.test("a question that is left stops the run where that is possible, and is not answered elsewhere", async () => {
  const ended = fakeIo({ terminal: true });
  ended.in.line = () => Promise.resolve(null); // Ctrl-D
  assertEquals(await asking(ended).ask(APPROVAL, NEVER), null);
  let left = 0;
  assertEquals(await asking(ended, { leave: () => void left++ }).ask(APPROVAL, NEVER), { decision: "deny" });
  assertEquals(left, 1);
});

Deno.test("questionsOf() escapes every control character of prompt, options and arguments", async () => {
  const io = fakeIo({ terminal: true, lines: ["y"] });
  const bad = "a\x1b[2Kb\u202ec";
  const options = [{ label: bad, effect: "allow" as const }];
  await asking(io).ask({ ...APPROVAL, prompt: bad, options, tool_input: { command: bad, x: bad } }, NEVER);
  // deno-lint-ignore no-control-regex -- what must not be there
  assertEquals(/[\x00-\x09\x0b-\x1f\u202e]/.exec(io.stderr), null);
});

Deno.test("questionsOf() asks one question at a time, and none that is over already", async () => {
  const io = fakeIo({ terminal: true, lines: ["y", "y"] });
  const { ask } = asking(io);
  const over = new AbortController();
  const answers = [ask(APPROVAL, NEVER), ask(APPROVAL, over.signal), ask(APPROVAL, NEVER)];
  over.abort();
  assertEquals(await Promise.all(answers), [{ decision: "allow" }, null, { decision: "allow" }]);
  assertEquals(io.stderr.split("Allow bash?").length - 1, 2);
});
