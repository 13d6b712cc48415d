/** The log pane's rows, briefs, gauges and what is new in a request. */
import type { Entry, ModelCall, ModelRequest } from "preamp/client";
import { briefOf } from "../../../src/server/page/app/log/briefs.ts";
import { fillOf, shownGauge } from "../../../src/server/page/app/log/gauges.ts";
import { LogRows, windowOf } from "../../../src/server/page/app/log/rows.ts";
import { noveltyOf } from "../../../src/server/page/app/log/sent.ts";
import { RunView } from "../../../src/server/page/app/state/run_view.ts";
import { assert, assertEquals } from "../../assert.ts";

type Spec = [event: string, data?: Record<string, unknown>, more?: Partial<Entry>];

function entriesOf(specs: readonly Spec[], from = 1): Entry[] {
  return specs.map(([event, data = {}, more], index) => ({
    seq: from + index,
    event,
    ts: new Date((from + index) * 1000).toISOString(),
    run_id: "run_1",
    session_id: "ses_1",
    data,
    ...more,
  }));
}

function viewOf(...specs: Spec[]): RunView {
  const view = new RunView("run_1");
  view.add(entriesOf(specs));
  return view;
}

/** Resolves once rows have seen all entries of the view. */
async function settled(rows: LogRows): Promise<void> {
  do await new Promise((resolve) => setTimeout(resolve)); while (rows.searching.value);
}

/** Shows the rows of a view as `seq event ×count`. */
async function shown(view: RunView, ...filter: [kind?: "all" | "tools" | "context", query?: string]) {
  const rows = new LogRows(view, ...filter);
  const stop = rows.follow();
  await settled(rows);
  stop();
  return rows.rows.map(({ entry, count, depth }) =>
    `${"> ".repeat(depth)}${entry.seq} ${entry.event}${count > 1 ? ` ×${count}` : ""}`
  );
}

const delta = (text: string, session_id = "ses_1"): Spec => [
  "content_block:delta",
  { request_id: "req_1", block_index: 0, delta: text },
  { session_id },
];

Deno.test("consecutive deltas of a session are one row; a sub-agent's rows are indented", async () => {
  const sub = { session_id: "ses_2", parent_id: "ses_1" };
  const view = viewOf(
    ["run:start", { status: "running" }],
    delta("Hel"),
    delta("lo"),
    ["tool:pre", { tool_name: "task" }],
    ["session:fork", {}, sub],
    ["content_block:delta", { delta: "a" }, sub],
    ["content_block:delta", { delta: "b" }, sub],
    ["session:fork", {}, { session_id: "ses_3", parent_id: "ses_2" }],
    delta("c"),
  );
  assertEquals(await shown(view), [
    "1 run:start",
    "2 content_block:delta ×2",
    "4 tool:pre",
    "> 5 session:fork",
    "> 6 content_block:delta ×2",
    "> > 8 session:fork",
    "9 content_block:delta",
  ]);
});

Deno.test("what a tool says while it runs is one row", async () => {
  const output = (text: string): Spec => ["tool:output", { tool_call_id: "call_1", text, stream: "stdout" }];
  const view = viewOf(["tool:pre", { tool_name: "bash" }], output("one\n"), output("two\n"), ["tool:post"]);
  assertEquals(await shown(view), ["1 tool:pre", "2 tool:output ×2", "4 tool:post"]);
});

Deno.test("a filter by kind and a search leave rows out, also of entries that come later", async () => {
  const view = viewOf(
    ["tool:pre", { tool_name: "grep", tool_input: { pattern: "Room" } }],
    ["context:message", { message: { role: "user", content: "room" } }],
    ["task:agent_spawned", { agent: "planner" }],
  );
  assertEquals(await shown(view, "tools"), ["1 tool:pre", "3 task:agent_spawned"]);
  assertEquals(await shown(view, "all", " ROOM "), ["1 tool:pre", "2 context:message"]);
  assertEquals(await shown(view, "context", "planner"), []);

  const rows = new LogRows(view, "tools", "room");
  const stop = rows.follow();
  view.add(entriesOf([["tool:post", { output: "a room" }], ["tool:post", { output: "a house" }]], 4));
  await settled(rows);
  stop();
  assertEquals(rows.rows.map(({ entry }) => entry.seq), [1, 4]);
  assertEquals([0, 1, 3, 4, 9].map((seq) => rows.indexOf(seq)), [-1, 0, 0, 1, 1]);
  assertEquals([rows.has(0, 1), rows.has(0, 3), rows.has(-1, 0)], [true, false, false]);
});

Deno.test("each entry is looked at once, however often the log grows", async () => {
  let looked = 0;
  const view = new RunView("run_1");
  const rows = new LogRows(view, "all", "42");
  const stop = rows.follow();
  for (let seq = 1; seq <= 50; seq++) {
    const [entry] = entriesOf([["user:notification", { message: `${seq}`, toJSON: () => looked++ }]], seq);
    view.add([entry!]);
    await settled(rows);
  }
  stop();
  assertEquals(looked, 50);
});

Deno.test("the window has the visible rows and a few more", () => {
  assertEquals(windowOf(0, 400, 20, 50_000), [0, 27]);
  assertEquals(windowOf(20_010, 400, 20, 50_000), [994, 1027]);
  assertEquals(windowOf(999_600, 400, 20, 50_000), [49_974, 50_000]);
  assertEquals(windowOf(5_000, 400, 20, 3), [0, 3]); // the list became shorter than where it was scrolled to
  assertEquals(windowOf(0, 400, 20, 0), [0, 0]);
});

Deno.test("a brief says in words what an entry is about", () => {
  const said = (...spec: Spec) => {
    const [entry] = entriesOf([spec]);
    const { text, style } = briefOf({ entry: entry!, count: 1, text: "", depth: 0 });
    return `${style || "plain"}: ${text}`;
  };
  assertEquals(
    [
      said("provider:response", { usage: { input_tokens: 2113, output_tokens: 7, cost_usd: "0.0031" } }),
      said("provider:error", { error: { type: "auth", msg: "No such key" } }),
      said("tool:pre", { tool_name: "bash", tool_input: { command: "ls" } }),
      said("tool:pre", { tool_name: "bash", tool_input: {} }, {
        verdict: { action: "deny", hook_name: "hooks-approval" },
      }),
      said("tool:post", { tool_name: "grep", result: { success: true, output: "12\nhits" } }),
      said("tool:post", { tool_name: "grep", result: { success: false, error: { message: "No file" } } }),
      said("approval:required", { prompt: "Run ls?" }),
      said("approval:denied", { tool_name: null, decision: "unanswered", reason: null }),
      said("run:status", { status: "awaiting_limit" }),
      said("run:end", { run: { status: "incomplete", stop_reason: "limit:max_cost_usd" } }),
      said("context:message", { message: { role: "user", content: [{ type: "text", text: "Hi" }] } }),
      said("context:compaction", { before_tokens: 41_000, after_tokens: 9_000, strategy_level: 2 }),
      said("tool-x:moment", { some_field: 1, list: [], other: "a b" }),
      said("prompt:submit", { prompt: "x".repeat(1000) }).length,
      said("context:reset", { status: "a hook left no messages" }),
    ],
    [
      "plain: 2.1k tokens in, 7 out, $0.0031",
      "failed: ✗ No such key",
      'plain: bash {"command":"ls"}',
      "failed: ✗ bash {} (hooks-approval: deny)",
      "done: ✓ grep 12 hits",
      "failed: ✗ grep: No file",
      "waiting: ◷ Run ls?",
      "failed: ✗ limit: unanswered",
      "waiting: ◷ awaiting limit",
      "plain: incomplete, limit:max_cost_usd",
      "plain: user: Hi",
      "plain: 41k → 9k tokens, level 2",
      "plain: some field 1, other a b",
      "plain: ".length + 160,
      "plain: status a hook left no messages",
    ],
  );
});

Deno.test("gauges have units, and only limits that the server can raise are raisable", () => {
  const gauges = [
    { name: "max_iterations", used: 3, value: 20 },
    { name: "max_tool_calls", used: 2, value: 0 },
    { name: "max_total_tokens", used: 41_200, value: 200_000 },
    { name: "max_cost_usd", used: .0031, value: .5 },
    { name: "max_duration_s", used: 12.34, value: 600 },
  ];
  assertEquals(gauges.map(shownGauge).map(({ label, text, raisable }) => [label, text, raisable]), [
    ["model calls", "3 of 20", true],
    ["tool calls", "2 of 0", true],
    ["tokens", "41k of 200k", true],
    ["cost", "$0.0031 of $0.50", true],
    ["time", "12 s of 600 s", false],
  ]);
});

Deno.test("time that a run waited for a person does not count against its limit", () => {
  const view = viewOf(
    ["run:start", { status: "running" }],
    ["run:status", { status: "awaiting_approval" }],
    ["approval:granted", { approval_id: "apr_1" }],
    ["run:status", { status: "running" }],
  );
  assertEquals(view.transcript.activeMs(10_000), 7_000);
  view.add(entriesOf([["run:status", { status: "awaiting_limit" }]], 6));
  assertEquals(view.transcript.activeMs(100_000), 3_000);
  view.add(entriesOf([["run:end", { run: { status: "incomplete" } }]], 9));
  assertEquals(view.transcript.activeMs(200_000), 3_000);
});

Deno.test("the chart of the context has the calls of the run's own session and its compactions", () => {
  const call = (seq: number, input_tokens: number, session_id = "ses_1") =>
    ({ seq, session_id, usage: { input_tokens } }) as ModelCall;
  const calls = [call(2, 900), call(5, 50, "ses_2"), call(8, 1500), call(12, 700)];
  const compaction = { seq: 13, session_id: "ses_1", before: 1600, after: 600, level: 1 };
  const fill = fillOf(calls, [compaction, { ...compaction, session_id: "ses_2" }], "ses_1", 2000);
  assertEquals(fill.bars.map(({ tokens, compacted }) => [tokens, compacted]), [
    [900, false],
    [1500, false],
    [700, true],
  ]);
  assertEquals(fill.top, 2000);
  assertEquals(fill.summary, "The last call had 700 of 2k tokens (35 %); compacted ×1");
  assertEquals(fillOf(calls, [], "ses_1", 1_000_000).top, 1_000_000, "a use of 1 % looks like 1 %");
  assertEquals(fillOf(calls, [], "ses_1", null).top, 1500);
  assert(fillOf(calls, [], "ses_1", 1_000_000).summary.endsWith("(< 1 %)"));
  const many = Array.from({ length: 300 }, (_, index) => call(index, index));
  assert(fillOf(many, [], "ses_1", null).summary.endsWith("last 100 of 300 calls"));
});

Deno.test("messages that the call before had not are new, also after a compaction", () => {
  const request = (...texts: string[]) =>
    ({ messages: texts.map((content) => ({ content })) }) as unknown as ModelRequest;
  assertEquals(noveltyOf(request("a", "b"), undefined), { is_new: [true, true], left_out: 0 });
  assertEquals(noveltyOf(request("a", "b", "b"), request("a", "b")), {
    is_new: [false, false, true],
    left_out: 0,
  });
  assertEquals(noveltyOf(request("a", "d", "e"), request("a", "b", "c", "d")), {
    is_new: [false, false, true],
    left_out: 2,
  });
});
