import { AnswerWriter } from "../../../src/cli/terminal/answer_writer.ts";
import { createProgress } from "../../../src/cli/terminal/progress.ts";
import type { Entry } from "../../../src/kernel/host.ts";
import type { JsonObject } from "../../../src/sdk/json.ts";
import { assertEquals } from "../../assert.ts";
import { fakeIo } from "../../support/io.ts";

function entry(event: string, data: JsonObject, parent_id?: string): Entry {
  const common = { seq: 1, event, ts: "2026-01-01T00:00:00.000Z", run_id: "run_1", session_id: "ses_1" };
  return { ...common, data, ...(parent_id === undefined ? {} : { parent_id }) };
}

/** The entries of one response: its text blocks as lists of deltas. */
function response(request_id: string, blocks: readonly string[][], tool_calls = false): Entry[] {
  return [
    ...blocks.flatMap((deltas, block_index) => [
      entry("content_block:start", { request_id, block_index, block_type: "text" }),
      ...deltas.map((delta) => entry("content_block:delta", { request_id, block_index, delta })),
      entry("content_block:end", { request_id, block_index, total_blocks: blocks.length }),
    ]),
    entry("provider:response", { provider: "mock", tool_calls, response: { content: [] } }),
  ];
}

const TOOL = entry("module:mounted", { module_id: "tool-x", type: "tool", names: ["x"] });

/** Returns stdout after the entries, and after the end. */
function written(entries: readonly Entry[], output_text: string | null, terminal: boolean): [string, string] {
  const io = fakeIo({ terminal });
  const answer = new AnswerWriter(io.out);
  entries.forEach((entry) => answer.take(entry));
  const before = io.stdout;
  answer.finish(output_text);
  return [before, io.stdout];
}

Deno.test("AnswerWriter writes deltas as they arrive, and nothing twice at the end", () => {
  const entries = response("req_1", [["Hel", "lo"]]);
  assertEquals(written(entries, "Hello", true), ["Hello\n", "Hello\n"]);
  assertEquals(written(entries, "Hello", false), ["Hello", "Hello\n"]);
});

Deno.test("AnswerWriter writes text that was not in a delta: a rest, another text, all of it", () => {
  const entries = response("req_1", [["Hel"]]);
  assertEquals(written(entries, "Hello", false)[1], "Hello\n");
  assertEquals(written(entries, "Bye", false)[1], "Hel\nBye\n");
  assertEquals(written(entries, "Bye", true)[1], "Hel\nBye\n");
  assertEquals(written([], "Hello", true)[1], "Hello\n");
  assertEquals(written([], "", false)[1], "");
});

Deno.test("AnswerWriter joins text blocks as output_text does, and leaves thinking and sub-agents out", () => {
  const entries = [
    entry("content_block:start", { request_id: "req_1", block_index: 0, block_type: "thinking" }),
    entry("content_block:delta", { request_id: "req_1", block_index: 0, delta: "hm" }),
    ...response("req_2", [["One."], [], ["Two", "."]]),
    ...response("req_3", [["of an agent"]]).map((one) => ({ ...one, parent_id: "ses_1" })),
  ];
  assertEquals(written(entries, "One.\n\nTwo.", false)[1], "One.\n\nTwo.\n");
  assertEquals(written(entries, "One.\n\nTwo.", true)[1], "One.\n\nTwo.\n");
});

Deno.test("AnswerWriter buffers text for a pipe while a tool call may follow; a terminal gets every text", () => {
  const entries = [
    TOOL,
    ...response("req_1", [["Let me see."]], true),
    ...response("req_2", [["It ", "is."]]),
  ];
  assertEquals(written(entries, "It is.", false), ["", "It is.\n"]);
  assertEquals(written(entries, "It is.", true), ["Let me see.\nIt is.\n", "Let me see.\nIt is.\n"]);
  const stopped = entries.slice(0, 5); // a limit ended the run before the calls
  assertEquals(written(stopped, "Let me see.", false)[1], "Let me see.\n");
  assertEquals(written(stopped, "Let me see.", true)[1], "Let me see.\n");
});

Deno.test("AnswerWriter keeps the text that arrived when the run ends without an answer", () => {
  const broken = response("req_1", [["Half an ans"]]).slice(0, 2);
  assertEquals(written(broken, null, true), ["Half an ans", "Half an ans\n"]);
  assertEquals(written(broken, null, false)[1], "Half an ans\n");
  assertEquals(written([TOOL, ...broken], null, false), ["", "Half an ans\n"]);
  assertEquals(written([], null, false)[1], "");
});

Deno.test("AnswerWriter escapes control characters on a terminal, and joins split characters", () => {
  const text = "a\x1b[31m\r\nb\t👩‍👧\u202e.";
  const at = text.indexOf("👩") + 1;
  const entries = response("req_1", [["a\x1b[31m\r", text.slice(7, at), text.slice(at)]]);
  assertEquals(written(entries, text, true)[1], "a\\u001b[31m\nb\t👩‍👧\\u202e.\n");
  assertEquals(written(entries, text, false)[1], `${text}\n`);
});

Deno.test("on one terminal, lines of progress start a line of their own and nothing is drawn over the answer", () => {
  const io = fakeIo({ terminal: true });
  let screen = "";
  io.out.write = io.err.write = (text) => void (screen += text);
  const answer = new AnswerWriter(io.out, () => progress.clear());
  let tick = () => {};
  const progress = createProgress(io.err, {
    live: {
      monotonic: () => 0,
      every: (_, callback) => {
        tick = callback;
        return () => {};
      },
    },
    answer,
  });
  const take = (one: Entry) => {
    answer.take(one);
    progress.entry(one);
  };
  response("req_1", [["Let me"]]).slice(0, 2).forEach(take);
  tick();
  progress.note("a note");
  response("req_1", [[" see"]], true).slice(1).forEach(take);
  tick();
  const release = progress.hold();
  screen += "?";
  release();
  assertEquals(screen, "Let me\na note\n see\n\r\x1b[2K⠋ working 0 ms · 0 tokens\r\r\x1b[2K?");
});

Deno.test("createProgress() starts a line of its own, and repeats no text of the answer", () => {
  const io = fakeIo({ terminal: true });
  let screen = "";
  io.out.write = io.err.write = (text) => void (screen += text);
  const answer = new AnswerWriter(io.out);
  const progress = createProgress(io.err, { answer });
  const text = { content: [{ type: "text", text: "Let me see" }] };
  for (const one of response("req_1", [["Let me see"]]).slice(0, 2)) answer.take(one);
  progress.entry(entry("provider:response", { provider: "mock", tool_calls: true, response: text }));
  progress.entry(entry("provider:response", { provider: "mock", tool_calls: true, response: text }, "ses_0"));
  assertEquals(screen, "Let me see\n  Let me see\n");
});
