import type { JsonObject } from "../../src/sdk/types.ts";
import { Metrics } from "../../src/telemetry/metrics.ts";
import { runObservers, RunsMetrics } from "../../src/telemetry/run_observers.ts";
import type { Entry } from "../../src/kernel/host.ts";
import { createPreamp, type Preamp } from "../../src/server/mod.ts";
import { until } from "../support/clock.ts";
import { assert, assertEquals, assertMatch } from "../assert.ts";
import { problemOf, testApp } from "../support/http.ts";

/** Returns the lines of counts, without times, sizes and help texts. */
function countsOf(text: string): string[] {
  return text.split("\n").filter((line) =>
    line !== "" && !line.startsWith("#") && !/_bucket|_sum|_bytes|event_loop/.test(line)
  );
}

async function scrape(preamp: Pick<Preamp, "fetch">): Promise<string> {
  return await (await preamp.fetch(new Request("http://localhost/metrics"))).text();
}

function post(path: string, body: unknown): Request {
  const headers = { "content-type": "application/json" };
  return new Request(`http://localhost${path}`, { method: "POST", headers, body: JSON.stringify(body) });
}

const SESSION = { orchestrator: "loop-streaming", context: "context-simple" };
const CALCULATE = { name: "calculator", arguments: { expression: "6*7" } };

function planOf(responses: unknown[], more: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    session: SESSION,
    providers: [{ module: "provider-mock", config: { responses } }],
    tools: ["tool-calculator"],
    ...more,
  };
}

Deno.test("GET /metrics has the exact counts of requests, runs, model calls, tokens and tools", async () => {
  const ended: JsonObject[] = [];
  await using preamp = createPreamp({
    authenticate: null,
    log: null,
    runtime_log: (_, event, facts) => event === "run_ended" && ended.push(facts),
  });
  const usage = {
    input_tokens: 100,
    output_tokens: 20,
    total_tokens: 127,
    cache_read_tokens: 60,
    cache_write_tokens: 7,
    reasoning_tokens: 5,
    cost_usd: "0.25",
  };
  const wrong = { name: "calculator", arguments: { expression: "1/" } };
  const unknown = { name: "no_such_tool", arguments: {} };
  const done = planOf([{ tool_calls: [CALCULATE, wrong, unknown], usage }, { text: "42", usage }]);
  const denied = planOf([{ tool_calls: [CALCULATE], usage }, { text: "no", usage }], {
    hooks: [{ module: "hooks-approval", config: { rules: [{ tool: "calculator", action: "deny" }] } }],
  });
  const failing = planOf([{ error: { type: "AuthenticationError", message: "the key was refused" } }]);
  for (const plan of [done, denied, failing]) {
    await (await preamp.fetch(post("/v1/runs", { prompt: "go", plan }))).body?.cancel();
  }
  await (await preamp.fetch(new Request("http://localhost/no/such/path"))).body?.cancel();
  const odd = new Request("http://localhost/v1/runs/run_x", { method: "PROPFIND" });
  await (await preamp.fetch(odd)).body?.cancel();
  await until(() => ended.length === 3);
  assertEquals(
    ended.map(({ status, code, input_tokens, output_tokens, cost_usd, duration_s }) => [
      ...[status, code, input_tokens, output_tokens, cost_usd, typeof duration_s],
    ]),
    [
      ["completed", undefined, 214, 40, "0.5", "number"],
      ["completed", undefined, 214, 40, "0.5", "number"],
      ["failed", "provider_auth", 0, 0, undefined, "number"],
    ],
  );
  const lines = countsOf(await scrape(preamp)).filter((line) =>
    !line.includes("store_commit") && !/^preamp_(?:runs|guests)_ended_total.* 0$/.test(line)
  );
  assertEquals(lines, [
    'preamp_http_request_duration_seconds_count{method="POST",route="/v1/runs",status="200"} 3',
    'preamp_http_request_duration_seconds_count{method="GET",route="none",status="404"} 1',
    'preamp_http_request_duration_seconds_count{method="other",route="/v1/runs/{id}",status="405"} 1',
    "preamp_event_streams 0",
    'preamp_runs{status="queued"} 0',
    'preamp_runs{status="running"} 0',
    'preamp_runs{status="awaiting_approval"} 0',
    'preamp_runs{status="awaiting_limit"} 0',
    'preamp_run_duration_seconds_count{status="completed"} 2',
    'preamp_run_duration_seconds_count{status="failed"} 1',
    'preamp_runs_ended_total{status="completed",stop_reason="end_turn"} 2',
    'preamp_runs_ended_total{status="failed",stop_reason="error"} 1',
    'preamp_model_call_duration_seconds_count{provider="mock",outcome="ok"} 4',
    'preamp_model_call_duration_seconds_count{provider="mock",outcome="AuthenticationError"} 1',
    'preamp_model_retries_total{provider="mock"} 0',
    'preamp_model_tokens_total{provider="mock",kind="input"} 428',
    'preamp_model_tokens_total{provider="mock",kind="output"} 80',
    'preamp_model_tokens_total{provider="mock",kind="cache_read"} 240',
    'preamp_model_tokens_total{provider="mock",kind="cache_write"} 28',
    'preamp_model_tokens_total{provider="mock",kind="reasoning"} 20',
    'preamp_model_cost_usd_total{provider="mock"} 1',
    'preamp_tool_call_duration_seconds_count{outcome="error"} 1',
    'preamp_tool_call_duration_seconds_count{outcome="ok"} 1',
    'preamp_tool_call_duration_seconds_count{outcome="failed"} 1',
    'preamp_tool_call_duration_seconds_count{outcome="denied"} 1',
  ]);
});

Deno.test("GET /metrics has counters at zero before the first run", async () => {
  await using preamp = createPreamp({ authenticate: null, log: null, runtime_log: null });
  const lines = countsOf(await scrape(preamp));
  for (
    const line of [
      'preamp_runs_ended_total{status="failed",stop_reason="error"} 0',
      'preamp_guests_ended_total{cause="memory"} 0',
    ]
  ) assert(lines.includes(line), line);
});

Deno.test("GET /metrics has open runs and streams", async () => {
  await using preamp = createPreamp({ authenticate: null, log: null, runtime_log: null });
  const plan = planOf([{ tool_calls: [CALCULATE] }, "done"], {
    hooks: [{ module: "hooks-approval", config: { rules: [{ tool: "calculator", action: "ask" }] } }],
  });
  const open = (text: string) => countsOf(text).filter((line) => /^preamp_(runs\{|event_streams)/.test(line));
  const run = await (await preamp.fetch(post("/v1/runs", { prompt: "go", plan, background: true }))).json();
  const events = `http://localhost/v1/runs/${run.id}/events`;
  const stream = await preamp.fetch(new Request(events, { headers: { accept: "text/event-stream" } }));
  const reader = stream.body!.pipeThrough(new TextDecoderStream()).getReader();
  for (let seen = ""; !seen.includes("awaiting_approval"); seen += (await reader.read()).value);
  assertEquals(open(await scrape(preamp)), [
    "preamp_event_streams 1",
    'preamp_runs{status="queued"} 0',
    'preamp_runs{status="running"} 0',
    'preamp_runs{status="awaiting_approval"} 1',
    'preamp_runs{status="awaiting_limit"} 0',
  ]);
  const approvals = `/v1/runs/${run.id}/approvals`;
  const { data } = await (await preamp.fetch(new Request(`http://localhost${approvals}`))).json();
  await (await preamp.fetch(post(`${approvals}/${data[0].id}`, { decision: "allow" }))).body?.cancel();
  while (!(await reader.read()).done);
  assertEquals(open(await scrape(preamp)), [
    "preamp_event_streams 0",
    'preamp_runs{status="queued"} 0',
    'preamp_runs{status="running"} 0',
    'preamp_runs{status="awaiting_approval"} 0',
    'preamp_runs{status="awaiting_limit"} 0',
  ]);
});

Deno.test("the wait for an approval is not time of the tool", () => {
  const metrics = new Metrics();
  const at = (seconds: number, event: string, data: Entry["data"] = {}): Entry => ({
    seq: 1,
    ts: new Date(seconds * 1000).toISOString(),
    run_id: "run_1",
    session_id: "ses_1",
    event,
    data: { tool_name: "a", tool_call_id: "call_1", ...data },
  });
  new RunsMetrics(metrics, () => {}).run().stored([
    at(0, "tool:pre"),
    at(1, "approval:required"),
    at(60, "approval:granted"),
    at(62, "tool:post", { result: { success: true } }),
  ]);
  const sum = /^preamp_tool_call_duration_seconds_sum\{.*$/m.exec(metrics.text())?.[0];
  metrics.close();
  assertEquals(sum, 'preamp_tool_call_duration_seconds_sum{outcome="ok"} 2');
});

Deno.test("10,000 paths, providers, errors, stop reasons and tools do not grow the metrics", async () => {
  await using preamp = createPreamp({ authenticate: null, log: null, runtime_log: null });
  for (let index = 0; index < 10_000; index++) {
    const request = new Request(`http://localhost/${index}`, { method: `M${index}` });
    await (await preamp.fetch(request)).body?.cancel();
  }
  const requests = countsOf(await scrape(preamp)).filter((line) => line.includes("http_request"));
  assertEquals(requests, [
    'preamp_http_request_duration_seconds_count{method="other",route="none",status="404"} 10000',
  ]);

  const metrics = new Metrics();
  const run = new RunsMetrics(metrics, () => {}).run();
  const entry = (event: string, data: Record<string, unknown>): Entry => ({
    seq: 1,
    ts: "2026-11-22T10:00:00.000Z",
    run_id: "run_1",
    session_id: "ses_1",
    event,
    data: data as Entry["data"],
  });
  const usage = { input_tokens: 1, cost_usd: "1e999" };
  for (let index = 0; index < 10_000; index++) {
    const name = `name-${index}`;
    run.stored([
      entry("provider:request", { provider: name }),
      entry("provider:retry", { provider: name }),
      entry("provider:error", { provider: name, error: { type: name, msg: name } }),
      entry("provider:response", { provider: name, usage, model: name }),
      entry("tool:pre", { tool_name: name, tool_call_id: name }),
      entry("tool:post", { tool_name: name, tool_call_id: name, result: name }),
      entry("run:end", { run: { status: "failed", stop_reason: name, created_at: name } }),
    ]);
  }
  const lines = countsOf(metrics.text());
  metrics.close();
  const countOf = (name: string) => lines.filter((line) => line.startsWith(name)).length;
  assertEquals({
    calls: countOf("preamp_model_call_duration_seconds_count"),
    retries: countOf("preamp_model_retries_total"),
    tokens: countOf("preamp_model_tokens_total"),
    costs: countOf("preamp_model_cost_usd_total"),
    tools: countOf("preamp_tool_call_duration_seconds_count"),
    runs: countOf("preamp_runs_ended_total"),
  }, { calls: 66, retries: 33, tokens: 165, costs: 0, tools: 1, runs: 77 });
  assert(lines.includes('preamp_model_retries_total{provider="other"} 9968'));
});

Deno.test("GET /metrics needs a key", async () => {
  const headers = { authorization: "" };
  assertEquals(await problemOf(await testApp().send("GET /metrics", { headers })), "401 unauthorized");
});

Deno.test("GET /metrics is text that Prometheus reads; HEAD has the same headers", async () => {
  await using preamp = createPreamp({ authenticate: null, log: null, runtime_log: null });
  for (const method of ["GET", "HEAD"]) {
    const response = await preamp.fetch(new Request("http://localhost/metrics", { method }));
    const { status, headers } = response;
    assertEquals([status, headers.get("content-type"), headers.get("cache-control")], [
      200,
      "text/plain; version=0.0.4; charset=utf-8",
      "no-store",
    ]);
    await response.body?.cancel();
  }
});

Deno.test("the delay of the event loop is measured between scrapes", () => {
  const metrics = new Metrics();
  metrics.text();
  const { now } = performance;
  performance.now = () => now.call(performance) + 600; // as after work of 600 ms
  try {
    const delay = Number(/^preamp_event_loop_delay_seconds (.*)$/m.exec(metrics.text())?.[1]);
    assert(delay > 0.3, `the delay is ${delay}`);
  } finally {
    performance.now = now;
    metrics.close();
  }
});

Deno.test("the text has every kind of line, with escaped labels", () => {
  const metrics = new Metrics();
  for (const seconds of [0.1, 0.3, 0.5, 700, NaN, Infinity, -1]) {
    metrics.record("preamp_tool_call_duration_seconds", { outcome: 'a"\\\n' }, seconds);
  }
  metrics.record("preamp_model_retries_total", { provider: "mock" }, 2);
  metrics.record("preamp_model_retries_total", { provider: "mock" });
  const blockOf = (name: string) =>
    metrics.text().split("\n\n").find((block) => block.startsWith(`# HELP ${name} `))?.split("\n");
  const labels = 'outcome="a\\"\\\\\\n"';
  assertEquals(blockOf("preamp_tool_call_duration_seconds"), [
    "# HELP preamp_tool_call_duration_seconds Time of a tool call without the wait for an approval; outcome is ok, failed, error or denied",
    "# TYPE preamp_tool_call_duration_seconds histogram",
    `preamp_tool_call_duration_seconds_bucket{le="0.1",${labels}} 1`,
    `preamp_tool_call_duration_seconds_bucket{le="0.5",${labels}} 3`,
    ...[1, 2.5, 5, 10, 30, 60, 120, 300, 600].map((bound) =>
      `preamp_tool_call_duration_seconds_bucket{le="${bound}",${labels}} 3`
    ),
    `preamp_tool_call_duration_seconds_bucket{le="+Inf",${labels}} 4`,
    `preamp_tool_call_duration_seconds_sum{${labels}} 700.9`,
    `preamp_tool_call_duration_seconds_count{${labels}} 4`,
  ]);
  assertEquals(blockOf("preamp_model_retries_total"), [
    "# HELP preamp_model_retries_total Repeated attempts of model calls",
    "# TYPE preamp_model_retries_total counter",
    'preamp_model_retries_total{provider="mock"} 3',
  ]);
  metrics.close();
});

Deno.test("a model call of a hook during one of the loop takes nothing of its time", async () => {
  const metrics = new Metrics();
  const observe = runObservers(metrics, null, () => {})!;
  const entry = (seconds: number, event: string, data: Entry["data"]): Entry => ({
    seq: 1,
    ts: `2026-11-22T10:00:0${seconds}.000Z`,
    run_id: "run_1",
    session_id: "ses_1",
    event,
    data: { provider: "mock", ...data },
  });
  observe({ id: "run_1", session_id: "ses_1", earlier: [] }).stored([
    entry(0, "provider:request", {}),
    entry(1, "provider:response", { inner: true }),
    entry(3, "provider:response", {}),
    entry(4, "provider:request", { provider: "openai" }),
    entry(4, "provider:request", { provider: "gemini" }),
    entry(5, "provider:request", { provider: "gemini" }),
    entry(6, "provider:response", { provider: "openai" }),
    entry(7, "provider:response", { provider: "gemini" }),
    entry(9, "provider:response", { provider: "gemini" }),
  ]);
  const text = await metrics.text();
  metrics.close();
  for (const [provider, seconds] of [["mock", 3], ["openai", 2], ["gemini", 7]]) {
    const sum = `preamp_model_call_duration_seconds_sum\\{[^}]*provider="${provider}"[^}]*\\} ${seconds}\\n`;
    assertMatch(text, new RegExp(sum));
  }
});
