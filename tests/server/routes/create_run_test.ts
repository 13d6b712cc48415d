import { assert, assertEquals, assertStringIncludes } from "../../assert.ts";
import { PreampError } from "../../../src/sdk/errors.ts";
import { turn } from "../../../src/testing/clocks.ts";
import { bodyOf, DELTA, PLAN, problemOf, readEvents, type TestApp, testApp } from "../../support/http.ts";

/** Resolves to the newest run once it has a status. */
// deno-lint-ignore no-explicit-any -- tests read fields of the run
async function firstRun(send: TestApp["send"], status: string): Promise<any> {
  for (;;) {
    const { data } = await (await send("GET /v1/runs")).json();
    if (data[0]?.status === status) return data[0];
    await turn();
  }
}

/** Resolves to the statuses of all runs, newest first. */
async function statuses(send: TestApp["send"]): Promise<string[]> {
  const { data } = await bodyOf(await send("GET /v1/runs"), "RunList");
  return data.map(({ status }: { status: string }) => status);
}

Deno.test("POST /v1/runs answers 200 with the run when it has ended", async () => {
  const { send, created } = testApp();
  const response = await send("POST /v1/runs", {
    body: { prompt: "answer 42", plan: PLAN, limits: { max_tool_calls: 3 }, metadata: { a: 1 } },
  });
  assertEquals(response.status, 200);
  assertEquals(response.headers.get("content-type"), "application/json");
  assertEquals(response.headers.get("location"), null);
  const run = await bodyOf(response, "Run");
  assertEquals(response.headers.get("preamp-run-id"), run.id);
  assertEquals([run.status, run.output_text, run.metadata], ["completed", "42", { a: 1 }]);
  assertEquals(created[0]?.request, {
    prompt: "answer 42",
    plan: PLAN,
    limits: { max_tool_calls: 3 },
    metadata: { a: 1 },
  });
  assertEquals(created[0]?.caller.name, "key:k1");
});

Deno.test("POST /v1/runs answers 200 with Location when the run awaits an approval", async () => {
  const { send } = testApp();
  const response = await send("POST /v1/runs", { body: { prompt: "ask" } });
  const run = await bodyOf(response, "Run");
  assertEquals([response.status, response.headers.get("location")], [200, `/v1/runs/${run.id}`]);
  assertEquals([run.status, run.approvals.length], ["awaiting_approval", 1]);
});

Deno.test("POST /v1/runs waits for the end when Prefer is wait", async () => {
  const { send } = testApp();
  const waiting = send("POST /v1/runs", { body: { prompt: "ask" }, headers: { prefer: "wait" } });
  const { id, approvals } = await firstRun(send, "awaiting_approval");
  await send(`POST /v1/runs/${id}/approvals/${approvals[0].id}`, { body: { decision: "allow" } });
  const response = await waiting;
  assertEquals([response.status, response.headers.get("preference-applied")], [200, "wait"]);
  assertEquals((await bodyOf(response, "Run")).status, "completed");
});

Deno.test("POST /v1/runs answers 202 when Prefer is wait=5 and five seconds pass", async () => {
  const { send, clock } = testApp();
  const waiting = send("POST /v1/runs", {
    body: { prompt: "hang" },
    headers: { prefer: "respond-async, wait=5" },
  });
  const { id } = await firstRun(send, "running");
  await clock.advance(5000);
  const response = await waiting;
  assertEquals([response.status, response.headers.get("location")], [202, `/v1/runs/${id}`]);
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
    const { id, status } = await bodyOf(response, "Run");
    assertEquals([response.status, response.headers.get("location")], [202, `/v1/runs/${id}`]);
    assertEquals([response.headers.get("preamp-run-id"), status], [id, "running"]);
  });
}

Deno.test("POST /v1/runs returns only the output text when Accept is text/plain", async () => {
  const { send } = testApp();
  const response = await send("POST /v1/runs", {
    body: { prompt: "answer 6 × 7 is 42." },
    headers: { accept: "text/plain" },
  });
  assertEquals([response.status, response.headers.get("preamp-run-status")], [200, "completed"]);
  assertEquals(response.headers.get("preamp-run-id"), (await firstRun(send, "completed")).id);
  assertEquals(await response.text(), "6 × 7 is 42.\n");
});

for (
  const [body, status, reason] of [
    [{ prompt: "fail" }, "failed", "the key was refused"],
    [{ prompt: "long 9", limits: { max_total_tokens: 1 } }, "incomplete", "limit:max_total_tokens"],
  ] as const
) {
  Deno.test(`POST /v1/runs answers 502 with the reason when Accept is text/plain and the run ends ${status}`, async () => {
    const { send } = testApp();
    const response = await send("POST /v1/runs", { body, headers: { accept: "text/plain" } });
    assertEquals([response.status, response.headers.get("preamp-run-status")], [502, status]);
    const { id } = await firstRun(send, status);
    assertEquals(await response.text(), `Run ${id} ended as ${status}: ${reason}\n`);
  });
}

Deno.test("POST /v1/runs answers 502 for a run that did not complete when Prefer is status", async () => {
  const { send } = testApp();
  for (const [prompt, status] of [["fail", 502], ["answer", 200]] as const) {
    const response = await send("POST /v1/runs", { body: { prompt }, headers: { prefer: "status, wait" } });
    await bodyOf(response, "Run");
    assertEquals([response.status, response.headers.get("preference-applied")], [status, "wait, status"]);
  }
});

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
    const events = await readEvents(response.body!);
    assertEquals(response.headers.get("preamp-run-id"), (await firstRun(send, "completed")).id);
    assertEquals(events.map(({ id }) => id), events.map((_, index) => String(index + 1)));
    assertEquals([events[0]?.event, events.at(-1)?.event], ["run:start", "run:end"]);
    const deltas = events.filter(({ event }) => event === "content_block:delta");
    assertEquals(deltas.map(({ data }) => JSON.parse(data).data.delta), Array(25).fill(DELTA));
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

Deno.test("POST /v1/runs returns the same run for the same Idempotency-Key and body, in any format", async () => {
  const { send } = testApp();
  const headers = { "idempotency-key": "k-1" };
  const first = await send("POST /v1/runs", {
    body: '{"prompt":"answer x","metadata":{"a":1,"b":2}}',
    headers,
  });
  const second = await send("POST /v1/runs", {
    body: '{"metadata":{"b":2,"a":1}, "prompt":"answer x"}',
    headers: { ...headers, accept: "text/event-stream" },
  });
  assertEquals(second.headers.get("preamp-run-id"), first.headers.get("preamp-run-id"));
  assertEquals((await readEvents(second.body!)).at(-1)?.event, "run:end");
  assertEquals((await bodyOf(await send("GET /v1/runs"), "RunList")).data.length, 1);
  const other = await send("POST /v1/runs", { body: { prompt: "answer y" }, headers });
  assertEquals(await problemOf(other), "409 idempotency_conflict");
});

Deno.test("POST /v1/runs starts no run when Last-Event-ID is not a seq", async () => {
  const { send } = testApp();
  const headers = { "idempotency-key": "k-1", "last-event-id": "three" };
  assertEquals(
    await problemOf(await send("POST /v1/runs", { body: { prompt: "answer x" }, headers })),
    "400 request_invalid",
  );
  assertEquals(await statuses(send), []);
});

Deno.test("POST /v1/runs resumes a retried stream after Last-Event-ID, and ignores it without an Idempotency-Key", async () => {
  const { send } = testApp();
  const body = { prompt: "long 3" };
  const headers = { "accept": "text/event-stream", "last-event-id": "3" };
  const keyed = { ...headers, "idempotency-key": "k" };
  const whole = await send("POST /v1/runs", { body, headers: { ...keyed, "last-event-id": "" } });
  const events = await readEvents(whole.body!);
  const resumed = await send("POST /v1/runs", { body, headers: keyed });
  assertEquals(await readEvents(resumed.body!), events.slice(3));
  const fresh = await send("POST /v1/runs", { body, headers });
  assertEquals((await readEvents(fresh.body!)).map(({ event }) => event), events.map(({ event }) => event));
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
  const refusal = new PreampError("policy_refused", "Cannot grant net", {
    details: [{ path: "tools[0]", message: "Cannot grant net", line: 3, column: 5, hint: "remove it" }],
  });
  const { send } = testApp({}, ({ runs }) => ({ runs: { ...runs, create: () => Promise.reject(refusal) } }));
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

Deno.test("POST /v1/runs cancels the run when the client of a stream disconnects and on_disconnect is cancel", async () => {
  const { send, readers } = testApp();
  for (const on_disconnect of ["continue", "cancel"]) {
    const response = await send("POST /v1/runs", {
      body: { prompt: "hang", on_disconnect },
      headers: { accept: "text/event-stream" },
    });
    const reader = response.body!.getReader();
    await reader.read();
    await reader.cancel();
  }
  assertEquals((await firstRun(send, "cancelled")).status, "cancelled");
  assertEquals([await statuses(send), readers.open], [["cancelled", "running"], 0]);
});

Deno.test("POST /v1/runs cancels the run when a waiting client disconnects and on_disconnect is cancel", async () => {
  const { send, logged } = testApp();
  const client = new AbortController();
  const waiting = send("POST /v1/runs", {
    body: { prompt: "hang", on_disconnect: "cancel" },
    signal: client.signal,
  });
  await firstRun(send, "running");
  client.abort();
  assertEquals((await waiting).status, 499);
  await firstRun(send, "cancelled");
  assertEquals(logged.filter(({ method }) => method === "POST").map(({ status }) => status), [499]);
});

Deno.test("POST /v1/runs cancels nothing when the signal fires after the response", async () => {
  const { send } = testApp();
  const client = new AbortController();
  await send("POST /v1/runs", {
    body: { prompt: "hang", on_disconnect: "cancel", background: true },
    signal: client.signal,
  });
  client.abort(); // as Deno.serve does after a normal end
  await turn();
  assertEquals(await statuses(send), ["running"]);
});

Deno.test("POST /v1/runs detects a client that disconnected while its body was read", async () => {
  const { send } = testApp();
  const client = new AbortController();
  const body = { prompt: "hang", on_disconnect: "cancel" };
  const waiting = send("POST /v1/runs", { body, signal: client.signal });
  client.abort();
  const { status } = await waiting;
  assert(status === 499 || status === 400, `status: ${status}`);
  while ((await statuses(send)).some((status) => status !== "cancelled")) await turn();
});
