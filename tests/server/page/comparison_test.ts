/** Two runs side by side: alignment by model calls, and the first difference. */
import { align, Comparison, forkSeqOf } from "../../../src/server/page/app/state/comparison.ts";
import type { Item } from "preamp/client";
import { RunView } from "../../../src/server/page/app/state/run_view.ts";
import { assertEquals } from "../../assert.ts";
import { type Draft, entriesOf, viewOf } from "../../support/log_entries.ts";

/** A model call that wrote a text. */
function says(text: string, session?: string): Draft[] {
  return call({ type: "text", text }, { block_type: "text" }, session);
}

/** A model call that called a tool, and its result. */
function uses(name: string, input: unknown, id = `${name}_1`, result: unknown = OK): Draft[] {
  return [
    ...call({ type: "tool_call", id, name, input }, { block_type: "tool_call", name }),
    ["tool:pre", { tool_name: name, tool_call_id: id, tool_input: input }],
    ["tool:post", { tool_name: name, tool_call_id: id, result }],
  ];
}

const OK = { success: true, output: "ok" };

function call(block: Record<string, unknown>, start: Record<string, unknown>, session?: string): Draft[] {
  const place = { request_id: crypto.randomUUID(), block_index: 0 };
  const drafts: Draft[] = [
    ["provider:request", { provider: "mock", iteration: 1 }],
    ["content_block:start", { ...place, ...start }],
    ["content_block:end", { ...place, block }],
    ["provider:response", { provider: "mock", usage: {}, tool_calls: false, response: {} }],
  ];
  return session === undefined ? drafts : drafts.map(([event, data]) => [event, data, session]);
}

const PROMPT: Draft[] = [
  ["execution:start", { prompt: "go" }],
  ["prompt:submit", { prompt: "go" }],
  ["context:message", { index: 0, message: { role: "user", content: "go" } }],
];

function end(status = "completed"): Draft {
  return ["run:end", { run: { id: "run_1", status } }];
}

function words(items: readonly Item[]): string[] {
  return items.map((item) =>
    item.kind === "tool" ? item.name : item.kind === "question" ? item.question.prompt : item.text
  );
}

function shown(left: RunView, right: RunView, fork: number | null = null) {
  const { before, steps, difference, ended } = align(left, right, fork);
  return {
    before: words(before),
    steps: steps.map((step) => [words(step.left), words(step.right)]),
    difference: difference && [difference.step, difference.message],
    ended,
  };
}

Deno.test("equal runs are aligned call by call, whatever the order of names in an input", () => {
  const left = viewOf(...PROMPT, ...uses("grep", { a: 1, b: [2] }), ...says("done"), end());
  const right = viewOf(...PROMPT, ...uses("grep", { b: [2], a: 1 }), ...says("done"), end());
  assertEquals(shown(left, right), {
    before: [],
    steps: [[["go"], ["go"]], [["grep"], ["grep"]], [["done"], ["done"]]],
    difference: null,
    ended: true,
  });
});

Deno.test("the first difference is another call, another input, a text, an end, or the status", () => {
  const cases: [left: Draft[], right: Draft[], step: number | null, message: string][] = [
    [uses("grep", { a: 1 }), uses("read", {}), 1, 'A calls grep {"a":1}; B calls read {}'],
    [uses("grep", { a: 1 }), uses("grep", { a: 2 }), 1, 'A calls grep {"a":1}; B calls grep {"a":2}'],
    [uses("grep", {}), says("no"), 1, "A calls grep {}; B writes “no”"],
    [says("it is 42"), says("it is 43"), 1, "A writes “it is 42”; B writes “it is 43”"],
    [[...uses("grep", {}), ...says("x")], uses("grep", {}), 2, "A writes “x”; B does nothing more"],
    [
      says(`${"same ".repeat(10)}left`),
      says(`${"same ".repeat(10)}right`),
      1,
      "A writes “…same same same same left”; B writes “…same same same same right”",
    ],
  ];
  for (const [left, right, step, message] of cases) {
    const { difference } = shown(viewOf(...PROMPT, ...left, end()), viewOf(...PROMPT, ...right, end()));
    assertEquals(difference, [step, message]);
  }
  const status = shown(
    viewOf(...PROMPT, ...says("x"), end()),
    viewOf(...PROMPT, ...says("x"), end("failed")),
  );
  assertEquals(status.difference, [null, "A is completed, B is failed"]);
});

Deno.test("what a sub-agent does differently counts, and is named", () => {
  const task = (text: string): Draft[] => {
    const [pre, ...calls] = uses("task", {}).slice(4);
    return [
      ...uses("task", {}).slice(0, 4),
      pre!,
      ["task:agent_spawned", { tool_call_id: "task_1", sub_session_id: "ses_2", agent: "scout" }],
      ...says(text, "ses_2"),
      ...calls,
    ];
  };
  const { difference } = shown(
    viewOf(...PROMPT, ...task("here"), end()),
    viewOf(...PROMPT, ...task("there"), end()),
  );
  assertEquals(difference, [1, "in scout: A writes “here”; B writes “there”"]);
});

Deno.test("a run in progress differs only in what it has done", () => {
  const left = viewOf(...PROMPT, ...uses("grep", {}), ...says("the answer is long"), end());
  const place = { request_id: "req_1", block_index: 0 };
  const drafts: Draft[] = [
    ...PROMPT,
    ...uses("grep", {}),
    ["provider:request", { provider: "mock", iteration: 2 }],
    ["content_block:start", { ...place, block_type: "text" }],
    ["content_block:delta", { ...place, delta: "the answer" }],
  ];
  const entries = entriesOf([...drafts, ["content_block:delta", { ...place, delta: ", well" }]]);
  const right = new RunView("run_1");
  const { aligned } = new Comparison(left, right);
  right.add(entries.slice(0, drafts.length));
  assertEquals([aligned.value.difference, aligned.value.ended], [null, false]);
  right.add(entries);
  assertEquals(
    aligned.value.difference?.message,
    "A writes “the answer is long”; B writes “the answer, well”",
  );
});

Deno.test("a fork is compared with what came after its entry; a call that was under way is repeated", () => {
  const left = viewOf(...PROMPT, ...uses("grep", {}), ...says("done"), end());
  const [request, response, result] = [4, 7, 9]; // of grep
  const again = viewOf(...uses("grep", {}), ...says("done"), end());
  const steps = [[[], []], [["grep"], ["grep"]], [["done"], ["done"]]];
  for (const fork of [3, request, request + 1, request + 2]) {
    assertEquals(shown(left, again, fork), { before: ["go"], steps, difference: null, ended: true });
  }
  const executes = viewOf(...uses("grep", {}).slice(4), ...says("done"), end());
  assertEquals(shown(left, executes, response), {
    before: ["go"],
    steps: [[["grep"], ["grep"]], [["done"], ["done"]]],
    difference: null,
    ended: true,
  });
  const continues = viewOf(...says("other"), end());
  assertEquals(shown(left, continues, result), {
    before: ["go", "grep"],
    steps: [[[], []], [["done"], ["other"]]],
    difference: [1, "A writes “done”; B writes “other”"],
    ended: true,
  });
  const begins = viewOf(...PROMPT, ...uses("grep", {}), ...says("done"), end());
  assertEquals(shown(left, begins, 2).before, []); // the turn begins: the prompt was not in the history
  assertEquals(shown(left, begins, 2).difference, null);
});

Deno.test("the run says itself which entry it continues from; items say where they can be made again", () => {
  const left = viewOf(...PROMPT, ...uses("grep", {}), ...says("done"));
  const forkOf = (run_id: string) => {
    const right = new RunView("run_2");
    right.add(entriesOf([["run:start", { status: "running", forked_from: { run_id, seq: 4 } }]]));
    return new Comparison(left, right).fork.value;
  };
  assertEquals([forkOf("run_1"), forkOf("run_9")], [4, null]);
  assertEquals(left.thread.value!.items.map((item) => forkSeqOf(left, item)), [2, 4, 10]);
});

Deno.test("equal calls differ in what became of them, and in their results", () => {
  const grep = (result: unknown) => viewOf(...PROMPT, ...uses("grep", {}, "grep_1", result), end());
  const failed = grep({ success: false, error: { message: "no such file" } });
  const found = grep({ success: true, output: "line 12" });
  assertEquals(shown(failed, grep(OK)).difference, [1, "grep failed in A and succeeded in B"]);
  assertEquals(shown(grep(OK), found).difference, [1, "grep gives A “ok” and B “line 12”"]);
  assertEquals(shown(found, grep({ success: true, output: "line 12" })).difference, null);
  const running = viewOf(...PROMPT, ...uses("grep", {}).slice(0, -1));
  assertEquals(shown(running, failed).difference, null, "its outcome is not known yet");
});
