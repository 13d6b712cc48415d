import { assert, assertEquals } from "../../assert.ts";
import { bodyOf, problemOf, readEvents, testApp } from "../../support/http.ts";
import { PreampError } from "../../../src/sdk/errors.ts";
import { until } from "../../support/clock.ts";
import { turn } from "../../../src/testing/clocks.ts";

const SSE = { accept: "text/event-stream" };

/** Creates an app with a run; one that does not hang has ended. */
async function withRun(prompt: string) {
  const test = testApp();
  const { id } = await test.start(prompt);
  const events = `/v1/runs/${id}/events`;
  const read = async (query = "") =>
    (await bodyOf(await test.send(`GET ${events}${query}`), "EventList")).data;
  const started = async () =>
    (await read()).some(({ event }: { event: string }) => event === "provider:request");
  const ended = async () => (await bodyOf(await test.send(`GET /v1/runs/${id}`), "Run")).ended_at !== null;
  while (!await (prompt === "hang" ? started() : ended())) await turn();
  return { ...test, id, events, read };
}

Deno.test("GET /v1/runs/{id}/events lists the existing entries when Accept is application/json", async () => {
  const { send, events } = await withRun("long 30");
  const all = await bodyOf(await send(`GET ${events}`), "EventList");
  const count = all.data.length;
  assertEquals([count > 30, all.next_cursor], [true, null]);
  const seqs: number[] = [];
  for (let cursor: string | null = "0"; cursor !== null;) {
    const page = await bodyOf(await send(`GET ${events}?limit=7&cursor=${cursor}`), "EventList");
    seqs.push(...page.data.map(({ seq }: { seq: number }) => seq));
    cursor = page.next_cursor;
  }
  assertEquals(seqs, Array.from({ length: count }, (_, index) => index + 1));
  const tail = await bodyOf(await send(`GET ${events}?after=${count - 2}`), "EventList");
  assertEquals(tail.data, all.data.slice(-2));
});

Deno.test("GET /v1/runs/{id}/events ends the stream after run:end and resumes exactly from every seq", async () => {
  const { send, events } = await withRun("long 23");
  const whole = await readEvents((await send(`GET ${events}`, { headers: SSE })).body!);
  assertEquals(whole.at(-1)?.event, "run:end");
  for (let seq = 0; seq < whole.length; seq++) {
    for (const headers of [{ ...SSE, "last-event-id": String(seq) }, SSE]) {
      const query = "last-event-id" in headers ? "?after=1" : `?after=${seq}`;
      const response = await send(`GET ${events}${query}`, { headers });
      assertEquals(await readEvents(response.body!), whole.slice(seq));
    }
  }
});

Deno.test("GET /v1/runs/{id}/events answers 204 to an EventSource that has read all entries of an ended run", async () => {
  const { send, events, read } = await withRun("answer");
  const headers = { ...SSE, "last-event-id": String((await read()).length) };
  assertEquals((await send(`GET ${events}`, { headers })).status, 204);
});

Deno.test("GET /v1/runs/{id}/events streams new entries", async () => {
  const { send, events, read, answerHanging } = await withRun("hang");
  const before = (await read()).length;
  const response = await send(`GET ${events}?after=${before}`, { headers: SSE });
  const streamed = readEvents(response.body!);
  await turn();
  await answerHanging();
  assertEquals((await streamed).map(({ data }) => JSON.parse(data)), (await read()).slice(before));
});

Deno.test("GET /v1/runs/{id}/events answers NDJSON with one entry per line", async () => {
  const { send, events, read } = await withRun("long 3");
  const response = await send(`GET ${events}?after=2`, {
    headers: { accept: "application/x-ndjson" },
  });
  assertEquals(response.headers.get("content-type"), "application/x-ndjson");
  const lines = (await response.text()).split("\n");
  assertEquals(lines.pop(), "");
  assertEquals(lines.map((line) => JSON.parse(line)), (await read()).slice(2));
});

Deno.test("GET /v1/runs/{id}/events returns the same entry in every format", async () => {
  const { send, events } = await withRun("long 2");
  const list = (await bodyOf(await send(`GET ${events}`), "EventList")).data;
  const lines = await (await send(`GET ${events}`, { headers: { accept: "application/x-ndjson" } })).text();
  const frames = await readEvents((await send(`GET ${events}`, { headers: SSE })).body!);
  assertEquals(lines.trimEnd().split("\n").map((line) => JSON.parse(line)), list);
  assertEquals(frames.map(({ data }) => JSON.parse(data)), list);
});

Deno.test("GET /v1/runs/{id}/events sends a comment every 15 s without an entry", async () => {
  const { send, events, read, clock } = await withRun("hang");
  const response = await send(`GET ${events}?after=${(await read()).length}`, { headers: SSE });
  const reader = response.body!.getReader();
  const decoder = new TextDecoder();
  await reader.read(); // retry
  for (let count = 0; count < 3; count++) {
    const next = reader.read();
    await until(() => clock.pending === 1);
    await clock.advance(15_000);
    assertEquals(decoder.decode((await next).value), ": ping\n\n");
  }
  await reader.cancel();
  assertEquals(clock.pending, 0);
});

Deno.test("GET /v1/runs/{id}/events requests only one page when the client does not read", async () => {
  const { send, events, readers } = await withRun("long 2000");
  const response = await send(`GET ${events}`, { headers: SSE });
  const reader = response.body!.getReader();
  await reader.read();
  await turn();
  assert(readers.pages <= 1, `pages: ${readers.pages}`);
  await reader.read();
  await turn();
  assert(readers.pages <= 2, `pages: ${readers.pages}`);
  await reader.cancel();
  await turn();
  assertEquals(readers.open, 0);
});

for (
  const query of [
    "?after=-1",
    "?after=x",
    "?after=1.5",
    "?after=1&after=2",
    "?limit=0",
    "?limit=1001",
    "?aftr=1",
  ]
) {
  Deno.test(`GET /v1/runs/{id}/events refuses ${query}`, async () => {
    const { send, events } = await withRun("answer");
    assertEquals(
      await problemOf(await send(`GET ${events}${query}`, { headers: SSE })),
      "400 request_invalid",
    );
  });
}

Deno.test("GET /v1/runs/{id}/events refuses an invalid Last-Event-ID", async () => {
  const { send, events } = await withRun("answer");
  for (const id of ["x", "-1", "9".repeat(20)]) {
    const response = await send(`GET ${events}`, { headers: { ...SSE, "last-event-id": id } });
    assertEquals(await problemOf(response), "400 request_invalid");
  }
});

Deno.test("GET /v1/runs/{id}/events answers 404 for an unknown run and for a run of another caller, before the stream starts", async () => {
  const { send, events } = await withRun("answer");
  const foreign = { headers: { ...SSE, authorization: "Bearer k2" } };
  assertEquals(await problemOf(await send(`GET ${events}`, foreign)), "404 not_found");
  assertEquals(await problemOf(await send("GET /v1/runs/run_x/events", { headers: SSE })), "404 not_found");
});

Deno.test("GET /v1/runs/{id}/events answers 410 with the run when its log has expired", async () => {
  const expired = new PreampError("log_expired", "Cannot read the log: it is gone");
  const { start, send } = testApp({}, ({ runs }) => ({
    runs: { ...runs, events: () => Promise.reject(expired) },
  }));
  const { id } = await start("answer");
  const events = `/v1/runs/${id}/events`;
  for (const headers of [SSE, {}] as Record<string, string>[]) {
    const response = await send(`GET ${events}`, { headers });
    const problem = await bodyOf(response, "Problem");
    assertEquals([response.status, problem.error.code, problem.run.id], [410, "log_expired", id]);
  }
});

Deno.test("HEAD /v1/runs/{id}/events opens no stream", async () => {
  const { send, events, readers } = await withRun("hang");
  const response = await send(`HEAD ${events}`, { headers: SSE });
  assertEquals([response.status, await response.text(), readers.open], [200, "", 0]);
});
