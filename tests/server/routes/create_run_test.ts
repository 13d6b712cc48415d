import { assert, assertEquals, assertMatch, assertStringIncludes, assertThrows } from "../../assert.ts";
import { checkPlan } from "../../../src/plan/check/check.ts";
import { policyFromData } from "../../../src/policy/parse_policy.ts";
import { bodyOf, problemOf, readEvents, testApp } from "../client.ts";
import { settle, until } from "../fake_clock.ts";

const PLAN_TEXT = "session: {orchestrator: loop-basic, context: context-simple}\n";
const PLAN = { session: { orchestrator: "loop-basic", context: "context-simple" } };

Deno.test("POST /v1/runs answers 200 with the run when it has ended", async () => {
  const { send, runtime } = testApp();
  const response = await send("POST /v1/runs", {
    body: { prompt: "answer 42", plan: PLAN, limits: { max_cost_usd: "0.10" }, metadata: { a: 1 } },
  });
  assertEquals(response.status, 200);
  assertEquals(response.headers.get("content-type"), "application/json");
  assertEquals(response.headers.get("preamp-run-id"), "run_1");
  assertEquals(response.headers.get("location"), null);
  const run = await bodyOf(response, "Run");
  assertEquals([run.status, run.output_text, run.metadata], ["completed", "42", { a: 1 }]);
  assertEquals(runtime.runs.created[0]?.request, {
    prompt: "answer 42",
    plan: PLAN,
    limits: { max_cost_usd: "0.10" },
    metadata: { a: 1 },
  });
  assertEquals(runtime.runs.created[0]?.caller.name, "key:k1");
});

Deno.test("POST /v1/runs answers 200 with Location when the run awaits an approval", async () => {
  const { send } = testApp();
  const response = await send("POST /v1/runs", { body: { prompt: "ask" } });
  assertEquals([response.status, response.headers.get("location")], [200, "/v1/runs/run_1"]);
  const run = await bodyOf(response, "Run");
  assertEquals([run.status, run.approvals[0].id], ["awaiting_approval", "apr_run_1"]);
});

Deno.test("POST /v1/runs waits for the end when Prefer is wait", async () => {
  const { send, runtime } = testApp();
  const waiting = send("POST /v1/runs", { body: { prompt: "ask" }, headers: { prefer: "wait" } });
  await until(() => runtime.runs.stored.size === 1);
  await send("POST /v1/runs/run_1/approvals/apr_run_1", { body: { decision: "allow" } });
  const response = await waiting;
  assertEquals([response.status, response.headers.get("preference-applied")], [200, "wait"]);
  assertEquals((await bodyOf(response, "Run")).status, "completed");
});

Deno.test("POST /v1/runs answers 202 when Prefer is wait=5 and five seconds pass", async () => {
  const { send, clock, runtime } = testApp();
  const waiting = send("POST /v1/runs", {
    body: { prompt: "hang" },
    headers: { prefer: "respond-async, wait=5" },
  });
  await until(() => runtime.runs.stored.size === 1);
  await clock.advance(5000);
  const response = await waiting;
  assertEquals([response.status, response.headers.get("location")], [202, "/v1/runs/run_1"]);
  assertEquals(clock.pending, 0);
});

for (
  const [name, options] of [
    ["Prefer is respond-async", { body: { prompt: "hang" }, headers: { prefer: "respond-async" } }],
    ["background is true", { body: { prompt: "hang", background: true } }],
    ["background is true and Accept is text/plain", {
      body: { prompt: "hang", background: true },
      headers: { accept: "text/plain" },
    }],
  ] as const
) {
  Deno.test(`POST /v1/runs answers 202 with Location when ${name}`, async () => {
    const { send } = testApp();
    const response = await send("POST /v1/runs", options);
    assertEquals([response.status, response.headers.get("location")], [202, "/v1/runs/run_1"]);
    assertEquals(response.headers.get("preamp-run-id"), "run_1");
    assertEquals((await bodyOf(response, "Run")).status, "running");
  });
}

Deno.test("POST /v1/runs returns only the output text when Accept is text/plain", async () => {
  const { send } = testApp();
  const response = await send("POST /v1/runs", {
    body: { prompt: "answer 6 × 7 is 42." },
    headers: { accept: "text/plain" },
  });
  assertEquals([response.status, response.headers.get("preamp-run-status")], [200, "completed"]);
  assertEquals(response.headers.get("preamp-run-id"), "run_1");
  assertEquals(await response.text(), "6 × 7 is 42.\n");
});

for (
  const [prompt, status, reason] of [
    ["fail", "failed", "the key was refused"],
    ["limit", "incomplete", "limit:max_tool_calls"],
  ] as const
) {
  Deno.test(`POST /v1/runs answers 502 with the reason when Accept is text/plain and the run ends ${status}`, async () => {
    const { send } = testApp();
    const response = await send("POST /v1/runs", { body: { prompt }, headers: { accept: "text/plain" } });
    assertEquals([response.status, response.headers.get("preamp-run-status")], [502, status]);
    assertEquals(await response.text(), `Run run_1 ended as ${status}: ${reason}\n`);
  });
}

Deno.test("POST /v1/runs answers 200 for a failed run when Accept is application/json", async () => {
  const { send } = testApp();
  const response = await send("POST /v1/runs", { body: { prompt: "fail" } });
  assertEquals([response.status, (await bodyOf(response, "Run")).error.code], [200, "provider_auth"]);
});

for (const headers of [{}, { prefer: "respond-async" }]) {
  Deno.test(`POST /v1/runs streams every entry when Accept is text/event-stream and headers are ${JSON.stringify(headers)}`, async () => {
    const { send } = testApp();
    const response = await send("POST /v1/runs", {
      body: { prompt: "long 25" },
      headers: { accept: "text/event-stream", ...headers },
    });
    assertEquals([response.status, response.headers.get("content-type")], [200, "text/event-stream"]);
    assertEquals(response.headers.get("preamp-run-id"), "run_1");
    const events = await readEvents(response.body!);
    assertEquals(events.map(({ id }) => id), Array.from({ length: 27 }, (_, index) => String(index + 1)));
    assertEquals([events[0]?.event, events.at(-1)?.event], ["run:start", "run:end"]);
    assertEquals(JSON.parse(events[1]!.data).data.delta, "é漢😀");
  });
}

Deno.test("POST /v1/runs sends the first bytes of a stream while the run continues", async () => {
  const { send } = testApp();
  const response = await send("POST /v1/runs", {
    body: { prompt: "hang" },
    headers: { accept: "text/event-stream" },
  });
  const reader = response.body!.getReader();
  const decoder = new TextDecoder();
  assertEquals(decoder.decode((await reader.read()).value), "retry: 1000\n\n");
  assertStringIncludes(decoder.decode((await reader.read()).value), "event: run:start\n");
  await reader.cancel();
});

Deno.test("POST /v1/runs accepts JSON whose plan is text", async () => {
  const { send, runtime } = testApp();
  await send("POST /v1/runs", { body: { prompt: "answer", plan: PLAN_TEXT } });
  assertEquals(runtime.runs.created[0]?.request.plan, PLAN_TEXT);
});

Deno.test("POST /v1/runs accepts a prompt of content blocks and keeps their unknown fields", async () => {
  const { send, runtime } = testApp();
  const prompt = [{ type: "text", text: "hi", cache: true }, { type: "image", source: { kind: "x" } }];
  assertEquals((await send("POST /v1/runs", { body: { prompt, background: true } })).status, 202);
  assertEquals(runtime.runs.created[0]?.request.prompt, prompt);
});

Deno.test("POST /v1/runs accepts a request in YAML", async () => {
  const { send, runtime } = testApp();
  const response = await send("POST /v1/runs", {
    body: `prompt: answer yes\nplan:\n  ${PLAN_TEXT}limits: {max_tool_calls: 3}\n`,
    headers: { "content-type": "application/yaml; charset=UTF-8" },
  });
  assertEquals(response.status, 200);
  assertEquals(runtime.runs.created[0]?.request, {
    prompt: "answer yes",
    plan: PLAN,
    limits: { max_tool_calls: 3 },
  });
});

for (
  const [type, body] of [["application/yaml", PLAN_TEXT], ["application/json", JSON.stringify(PLAN)]] as const
) {
  Deno.test(`POST /v1/runs accepts a plan of type ${type} as the body, and keeps its text`, async () => {
    const { send, runtime } = testApp();
    const options = { body, headers: { "content-type": type } };
    const response = await send("POST /v1/runs?prompt=answer+6%20%C3%97%207", options);
    assertEquals((await bodyOf(response, "Run")).output_text, "6 × 7");
    assertEquals(runtime.runs.created[0]?.request, { prompt: "answer 6 × 7", plan: body });
    assertEquals(await problemOf(await send("POST /v1/runs", options)), "400 request_invalid");
  });
}

Deno.test("POST /v1/runs forwards invalid YAML to the plan's reader", async () => {
  const { send, runtime } = testApp();
  const body = "session: [\n";
  await send("POST /v1/runs?prompt=answer", { body, headers: { "content-type": "application/yaml" } });
  assertEquals(runtime.runs.created[0]?.request.plan, body);
});

Deno.test("POST /v1/runs reads the prompt from the query if the body has none, and refuses both", async () => {
  const { send, runtime } = testApp();
  assertEquals((await send("POST /v1/runs?prompt=answer", { body: { plan: PLAN } })).status, 200);
  assertEquals(runtime.runs.created[0]?.request.prompt, "answer");
  assertEquals(
    await problemOf(await send("POST /v1/runs?prompt=a", { body: { prompt: "b" } })),
    "400 request_invalid",
  );
});

Deno.test("POST /v1/runs accepts a form with text fields and files", async () => {
  const { send, runtime } = testApp();
  const form = new FormData();
  form.set("prompt", new File(["answer é"], "prompt.txt", { type: "text/plain" }));
  form.set("plan", new File([PLAN_TEXT], "plan.yaml", { type: "application/yaml" }));
  form.set("limits", '{"max_tool_calls": 3}');
  form.set("metadata", new File(['{"ticket": 7}'], "m.json", { type: "application/json" }));
  form.set("background", "true");
  form.set("session_id", "ses_9");
  assertEquals((await send("POST /v1/runs", { body: form })).status, 202);
  assertEquals(runtime.runs.created[0]?.request, {
    prompt: "answer é",
    plan: PLAN_TEXT,
    limits: { max_tool_calls: 3 },
    metadata: { ticket: 7 },
    session_id: "ses_9",
  });
});

Deno.test("POST /v1/runs parses a JSON file as content blocks when it is the prompt", async () => {
  const { send, runtime } = testApp();
  const form = new FormData();
  form.set("prompt", new File(['[{"type":"text","text":"hi"}]'], "p.json", { type: "application/json" }));
  form.set("background", "true");
  await send("POST /v1/runs", { body: form });
  assertEquals(runtime.runs.created[0]?.request.prompt, [{ type: "text", text: "hi" }]);
});

Deno.test("POST /v1/runs refuses a form with a syntax error, a duplicate or unknown field, or invalid UTF-8", async () => {
  const { send } = testApp();
  const doubled = new FormData();
  doubled.append("prompt", "a");
  doubled.append("prompt", "b");
  const unknown = new FormData();
  unknown.set("promt", "a");
  const proto = new FormData();
  proto.set("__proto__", "a");
  const badJson = new FormData();
  badJson.set("prompt", "a");
  badJson.set("limits", "{");
  const binary = new FormData();
  binary.set("prompt", new File([new Uint8Array([0xff, 0xfe])], "p.txt"));
  for (const body of [doubled, unknown, proto, badJson, binary]) {
    assertEquals(await problemOf(await send("POST /v1/runs", { body })), "400 request_invalid");
  }
  const headers = { "content-type": "multipart/form-data; boundary=x" };
  assertEquals(
    await problemOf(await send("POST /v1/runs", { body: "--y\r\n", headers })),
    "400 request_invalid",
  );
});

Deno.test("POST /v1/runs refuses a form with too many parts or without a boundary without parsing it", async () => {
  const { send } = testApp();
  const part = '--b\r\ncontent-disposition: form-data; name="a"\r\n\r\n1\r\n';
  for (
    const [type, parts] of [["; boundary=b", 1000], [`; boundary=${"b".repeat(71)}`, 1], ["", 1]] as const
  ) {
    const headers = { "content-type": `multipart/form-data${type}` };
    const response = await send("POST /v1/runs", { body: `${part.repeat(parts)}--b--\r\n`, headers });
    assertEquals(await problemOf(response), "400 request_invalid");
  }
});

const BOMB = `[${"1,".repeat(25_000)}1]`;
for (
  const [body, expected] of [
    [`{"prompt":"x","metadata":{"plan":${BOMB}}}`, "400 request_invalid"],
    [`{"prompt":"\\"plan","plan":{"tools":${BOMB}}}`, "422 plan_limit_exceeded"],
    [`{"session":{},"tools":${BOMB}}`, "422 plan_limit_exceeded"],
    [BOMB, "400 request_invalid"],
  ] as const
) {
  Deno.test(`POST /v1/runs answers ${expected} to too many values in ${body.slice(0, 30)}`, async () => {
    const { send } = testApp();
    assertEquals(await problemOf(await send("POST /v1/runs?prompt=x", { body })), expected);
  });
}

Deno.test("POST /v1/runs returns the same run for the same Idempotency-Key and body, in any format", async () => {
  const { send, runtime } = testApp();
  const headers = { "idempotency-key": "k-1" };
  await send("POST /v1/runs", { body: '{"prompt":"answer x","metadata":{"a":1,"b":2}}', headers });
  const second = await send("POST /v1/runs", {
    body: '{"metadata":{"b":2,"a":1}, "prompt":"answer x"}',
    headers: { ...headers, accept: "text/event-stream" },
  });
  assertEquals(second.headers.get("preamp-run-id"), "run_1");
  assertEquals((await readEvents(second.body!)).map(({ event }) => event), ["run:start", "run:end"]);
  assertEquals(runtime.runs.stored.size, 1);
  const other = await send("POST /v1/runs", { body: { prompt: "answer y" }, headers });
  assertEquals(await problemOf(other), "409 idempotency_conflict");
});

Deno.test("POST /v1/runs resumes a retried stream after Last-Event-ID, and ignores it without an Idempotency-Key", async () => {
  const { send } = testApp();
  const body = { prompt: "long 3" };
  const headers = { "accept": "text/event-stream", "last-event-id": "3" };
  const keyed = { ...headers, "idempotency-key": "k" };
  await (await send("POST /v1/runs", { body, headers: { ...keyed, "last-event-id": "" } })).body?.cancel();
  const resumed = await send("POST /v1/runs", { body, headers: keyed });
  assertEquals((await readEvents(resumed.body!)).map(({ id }) => id), ["4", "5"]);
  const fresh = await send("POST /v1/runs", { body, headers });
  assertEquals((await readEvents(fresh.body!)).length, 5);
});

Deno.test("POST /v1/runs refuses an Idempotency-Key that is empty, long or not printable", async () => {
  const { send } = testApp();
  for (const key of ["a b", "é", "k".repeat(256)]) {
    const response = await send("POST /v1/runs", {
      body: { prompt: "answer" },
      headers: { "idempotency-key": key },
    });
    assertEquals(await problemOf(response), "400 request_invalid");
  }
});

Deno.test("POST /v1/runs answers an error of the runtime as a problem", async () => {
  const { send, runtime } = testApp();
  const { PreampError } = await import("../../../src/sdk/errors.ts");
  runtime.runs.refusal = new PreampError("policy_refused", "Cannot grant net", {
    details: [{ path: "tools[0]", message: "Cannot grant net", line: 3, column: 5, hint: "remove it" }],
  });
  const response = await send("POST /v1/runs", {
    body: { prompt: "x" },
    headers: { accept: "text/event-stream" },
  });
  const problem = await bodyOf(response, "Problem");
  assertEquals(response.status, 403);
  const { request_id, ...error } = problem.error;
  assertEquals(request_id, response.headers.get("preamp-request-id"));
  assertEquals(error, {
    code: "policy_refused",
    message: "Cannot grant net",
    details: [{ path: "tools[0]", message: "Cannot grant net", line: 3, column: 5, hint: "remove it" }],
  });
});

for (
  const [name, body, path] of [
    ["no prompt", {}, "prompt"],
    ["a blank prompt", { prompt: " \n" }, "prompt"],
    ["an empty list as prompt", { prompt: [] }, "prompt"],
    ["a block without type", { prompt: [{ text: "x" }] }, "prompt"],
    ["an unknown field", { prompt: "x", sesion_id: "y" }, "sesion_id"],
    ["an unknown limit", { prompt: "x", limits: { max_tool_call: 1 } }, "limits.max_tool_call"],
    ["money as a number", { prompt: "x", limits: { max_cost_usd: 0.5 } }, "limits.max_cost_usd"],
    ["a negative limit", { prompt: "x", limits: { max_tool_calls: -1 } }, "limits.max_tool_calls"],
    ["both plan and plan_ref", { prompt: "x", plan: PLAN, plan_ref: "y" }, "plan_ref"],
    ["a model without a provider", { prompt: "x", model: "gpt 5" }, "model"],
    ["a plan that is a list", { prompt: "x", plan: [] }, "plan"],
    ["a text block without text", { prompt: [{ type: "text" }] }, "prompt[0]"],
    ["a text block of another kind", { prompt: [{ type: "text", text: 5 }] }, "prompt[0]"],
    ["a wrong if_busy", { prompt: "x", if_busy: "wait" }, "if_busy"],
    ["a wrong on_disconnect", { prompt: "x", on_disconnect: true }, "on_disconnect"],
    ["a list", [], ""],
    ["null", "null", ""],
  ] as const
) {
  Deno.test(`POST /v1/runs refuses ${name} and reports its path`, async () => {
    const { send, runtime } = testApp();
    const response = await send("POST /v1/runs", { body });
    const problem = await bodyOf(response, "Problem");
    assertEquals([response.status, problem.error.code], [400, "request_invalid"]);
    assertEquals(problem.error.details[0].path, path);
    assertMatch(problem.error.details[0].message, /^Cannot [a-z]+ .+: /);
    assertEquals(runtime.runs.created.length, 0);
  });
}

for (
  const [value, ok] of [[0.5, true], [0.001, true], [30, true], [0.0001, false], [0, false], ["5", false]]
) {
  Deno.test(`max_duration_s ${JSON.stringify(value)} is ${ok ? "accepted" : "refused"} by request, plan and policy`, async () => {
    const { send } = testApp();
    const limits = { max_duration_s: value };
    const response = await send("POST /v1/runs", { body: { prompt: "answer", limits } });
    await response.body?.cancel();
    const { findings } = checkPlan({ ...PLAN, limits });
    assertEquals([response.status, findings.errors.length === 0], [ok ? 200 : 400, ok]);
    if (ok) assertEquals(policyFromData({ limits }).limits.max_duration_s, value);
    else assertThrows(() => policyFromData({ limits }));
  });
}

Deno.test("POST /v1/runs suggests a field name for a misspelt one, and lists every finding", async () => {
  const { send } = testApp();
  const response = await send("POST /v1/runs", {
    body: { prompt: 1, sesion_id: "y", limits: { max_tool_call: 1 }, zzzzzz: 1 },
  });
  const { error } = await bodyOf(response, "Problem");
  assertEquals(error.details.map(({ path, hint }: { path: string; hint?: string }) => [path, hint]).sort(), [
    ["limits.max_tool_call", 'did you mean "max_tool_calls"?'],
    ["prompt", undefined],
    ["sesion_id", 'did you mean "session_id"?'],
    ["zzzzzz", undefined],
  ]);
});

for (
  const [name, body, where] of [
    ["broken JSON", '{"prompt": "x",\n  oops}', [2, 3]],
    ["two documents", '{"prompt":"x"} {}', [1, 16]],
    ["a duplicate key", '{"prompt":"x","prompt":"y"}', [1, 15]],
    ["a __proto__ key", '{"prompt":"x","metadata":{"__proto__":{"a":1}}}', [1, 27]],
    ["an escaped __proto__ key", '{"prompt":"x","\\u005f_proto__":1}', [1, 15]],
    ["a constructor key", '{"prompt":"x","metadata":{"constructor":1}}', [1, 27]],
    ["half of a surrogate pair", '{"prompt":"\\ud800"}', [1, 11]],
    ["a number without end", '{"prompt":"x","metadata":{"n":1e999}}', [1, 31]],
    ["an empty body", "", [1, 1]],
  ] as const
) {
  Deno.test(`POST /v1/runs refuses ${name} with line and column`, async () => {
    const { send, runtime } = testApp();
    const { error } = await bodyOf(await send("POST /v1/runs", { body }), "Problem");
    assertEquals(error.code, "request_invalid");
    assertEquals([error.details[0].line, error.details[0].column], where);
    assertEquals(runtime.runs.created.length, 0);
  });
}

Deno.test("POST /v1/runs answers errors inside plan with a plan's codes", async () => {
  const { send } = testApp();
  const doubled = '{"prompt":"x","plan":{"tools":[],"tools":[]}}';
  assertEquals(await problemOf(await send("POST /v1/runs", { body: doubled })), "400 plan_invalid");
  const deep = `{"prompt":"x","plan":{"a":${"[".repeat(100)}${"]".repeat(100)}}}`;
  assertEquals(await problemOf(await send("POST /v1/runs", { body: deep })), "422 plan_limit_exceeded");
});

Deno.test("POST /v1/runs refuses deep nesting quickly, and does not change prototypes", async () => {
  const { send } = testApp();
  for (const levels of [100, 1000, 30_000]) {
    const body = `{"prompt":"x","metadata":{"a":${"[".repeat(levels)}${"]".repeat(levels)}}}`;
    assertEquals(await problemOf(await send("POST /v1/runs", { body })), "400 request_invalid");
  }
  assertEquals(
    await problemOf(await send("POST /v1/runs", { body: "[".repeat(60_000) })),
    "400 request_invalid",
  );
  await send("POST /v1/runs", {
    body: '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}',
  });
  assert(!("polluted" in {}));
});

Deno.test("POST /v1/runs refuses bytes that are not UTF-8", async () => {
  const { send } = testApp();
  const body = new Uint8Array([...new TextEncoder().encode('{"prompt":"'), 0xc3, 0x28, 0x22, 0x7d]);
  assertEquals(await problemOf(await send("POST /v1/runs", { body })), "400 request_invalid");
});

for (
  const headers of [
    { "content-type": "text/plain" },
    { "content-type": "application/x-www-form-urlencoded" },
    { "content-type": "application/json; charset=iso-8859-1" },
    { "content-type": "" },
    { "content-encoding": "gzip" },
  ] as Record<string, string>[]
) {
  Deno.test(`POST /v1/runs answers 415 for ${JSON.stringify(headers)}`, async () => {
    const { send } = testApp();
    const response = await send("POST /v1/runs", { body: '{"prompt":"answer"}', headers });
    assertEquals(await problemOf(response), "415 unsupported_media_type");
  });
}

Deno.test("POST /v1/runs cancels the run when the client of a stream disconnects and on_disconnect is cancel", async () => {
  const { send, runtime } = testApp();
  for (const on_disconnect of ["continue", "cancel"]) {
    const response = await send("POST /v1/runs", {
      body: { prompt: "hang", on_disconnect },
      headers: { accept: "text/event-stream" },
    });
    const reader = response.body!.getReader();
    await reader.read();
    await reader.cancel();
    await settle();
  }
  assertEquals(runtime.runs.cancelled, [{ id: "run_2", mode: "immediate" }]);
  assertEquals(runtime.runs.following, 0);
});

Deno.test("POST /v1/runs cancels the run when a waiting client disconnects and on_disconnect is cancel", async () => {
  const { send, runtime, logged } = testApp();
  const client = new AbortController();
  const waiting = send("POST /v1/runs", {
    body: { prompt: "hang", on_disconnect: "cancel" },
    signal: client.signal,
  });
  await until(() => runtime.runs.stored.size === 1);
  client.abort();
  assertEquals((await waiting).status, 499);
  assertEquals(runtime.runs.cancelled.length, 1);
  assertEquals(logged[0]?.status, 499);
});

Deno.test("POST /v1/runs cancels nothing when the signal fires after the response", async () => {
  const { send, runtime } = testApp();
  const client = new AbortController();
  await send("POST /v1/runs", {
    body: { prompt: "hang", on_disconnect: "cancel", background: true },
    signal: client.signal,
  });
  client.abort(); // as Deno.serve does after a normal end
  await settle();
  assertEquals(runtime.runs.cancelled, []);
});

Deno.test("drain() ends streams with a retry hint and answers waiting requests with 202", async () => {
  const { app, send, runtime, clock } = testApp();
  const stream = await send("POST /v1/runs", {
    body: { prompt: "hang" },
    headers: { accept: "text/event-stream" },
  });
  const text = stream.text();
  const waiting = send("POST /v1/runs", { body: { prompt: "hang" } });
  await until(() => runtime.runs.stored.size === 2);
  const plain = send("POST /v1/runs", { body: { prompt: "hang" }, headers: { accept: "text/plain" } });
  await until(() => runtime.runs.stored.size === 3);
  const drained = app.drain(3000);
  await clock.advance(400); // none of these runs ends in the drain
  await drained;
  assertMatch(await text, /^retry: 1000\n\n[^]*event: run:start[^]*retry: 1000\n\n$/);
  assertEquals([(await waiting).status, (await waiting).headers.get("location")], [202, "/v1/runs/run_2"]);
  assertEquals([(await plain).status, (await plain).headers.get("preamp-run-status")], [502, "running"]);
  assertEquals([runtime.drained, runtime.runs.following], [[3000], 0]);
  assertEquals(runtime.runs.cancelled, []);
});

Deno.test("drain() ends later streams and waits at once", async () => {
  const { app, send, runtime } = testApp();
  await app.drain(0);
  const stream = await send("POST /v1/runs", {
    body: { prompt: "hang" },
    headers: { accept: "text/event-stream" },
  });
  assertEquals(await stream.text(), "retry: 1000\n\n");
  assertEquals((await send("POST /v1/runs", { body: { prompt: "hang" } })).status, 202);
  assertEquals(runtime.runs.following, 0);
});

Deno.test("POST /v1/runs detects a client that disconnected while its body was read", async () => {
  const { send, runtime } = testApp();
  const client = new AbortController();
  const body = { prompt: "hang", on_disconnect: "cancel" };
  const waiting = send("POST /v1/runs", { body, signal: client.signal });
  client.abort();
  const { status } = await waiting;
  assert(status === 499 || status === 400, `status: ${status}`);
  assertEquals([...runtime.runs.stored.values()].filter(({ run }) => run.ended_at === null), []);
});
