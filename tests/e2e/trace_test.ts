/**
 * One run, whole: posts the plan below and compares every entry of its log, the run object and the approval
 * with what the design fixes. Names, order, envelope and data whole; ids, times and context figures by their
 * form.
 */
import { assert, assertEquals, assertMatch } from "../assert.ts";
import { createHash } from "node:crypto";
import { startServer } from "./program.ts";
import { readSse } from "../support/sse.ts";

const PLAN = {
  session: { orchestrator: "loop-streaming", context: "context-simple" },
  system: "Be brief.",
  providers: [{
    module: "provider-mock",
    config: {
      chunk_chars: 8,
      responses: [
        {
          tool_calls: [{ name: "calculator", arguments: { expression: "6*7" } }],
          usage: { input_tokens: 40, output_tokens: 12 },
        },
        { text: "6 × 7 is 42.", usage: { input_tokens: 60, output_tokens: 10 } },
      ],
    },
  }],
  tools: ["tool-calculator"],
  hooks: [{ module: "hooks-approval", config: { rules: [{ tool: "calculator", action: "ask" }] } }],
  limits: { max_tool_calls: 5 },
};

const PLAN_YAML = `
session: {orchestrator: loop-streaming, context: context-simple}
system: "Be brief."
providers:
  - module: provider-mock
    config:
      chunk_chars: 8
      responses:
        - {tool_calls: [{name: calculator, arguments: {expression: "6*7"}}], usage: {input_tokens: 40, output_tokens: 12}}
        - {text: "6 × 7 is 42.", usage: {input_tokens: 60, output_tokens: 10}}
tools: [tool-calculator]
hooks: [{module: hooks-approval, config: {rules: [{tool: calculator, action: ask}]}}]
limits: {max_tool_calls: 5}
`;

const PLAN_HASH = "sha256-gWR8L2GZsyupZSEYA52fT/MTL+9dCxH6bk3bplD1AJw=";
const ARGS_HASH = "sha256-VBR63yzMr3ijwsyyeExWFL8gtrwmYTZLSUyOJN0+sK4=";
const LIMITS = {
  max_iterations: 50,
  max_tool_calls: 5,
  max_total_tokens: 1000000,
  max_cost_usd: "5",
  max_duration_s: 600,
};
const PROMPT = "What is 6 × 7?";
const ANSWER = "6 × 7 is 42.";
const CALL = { tool_name: "calculator", tool_call_id: "call_1" };
const INPUT = { expression: "6*7" };
const CALL_BLOCK = { type: "tool_call", id: "call_1", name: "calculator", input: INPUT };
const TEXT_BLOCK = { type: "text", text: ANSWER };
const USAGE_1 = { input_tokens: 40, output_tokens: 12, total_tokens: 52, cost_usd: null };
const USAGE_2 = { input_tokens: 60, output_tokens: 10, total_tokens: 70, cost_usd: null };

interface WireEntry {
  seq: number;
  event: string;
  ts: string;
  run_id: string;
  session_id: string;
  turn_id?: string;
  iteration?: number;
  data: Record<string, unknown>;
  verdict?: Record<string, unknown>;
}

/** Ids that are made up in each run, found in the log itself. */
interface Ids {
  session: unknown;
  group: unknown;
  approval: unknown;
  requests: unknown[];
  expires_at: unknown;
}

type Row = [event: string, data: Record<string, unknown>, verdict?: Record<string, unknown>];

function expected(ids: Ids, run: Record<string, unknown>): Row[] {
  const mounted = (module_id: string, type: string, name: string): Row => [
    "module:mounted",
    { module_id, type, names: [name], isolation: "inline", integrity: null },
  ];
  const call = { ...CALL, tool_input: INPUT, parallel_group_id: ids.group };
  const [first, second] = ids.requests;
  return [
    ["run:start", {
      status: "running",
      plan_hash: PLAN_HASH,
      lock_hash: null,
      limits: LIMITS,
      metadata: {},
      title: PROMPT,
    }],
    mounted("loop-streaming", "orchestrator", "orchestrator"),
    mounted("context-simple", "context", "context"),
    mounted("provider-mock", "provider", "mock"),
    mounted("tool-calculator", "tool", "calculator"),
    mounted("hooks-approval", "hook", "tool:pre"),
    ["session:start", { session_id: ids.session, parent_id: null }],
    ["context:message", {
      index: 0,
      message: { role: "system", content: "Be brief.", metadata: { source: "plan" } },
    }],
    ["execution:start", { prompt: PROMPT }],
    ["prompt:submit", { prompt: PROMPT }],
    ["context:message", { index: 1, message: { role: "user", content: PROMPT } }],
    ["provider:request", { provider: "mock", iteration: 1 }],
    ["content_block:start", {
      request_id: first,
      block_index: 0,
      block_type: "tool_call",
      name: "calculator",
    }],
    ["content_block:end", { request_id: first, block_index: 0, total_blocks: 1, block: CALL_BLOCK }],
    ["session:state", { set: { "provider-mock": { calls: 1 } } }],
    ["provider:response", {
      provider: "mock",
      iteration: 1,
      usage: USAGE_1,
      tool_calls: true,
      response: {
        content: [CALL_BLOCK],
        tool_calls: [{ id: "call_1", name: "calculator", arguments: INPUT }],
        finish_reason: "tool_calls",
        usage: USAGE_1,
      },
    }],
    ["context:message", {
      index: 2,
      message: {
        role: "assistant",
        content: [CALL_BLOCK],
        tool_calls: [{ id: "call_1", name: "calculator", tool: "calculator", arguments: INPUT }],
      },
    }],
    ["tool:pre", { ...call, risk: "low", requires_approval: false }, {
      action: "ask_user",
      hook_name: "hooks-approval",
    }],
    ["approval:required", {
      approval_id: ids.approval,
      ...CALL,
      tool_input: INPUT,
      args_hash: ARGS_HASH,
      action: "execute",
      risk_level: "low",
      prompt: "Allow calculator?",
      options: ["Allow", "Deny"],
      default: "deny",
      expires_at: ids.expires_at,
      hook_name: "hooks-approval",
    }],
    ["run:status", { status: "awaiting_approval" }],
    ["approval:granted", {
      approval_id: ids.approval,
      ...CALL,
      args_hash: ARGS_HASH,
      decision: "allow",
      reason: "looks right",
      decided_by: "key:ci",
    }],
    ["run:status", { status: "running" }],
    ["tool:post", { ...call, result: { success: true, output: "42", error: null } }],
    ["context:message", {
      index: 3,
      message: { role: "tool", tool_call_id: "call_1", name: "calculator", content: "42" },
    }],
    ["provider:request", { provider: "mock", iteration: 2 }],
    ["content_block:start", { request_id: second, block_index: 0, block_type: "text" }],
    ["content_block:delta", { request_id: second, block_index: 0, sequence: 1, delta: "6 × 7 is" }],
    ["content_block:delta", { request_id: second, block_index: 0, sequence: 2, delta: " 42." }],
    ["content_block:end", { request_id: second, block_index: 0, total_blocks: 1, block: TEXT_BLOCK }],
    ["session:state", { set: { "provider-mock": { calls: 2 } } }],
    ["provider:response", {
      provider: "mock",
      iteration: 2,
      usage: USAGE_2,
      tool_calls: false,
      response: { content: [TEXT_BLOCK], finish_reason: "stop", usage: USAGE_2 },
    }],
    ["context:message", { index: 4, message: { role: "assistant", content: [TEXT_BLOCK] } }],
    ["prompt:complete", { response_preview: ANSWER, length: 12 }],
    ["execution:end", { response: ANSWER, status: "completed" }],
    ["orchestrator:complete", { orchestrator: "loop-streaming", turn_count: 2, status: "success" }],
    ["session:end", { session_id: ids.session, status: "completed" }],
    ["session:cleanup", { ran: 0, failed: [] }],
    ["run:end", { run }],
  ];
}

function expectedRun(run: Record<string, unknown>): Record<string, unknown> {
  return {
    id: run.id,
    object: "run",
    session_id: run.session_id,
    status: "completed",
    stop_reason: "end_turn",
    output_text: ANSWER,
    output: [TEXT_BLOCK],
    turn_count: 2,
    tool_call_count: 1,
    usage: {
      input_tokens: 100,
      output_tokens: 22,
      total_tokens: 122,
      cache_read_tokens: 0,
      cache_write_tokens: 0,
      cost_usd: null,
    },
    limits: LIMITS,
    plan_hash: PLAN_HASH,
    lock_hash: null,
    warnings: [],
    approvals: [],
    error: null,
    metadata: {},
    title: PROMPT,
    forked_from: null,
    context: run.context,
    isolation: {
      "loop-streaming": "inline",
      "context-simple": "inline",
      "provider-mock": "inline",
      "tool-calculator": "inline",
      "hooks-approval": "inline",
    },
    created_at: run.created_at,
    ended_at: run.ended_at,
    events_url: `/v1/runs/${run.id}/events`,
  };
}

for (const [form, plan] of [["data", PLAN], ["YAML text", PLAN_YAML]] as const) {
  Deno.test(`the server writes the log of one run, whole, when the plan comes as ${form}`, async () => {
    const config = await Deno.makeTempFile({ suffix: ".yaml" });
    await Deno.writeTextFile(config, `auth: {keys: [{name: ci, sha256: "${sha256("k1")}"}]}`);
    await using program = await startServer(["--config", config]);
    await Deno.remove(config);
    const headers = { authorization: "Bearer k1", "content-type": "application/json" };
    const response = await fetch(`${program.url}/v1/runs`, {
      method: "POST",
      headers: { ...headers, accept: "text/event-stream" },
      body: JSON.stringify({ prompt: PROMPT, plan }),
    });
    assertEquals(response.status, 200);
    assertMatch(response.headers.get("content-type") ?? "", /^text\/event-stream/);
    const run_id = response.headers.get("preamp-run-id")!;

    const entries: WireEntry[] = [];
    let paused: Record<string, unknown> = {};
    for await (const frame of readSse(response)) {
      const entry: WireEntry = JSON.parse(frame.data);
      assertEquals([frame.id, frame.event], [String(entry.seq), entry.event]);
      entries.push(entry);
      if (entry.event === "run:status" && entry.data.status === "awaiting_approval") {
        paused = await (await fetch(`${program.url}/v1/runs/${run_id}`, { headers })).json();
        const approval_id = entries.find((one) => one.event === "approval:required")!.data.approval_id;
        const answered = await fetch(`${program.url}/v1/runs/${run_id}/approvals/${approval_id}`, {
          method: "POST",
          headers,
          body: JSON.stringify({ decision: "allow", reason: "looks right" }),
        });
        assertEquals(answered.status, 200);
        checkApproval(await answered.json(), entries);
      }
    }

    const of = (event: string) => entries.filter((entry) => entry.event === event);
    const required = of("approval:required")[0]!.data;
    const ids: Ids = {
      session: entries[0]!.session_id,
      group: of("tool:pre")[0]!.data.parallel_group_id,
      approval: required.approval_id,
      requests: of("content_block:start").map((entry) => entry.data.request_id),
      expires_at: required.expires_at,
    };
    const run = await (await fetch(`${program.url}/v1/runs/${run_id}`, { headers })).json();
    assertEquals(
      entries.map(({ event, data, verdict }) => verdict ? [event, data, verdict] : [event, data]) as unknown,
      expected(ids, run) as unknown,
    );
    assertEquals(run, expectedRun(run));
    checkEnvelopes(entries, run_id);
    checkForms(ids, run, entries);
    assertEquals([paused.status, paused.stop_reason, paused.ended_at], ["awaiting_approval", null, null]);
    assertEquals((paused.approvals as { id: unknown }[]).map((approval) => approval.id), [ids.approval]);

    const list = await (await fetch(`${program.url}/v1/runs/${run_id}/events`, {
      headers: { ...headers, accept: "application/json" },
    })).json();
    assertEquals(list.data, entries);
    const resumed = await fetch(`${program.url}/v1/runs/${run_id}/events`, {
      headers: { ...headers, accept: "text/event-stream", "last-event-id": "27" },
    });
    const rest = [];
    for await (const frame of readSse(resumed)) rest.push(JSON.parse(frame.data));
    assertEquals(rest, entries.slice(27));
  });
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

/**
 * `turn_id` from execution:start to orchestrator:complete, `iteration` from the first provider:request to the
 * same end.
 */
function checkEnvelopes(entries: WireEntry[], run_id: string): void {
  const events = entries.map((entry) => entry.event);
  const start = events.indexOf("execution:start");
  const request = events.indexOf("provider:request");
  const second = events.lastIndexOf("provider:request");
  const complete = events.indexOf("orchestrator:complete");
  const turn_id = entries[start]!.turn_id;
  for (const [index, entry] of entries.entries()) {
    const in_turn = index >= start && index <= complete;
    const iteration = !in_turn || index < request ? undefined : index < second ? 1 : 2;
    const envelope = {
      seq: index + 1,
      event: entry.event,
      ts: entry.ts,
      run_id,
      session_id: entries[0]!.session_id,
      ...(in_turn ? { turn_id } : {}),
      ...(iteration === undefined ? {} : { iteration }),
      data: entry.data,
      ...(entry.verdict ? { verdict: entry.verdict } : {}),
    };
    assertEquals(
      Object.entries(entry),
      Object.entries(envelope),
      `envelope of entry ${index + 1}, its order of keys too`,
    );
    assertMatch(entry.ts, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  }
}

function checkForms(ids: Ids, run: Record<string, unknown>, entries: WireEntry[]): void {
  assertMatch(String(run.id), /^run_\w{16,}$/);
  assertMatch(String(ids.session), /^ses_\w{16,}$/);
  assertMatch(String(ids.approval), /^apr_\w{16,}$/);
  assertMatch(String(ids.group), /^grp_\w{16,}$/);
  assertMatch(String(entries[8]!.turn_id), /^turn_\w+$/);
  assertEquals(new Set(ids.requests).size, 2);
  const { tokens, budget, level, compactions } = run.context as Record<string, number>;
  assert(tokens! > 0 && budget! > tokens! && budget! < 100_000, `context ${tokens}/${budget}`);
  assertEquals([level, compactions], [0, 0]);
}

function checkApproval(approval: Record<string, unknown>, entries: WireEntry[]): void {
  const required = entries.find((entry) => entry.event === "approval:required")!;
  const { approval_id, ...fields } = required.data;
  assertEquals(approval, {
    id: approval_id,
    object: "approval",
    run_id: required.run_id,
    session_id: required.session_id,
    ...fields,
    status: "granted",
    decision: "allow",
    reason: "looks right",
    decided_by: "key:ci",
    created_at: required.ts,
    decided_at: approval.decided_at,
  });
}
