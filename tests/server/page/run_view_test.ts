/** What the page shows of a run, computed from its entries. */
import { createPreamp } from "preamp/server";
import { PreampClient } from "preamp/client";
import {
  type Item,
  RunView,
  type Thread,
  type ToolItem,
} from "../../../src/server/page/app/state/run_view.ts";
import { assert, assertEquals } from "../../assert.ts";
import { type Draft, entriesOf, viewOf } from "../../support/log_entries.ts";

/** A thread as short texts: `kind: what it says`. */
function shown(thread: Thread | null): string[] {
  return thread?.items.map(line) ?? [];
}

function line(item: Item): string {
  if (item.kind === "tool") return `${item.name}: ${item.state.value.phase}`;
  return `${item.kind}: ${item.kind === "notice" ? item.text : item.text.value}`;
}

function toolOf(view: RunView, name: string): ToolItem {
  return view.thread.value!.items.find((item) => item.kind === "tool" && item.name === name) as ToolItem;
}

Deno.test("a real run with tools, a question and a sub-agent is the conversation that it was", async () => {
  await using preamp = createPreamp({ authenticate: null });
  const plan = await Deno.readTextFile(new URL("../../../plans/everything.yaml", import.meta.url));
  const client = new PreampClient({
    url: "http://localhost",
    fetch: (input, init) => preamp.fetch(new Request(input, init)),
  });
  const view = new RunView("run_1");
  let asked: unknown;
  for await (const entry of client.stream({ prompt: "Plan the party", plan })) {
    view.add([entry]);
    const [question] = view.questions.value;
    if (question?.status !== "pending" || asked !== undefined) continue;
    asked = question.tool_input;
    assertEquals(toolOf(view, "calculator").state.value.phase, "asking");
    await client.answer(question, "allow");
  }
  assertEquals(asked, { expression: "12 * 7.5" });
  assertEquals(shown(view.thread.value), [
    "user: Plan the party",
    "text: The bill and the list, side by side.",
    "calculator: done",
    "todo: done",
    "task: done",
    "text: Twelve guests at 7.50 are 90, the room is for Friday, and the planner has a list. Let me look at it again.",
    "todo: failed",
  ]);
  assertEquals(toolOf(view, "calculator").state.value.output, "90");
  assertEquals(shown(toolOf(view, "task").thread.value), [
    "user: Plan a party",
    "todo: done",
    "text: Two things are on the list.",
  ]);
  assertEquals([view.status.value, view.run.value?.stop_reason], ["incomplete", "limit:max_tool_calls"]);
  assertEquals(view.questions.value.map(({ status, decision }) => [status, decision]), [[
    "granted",
    "allow",
  ]]);
  const calls = view.calls.value.map(({ session_id, ended }) =>
    [session_id === view.thread.value!.session_id, ended !== null] as const
  );
  assertEquals(calls, [[true, true], [true, true], [false, true], [false, true], [true, true]]);
});

Deno.test("entries that are there already are skipped", () => {
  const entries = entriesOf([["prompt:submit", { prompt: "a" }], ["prompt:submit", { prompt: "b" }]]);
  const view = new RunView("run_1");
  view.add(entries);
  view.add(entries);
  assertEquals([view.count.value, shown(view.thread.value)], [2, ["user: a", "user: b"]]);
});

Deno.test("the text of an attempt that is repeated disappears", () => {
  const block = { request_id: "req_1", block_index: 0 };
  const view = viewOf(
    ["provider:request", { provider: "mock", iteration: 1 }],
    ["content_block:start", { ...block, block_type: "text" }],
    ["content_block:delta", { ...block, delta: "half an ans" }],
    ["content_block:end", { ...block, block: { type: "text", text: "half an answer" } }],
    ["content_block:start", { ...block, block_index: 1, block_type: "tool_call", name: "bash" }],
    ["provider:retry", { error_message: "overloaded", delay: 1.5 }],
  );
  assertEquals(shown(view.thread.value), ["notice: overloaded; trying again in 1.5 s"]);
});

Deno.test("a stream that broke keeps its text, and is no longer written", () => {
  const block = { request_id: "req_1", block_index: 0 };
  const view = viewOf(
    ["content_block:start", { ...block, block_type: "text" }],
    ["content_block:delta", { ...block, delta: "half" }],
    ["llm:stream_aborted", { request_id: "req_1", error: "cancelled" }],
  );
  const [item] = view.thread.value!.items;
  assert(item?.kind === "text" && item.done.value);
  assertEquals(item.text.value, "half");
});

Deno.test("the answer of a loop without blocks is shown from its response", () => {
  const response = { content: [{ type: "text", text: "hello" }] };
  const view = viewOf(
    ["provider:request", { provider: "mock", iteration: 1 }],
    ["provider:response", { provider: "mock", usage: {}, tool_calls: false, response }],
  );
  assertEquals(shown(view.thread.value), ["text: hello"]);
});

Deno.test("a denied call has the reason that the model read", () => {
  const call = { tool_name: "bash", tool_call_id: "call_1", tool_input: { command: "rm -r /" } };
  const message = { role: "tool", tool_call_id: "call_1", content: "Denied by hook: never" };
  const view = viewOf(["tool:pre", call], ["context:message", { index: 3, message }]);
  assertEquals(shown(view.thread.value), ["bash: denied"]);
  assertEquals(toolOf(view, "bash").state.value.output, "Denied by hook: never");
});

Deno.test("the wait for a person is no part of the time of a tool or of a model call", () => {
  const call = { tool_name: "bash", tool_call_id: "call_1", tool_input: {} };
  const view = viewOf(
    ["run:start", { status: "running", limits: { max_iterations: 1, max_cost_usd: "5" } }],
    ["tool:pre", call],
    ["approval:required", { approval_id: "apr_1", tool_call_id: "call_1" }],
    ["approval:granted", { approval_id: "apr_1", tool_call_id: "call_1", decision: "allow" }],
    ["tool:post", { ...call, result: { success: true, output: "" } }],
    ["provider:request", { provider: "mock", iteration: 2 }],
    ["approval:required", { approval_id: "apr_2", tool_call_id: null, limit: { name: "max_iterations" } }],
    ["run:limits", { limits: { max_iterations: 2, max_cost_usd: "5" }, raised_by: "key:ann" }],
    ["approval:granted", { approval_id: "apr_2", tool_call_id: null, decision: "allow" }],
    ["provider:response", { provider: "mock", usage: {}, tool_calls: false }],
  );
  const { started, ended } = toolOf(view, "bash").state.value;
  const [model] = view.calls.value;
  const times = [started, ended, model!.started, model!.ended].map((ts) => Date.parse(ts!) / 1000);
  assertEquals(times, [3, 4, 8, 9]);
  assertEquals(shown(view.thread.value), [
    "bash: done",
    "notice: max_iterations is now 2: raised by key:ann",
  ]);
});

Deno.test("a run that was cancelled in a model call has no open call", () => {
  const view = viewOf(
    ["provider:request", { provider: "mock", iteration: 1 }],
    ["cancel:requested", { state: "graceful" }],
  );
  assertEquals([view.cancelling.value, view.calls.value[0]!.ended], [true, null]);
  const [end] = entriesOf([["run:end", { run: { status: "cancelled" } }]]);
  view.add([{ ...end!, seq: 3, ts: new Date(2000).toISOString() }]);
  assertEquals(view.calls.value[0]!.ended, new Date(2000).toISOString());
});

Deno.test("a run that continued after a restart says so, and its interrupted call is over", () => {
  const view = viewOf(
    ["provider:request", { provider: "mock", iteration: 1 }],
    ["run:status", { status: "running", resumed: true }],
    ["provider:request", { provider: "mock", iteration: 1 }],
  );
  assertEquals(shown(view.thread.value), ["notice: The run continues after a restart of the server"]);
  assertEquals(view.calls.value.map(({ ended }) => ended !== null), [true, false]);
});

Deno.test("failures, skipped modules, compactions and steering are shown", () => {
  const view = viewOf(
    ["module:skipped", { module_id: "tool-x", message: "tool-x needs a key" }],
    ["run:steered", { text: "shorter" }],
    ["context:compaction", { strategy_level: 2, before_tokens: 900, after_tokens: 300 }],
    ["provider:error", { error: { type: "x", msg: "Your credit is too low" } }],
  );
  assertEquals(shown(view.thread.value), [
    "notice: tool-x needs a key",
    "steering: shorter",
    "notice: Your credit is too low",
  ]);
  assertEquals(view.compactions.value, [{ seq: 3, session_id: "ses_1" }]);
});

Deno.test("an answer that was accepted stays when a later call of a tool is repeated", () => {
  const block = { request_id: "req_1", block_index: 0 };
  const view = viewOf(
    ["content_block:start", { ...block, block_type: "text" }],
    ["content_block:end", { ...block, block: { type: "text", text: "I look." } }],
    ["provider:response", { provider: "mock", usage: {}, tool_calls: true }],
    ["provider:retry", { error_message: "overloaded" }],
  );
  assertEquals(shown(view.thread.value), ["text: I look.", "notice: overloaded; trying again"]);
});

Deno.test("entries whose data is something else are passed over, and those after them are shown", () => {
  const events = [
    "run:limits",
    "content_block:end",
    "context:message",
    "tool:pre",
    "approval:required",
    "provider:response",
    "mine:event",
  ];
  const odd = events.flatMap((event) =>
    [{}, null, { block: 1, message: 2, result: 3, response: 4 }].map((data) => [event, data])
  );
  const view = viewOf(
    ["run:start", { status: "running" }],
    ...odd as Draft[],
    ["user:notification", { level: "banner", message: "still here" }],
  );
  const last = view.thread.value!.items.at(-1)!;
  assertEquals([view.count.value, last.kind === "notice" && last.level], [23, "info"]);
  assertEquals(shown(view.thread.value).at(-1), "notice: still here");
});

Deno.test("five thousand deltas in one batch draw once", () => {
  const block = { request_id: "req_1", block_index: 0 };
  const view = new RunView("run_1");
  let drawn = 0;
  view.count.subscribe(() => drawn++);
  const delta: Draft = ["content_block:delta", { ...block, delta: "ab" }];
  view.add(
    entriesOf([["content_block:start", { ...block, block_type: "text" }], ...Array(5_000).fill(delta)]),
  );
  const [item] = view.thread.value!.items;
  assertEquals([drawn, item?.kind === "text" && item.text.value.length], [2, 10_000]);
});
