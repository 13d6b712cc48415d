/** What a person sees of a run, computed from its entries. */
import { createPreamp } from "preamp/server";
import { type Entry, PreampClient, RunTranscript, type ToolItem } from "preamp/client";
import { assert, assertEquals } from "../assert.ts";
import { type Draft, entriesOf, shownItems, transcriptOf } from "../support/log_entries.ts";

function toolOf({ thread }: RunTranscript, name: string): ToolItem {
  return thread!.items.find((item) => item.kind === "tool" && item.name === name) as ToolItem;
}

/** Resolves to the entries of the plan with everything in it; its question is answered. */
async function everything(onEntry: (entry: Entry) => void = () => {}): Promise<Entry[]> {
  await using preamp = createPreamp({ authenticate: null });
  const plan = await Deno.readTextFile(new URL("../../plans/everything.yaml", import.meta.url));
  const client = new PreampClient({
    url: "http://localhost",
    fetch: (input, init) => preamp.fetch(new Request(input, init)),
  });
  const entries: Entry[] = [];
  for await (const entry of client.stream({ prompt: "Plan the party", plan })) {
    entries.push(entry);
    onEntry(entry);
    if (entry.event !== "approval:required") continue;
    const { data: [approval] } = await client.listApprovals(entry.run_id);
    await client.answer(approval!, "allow");
  }
  return entries;
}

Deno.test("a real run with tools, a question and a sub-agent is the conversation that it was", async () => {
  const view = new RunTranscript();
  let asked: unknown;
  await everything((entry) => {
    view.add([entry]);
    if (entry.event !== "approval:required") return;
    asked = view.questions[0]?.tool_input;
    const { phase, question } = toolOf(view, "calculator");
    assertEquals([phase, question?.status], ["asking", "pending"]);
  });
  assertEquals(asked, { expression: "12 * 7.5" });
  assertEquals(shownItems(view.thread), [
    "prompt: Plan the party",
    "text: The bill and the list, side by side.",
    "calculator: done",
    "todo: done",
    "task: done",
    "text: Twelve guests at 7.50 are 90, the room is for Friday, and the planner has a list. Let me look at it again.",
    "todo: failed",
  ]);
  assertEquals(toolOf(view, "calculator").result, "90");
  assertEquals(shownItems(toolOf(view, "task").thread), [
    "prompt: Plan a party",
    "todo: done",
    "text: Two things are on the list.",
  ]);
  assertEquals([view.status, view.run?.stop_reason], ["incomplete", "limit:max_tool_calls"]);
  assertEquals(view.questions.map(({ status, decision }) => [status, decision]), [[
    "granted",
    "allow",
  ]]);
  const calls = view.calls.map(({ session_id, ended }) =>
    [session_id === view.thread!.session_id, ended !== null] as const
  );
  assertEquals(calls, [[true, true], [true, true], [false, true], [false, true], [true, true]]);
});

Deno.test("entries that are there already are skipped", () => {
  const entries = entriesOf([["prompt:submit", { prompt: "a" }], ["prompt:submit", { prompt: "b" }]]);
  const view = new RunTranscript();
  view.add(entries);
  view.add(entries);
  assertEquals([view.seq, shownItems(view.thread)], [2, ["prompt: a", "prompt: b"]]);
});

Deno.test("the text of an attempt that is repeated disappears", () => {
  const block = { request_id: "req_1", block_index: 0 };
  const view = transcriptOf(
    ["provider:request", { provider: "mock", iteration: 1 }],
    ["content_block:start", { ...block, block_type: "text" }],
    ["content_block:delta", { ...block, delta: "half an ans" }],
    ["content_block:end", { ...block, block: { type: "text", text: "half an answer" } }],
    ["content_block:start", { ...block, block_index: 1, block_type: "tool_call", name: "bash" }],
    ["provider:retry", { error_message: "overloaded", delay: 1.5 }],
  );
  assertEquals(shownItems(view.thread), ["notice: overloaded; trying again in 1.5 s"]);
});

Deno.test("a stream that broke keeps its text, and is no longer written", () => {
  const block = { request_id: "req_1", block_index: 0 };
  const view = transcriptOf(
    ["content_block:start", { ...block, block_type: "text" }],
    ["content_block:delta", { ...block, delta: "half" }],
    ["llm:stream_aborted", { request_id: "req_1", error: "cancelled" }],
  );
  const [item] = view.thread!.items;
  assert(item?.kind === "text" && item.done);
  assertEquals(item.text, "half");
});

Deno.test("the answer of a loop without blocks is shown from its response", () => {
  const response = { content: [{ type: "text", text: "hello" }] };
  const view = transcriptOf(
    ["provider:request", { provider: "mock", iteration: 1 }],
    ["provider:response", { provider: "mock", usage: {}, tool_calls: false, response }],
  );
  assertEquals(shownItems(view.thread), ["text: hello"]);
});

Deno.test("a denied call has the reason that the model read", () => {
  const call = { tool_name: "bash", tool_call_id: "call_1", tool_input: { command: "rm -r /" } };
  const message = { role: "tool", tool_call_id: "call_1", content: "Denied by hook: never" };
  const view = transcriptOf(
    ["tool:pre", call, "ses_1", { action: "deny", hook_name: "hooks-approval", reason: "never" }],
    ["context:message", { index: 3, message }],
  );
  assertEquals(shownItems(view.thread), ["bash: denied"]);
  assertEquals(toolOf(view, "bash").result, "Denied by hook: never");
});

Deno.test("the wait for a person is no part of the time of a tool or of a model call", () => {
  const call = { tool_name: "bash", tool_call_id: "call_1", tool_input: {} };
  const view = transcriptOf(
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
  const { started, ended } = toolOf(view, "bash");
  const [model] = view.calls;
  const times = [started, ended, model!.started, model!.ended].map((ts) => Date.parse(ts!) / 1000);
  assertEquals(times, [3, 4, 8, 9]);
  assertEquals(shownItems(view.thread), [
    "bash: done",
    "question: granted",
    "notice: max_iterations is now 2: raised by key:ann",
  ]);
});

Deno.test("a run that was cancelled in a model call has no open call", () => {
  const view = transcriptOf(
    ["provider:request", { provider: "mock", iteration: 1 }],
    ["cancel:requested", { state: "graceful" }],
  );
  assertEquals([view.cancelling, view.calls[0]!.ended], [true, null]);
  const [end] = entriesOf([["run:end", { run: { status: "cancelled" } }]]);
  view.add([{ ...end!, seq: 3, ts: new Date(2000).toISOString() }]);
  assertEquals(view.calls[0]!.ended, new Date(2000).toISOString());
});

Deno.test("a run that continued after a restart says so, and its interrupted call is over", () => {
  const view = transcriptOf(
    ["provider:request", { provider: "mock", iteration: 1 }],
    ["run:status", { status: "running", resumed: true }],
    ["provider:request", { provider: "mock", iteration: 1 }],
  );
  assertEquals(shownItems(view.thread), ["notice: The run continues after a restart of the server"]);
  assertEquals(view.calls.map(({ ended }) => ended !== null), [true, false]);
});

Deno.test("failures, skipped modules, compactions and steering are shown", () => {
  const view = transcriptOf(
    ["module:skipped", { module_id: "tool-x", message: "tool-x needs a key" }],
    ["run:steered", { text: "shorter" }],
    ["context:compaction", { strategy_level: 2, before_tokens: 900, after_tokens: 300 }],
    ["provider:error", { error: { type: "x", msg: "Your credit is too low" } }],
  );
  assertEquals(shownItems(view.thread), [
    "notice: tool-x needs a key",
    "steering: shorter",
    "notice: Your credit is too low",
  ]);
  assertEquals(view.compactions, [{ seq: 3, session_id: "ses_1" }]);
});

Deno.test("an answer that was accepted stays when a later call of a tool is repeated", () => {
  const block = { request_id: "req_1", block_index: 0 };
  const view = transcriptOf(
    ["content_block:start", { ...block, block_type: "text" }],
    ["content_block:end", { ...block, block: { type: "text", text: "I look." } }],
    ["provider:response", { provider: "mock", usage: {}, tool_calls: true }],
    ["provider:retry", { error_message: "overloaded" }],
  );
  assertEquals(shownItems(view.thread), ["text: I look.", "notice: overloaded; trying again"]);
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
  const view = transcriptOf(
    ["run:start", { status: "running" }],
    ...odd as Draft[],
    ["user:notification", { level: "banner", message: "still here" }],
  );
  const last = view.thread!.items.at(-1)!;
  assertEquals([view.seq, last.kind === "notice" && last.level], [23, "info"]);
  assertEquals(shownItems(view.thread).at(-1), "notice: still here");
});

Deno.test("a log that is read in pieces is the transcript of the whole", async () => {
  const entries = await everything();
  const whole = new RunTranscript();
  whole.add(entries);
  const plain = (transcript: RunTranscript) =>
    JSON.stringify([transcript, transcript.gauges(0), transcript.waitedMs(0)]);
  for (const size of [1, 2, 3, 7, 50]) {
    const pieces = new RunTranscript();
    for (let at = 0; at < entries.length; at += size) {
      // a reader that reconnects may get entries again
      const changed = pieces.add(entries.slice(Math.max(0, at - 2), at + size));
      const known = new Set(changed);
      for (const part of known) assert(typeof part === "object");
    }
    assertEquals(plain(pieces), plain(whole), `pieces of ${size}`);
  }
  assertEquals(whole.usage.tool_calls, Number(whole.run?.tool_call_count));
  assertEquals(whole.usage.model_calls, Number(whole.run?.turn_count));
  assertEquals(whole.usage.total_tokens, whole.run?.usage.total_tokens);
  assertEquals([whole.title, whole.run?.title], ["Plan the party", "Plan the party"]);
});

Deno.test("add() returns the items that changed, and the threads that have other items", () => {
  const block = { request_id: "req_1", block_index: 0 };
  const entries = entriesOf([
    ["prompt:submit", { prompt: "go" }],
    ["content_block:start", { ...block, block_type: "text" }],
    ["content_block:delta", { ...block, delta: "a" }],
    ["run:status", { status: "running" }],
  ]);
  const transcript = new RunTranscript();
  const changed = entries.map((entry) =>
    [...transcript.add([entry])].map((part) => "kind" in part ? part.kind : "thread")
  );
  assertEquals(changed, [["thread", "prompt"], ["thread", "text"], ["text"], []]);
});

Deno.test("an answer of a process that is gone is void, and so are its calls", () => {
  const lost = { request_id: "req_1", block_index: 0 };
  const again = { request_id: "req_2", block_index: 0 };
  const call = { type: "tool_call", id: "call_1", name: "bash", input: {} };
  const answer: Draft[] = [
    ["content_block:start", { ...again, block_type: "text" }],
    ["content_block:delta", { ...again, delta: "whole" }],
    ["provider:response", { provider: "mock", usage: {}, tool_calls: false }],
  ];
  const begun: Draft[] = [
    ["provider:request", { provider: "mock", iteration: 1 }],
    ["content_block:start", { ...lost, block_type: "text" }],
    ["content_block:delta", { ...lost, delta: "half" }],
    ["content_block:start", { ...lost, block_index: 1, block_type: "tool_call", name: "bash" }],
    ["content_block:end", { ...lost, block_index: 1, block: call }],
  ];
  const late: Draft = ["content_block:delta", { ...lost, delta: " an answer" }];
  const recovered = transcriptOf(
    ...begun,
    ["run:status", { status: "running", resumed: true }],
    late,
    ...answer,
  );
  assertEquals(shownItems(recovered.thread), [
    "notice: The run continues after a restart of the server",
    "text: whole",
  ]);
  const voided = transcriptOf(...begun, ["content_block:void", { request_id: "req_1" }], late, ...answer);
  assertEquals(shownItems(voided.thread), ["text: whole"]);
  const other = transcriptOf(...begun, ["content_block:void", { request_id: "req_9" }], late);
  assertEquals(shownItems(other.thread), ["text: half an answer", "bash: writing"]);
});

Deno.test("what a tool says while it runs is kept, its last characters", () => {
  const call = { tool_name: "bash", tool_call_id: "call_1", tool_input: { command: "make" } };
  const output = (text: string): Draft => ["tool:output", { tool_call_id: "call_1", text, stream: "stdout" }];
  const running = transcriptOf(["tool:pre", call], output("one\n"), output("two\n"));
  assertEquals(toolOf(running, "bash").output, "one\ntwo\n");
  const long = transcriptOf(["tool:pre", call], output("x".repeat(15_000)), output("y".repeat(2_000)));
  const { output: kept, output_dropped } = toolOf(long, "bash");
  assertEquals([kept.length, output_dropped, kept.slice(-3)], [16_000, 1_000, "yyy"]);
  const ended = transcriptOf(
    ["tool:pre", call],
    ["tool:post", { ...call, result: { success: true, output: "done" } }],
    output("late"),
    output("later"),
  );
  assertEquals([toolOf(ended, "bash").output, toolOf(ended, "bash").result], ["", "done"]);
});

Deno.test("a call that the end of the run broke off is stopped, and one of a later turn is another call", () => {
  const call = { tool_name: "bash", tool_call_id: "call_1", tool_input: {} };
  const transcript = transcriptOf(
    ["tool:pre", call],
    ["tool:post", { ...call, result: { success: false, error: { message: "no" } } }],
    ["tool:pre", call],
    ["run:end", { run: { status: "cancelled" } }],
  );
  assertEquals(shownItems(transcript.thread), ["bash: failed", "bash: stopped"]);
});

Deno.test("a question that is about no call is a part of the conversation, with its answer", () => {
  const limit = { name: "max_iterations", value: 1, used: 1, next: null };
  const transcript = transcriptOf(
    ["approval:required", { approval_id: "apr_1", tool_call_id: null, prompt: "Further?", limit }],
    ["approval:denied", { approval_id: "apr_1", tool_call_id: null, decision: "timeout", reason: null }],
  );
  const [item] = transcript.thread!.items;
  assert(item?.kind === "question");
  assertEquals([item.question.status, item.question.decision, transcript.questions[0]], [
    "expired",
    "timeout",
    item.question,
  ]);
});

Deno.test("the title is the beginning of the prompt, also of a log that does not state it", () => {
  assertEquals(transcriptOf(["prompt:submit", { prompt: "x".repeat(300) }]).title, "x".repeat(200));
  assertEquals(
    transcriptOf(["run:start", { status: "running", title: "Fix it" }], ["prompt:submit", {
      prompt: "Fix it\n",
    }]).title,
    "Fix it",
  );
});
