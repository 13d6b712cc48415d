import { assert, assertEquals } from "../../assert.ts";
import { bodyOf, problemOf, readEvents, testApp } from "../client.ts";
import { settle, until } from "../fake_clock.ts";
import { PAGE_SIZE } from "../fake_runtime.ts";

const SSE = { accept: "text/event-stream" };

async function withRun(prompt: string) {
  const test = testApp();
  await test.send("POST /v1/runs", { body: { prompt, background: true } });
  return test;
}

Deno.test("GET /v1/runs/{id}/events lists the existing entries when Accept is application/json", async () => {
  const { send } = await withRun("long 30");
  const all = await bodyOf(await send("GET /v1/runs/run_1/events"), "EventList");
  assertEquals([all.data.length, all.next_cursor], [32, null]);
  const seqs: number[] = [];
  for (let cursor: string | null = "0"; cursor !== null;) {
    const page = await bodyOf(await send(`GET /v1/runs/run_1/events?limit=7&cursor=${cursor}`), "EventList");
    seqs.push(...page.data.map(({ seq }: { seq: number }) => seq));
    cursor = page.next_cursor;
  }
  assertEquals(seqs, Array.from({ length: 32 }, (_, index) => index + 1));
  const tail = await bodyOf(await send("GET /v1/runs/run_1/events?after=30"), "EventList");
  assertEquals(tail.data.map(({ seq }: { seq: number }) => seq), [31, 32]);
});

Deno.test("GET /v1/runs/{id}/events ends the stream after run:end and resumes exactly from every seq", async () => {
  const { send } = await withRun("long 23");
  const whole = await readEvents((await send("GET /v1/runs/run_1/events", { headers: SSE })).body!);
  assertEquals(whole.length, 25);
  for (let seq = 0; seq < 25; seq++) {
    for (const headers of [{ ...SSE, "last-event-id": String(seq) }, SSE]) {
      const query = "last-event-id" in headers ? "?after=1" : `?after=${seq}`;
      const response = await send(`GET /v1/runs/run_1/events${query}`, { headers });
      assertEquals(await readEvents(response.body!), whole.slice(seq));
    }
  }
});

Deno.test("GET /v1/runs/{id}/events answers 204 to an EventSource that has read all entries of an ended run", async () => {
  const { send } = await withRun("answer");
  const headers = { ...SSE, "last-event-id": "2" };
  assertEquals((await send("GET /v1/runs/run_1/events", { headers })).status, 204);
});

Deno.test("GET /v1/runs/{id}/events streams new entries", async () => {
  const { send, runtime } = await withRun("hang");
  const response = await send("GET /v1/runs/run_1/events?after=1", { headers: SSE });
  const events = readEvents(response.body!);
  await settle();
  runtime.runs.emit("run_1", "tool:pre", { tool_name: "x" });
  await settle();
  runtime.runs.end("run_1", { status: "completed" });
  assertEquals((await events).map(({ id, event }) => [id, event]), [["2", "tool:pre"], ["3", "run:end"]]);
});

Deno.test("GET /v1/runs/{id}/events answers NDJSON with one entry per line", async () => {
  const { send } = await withRun("long 3");
  const response = await send("GET /v1/runs/run_1/events?after=2", {
    headers: { accept: "application/x-ndjson" },
  });
  assertEquals(response.headers.get("content-type"), "application/x-ndjson");
  const lines = (await response.text()).split("\n");
  assertEquals(lines.pop(), "");
  assertEquals(lines.map((line) => JSON.parse(line).seq), [3, 4, 5]);
});

Deno.test("GET /v1/runs/{id}/events returns the same entry in every format", async () => {
  const { send } = await withRun("long 2");
  const list = (await bodyOf(await send("GET /v1/runs/run_1/events"), "EventList")).data;
  const lines =
    await (await send("GET /v1/runs/run_1/events", { headers: { accept: "application/x-ndjson" } })).text();
  const frames = await readEvents((await send("GET /v1/runs/run_1/events", { headers: SSE })).body!);
  assertEquals(lines.trimEnd().split("\n").map((line) => JSON.parse(line)), list);
  assertEquals(frames.map(({ data }) => JSON.parse(data)), list);
});

Deno.test("GET /v1/runs/{id}/events sends a comment every 15 s without an entry", async () => {
  const { send, clock } = await withRun("hang");
  const response = await send("GET /v1/runs/run_1/events?after=1", { headers: SSE });
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
  const { send, runtime } = await withRun("long 500");
  const response = await send("GET /v1/runs/run_1/events", { headers: SSE });
  const reader = response.body!.getReader();
  await reader.read();
  await settle();
  await settle();
  assert(runtime.runs.pages <= 1, `pages: ${runtime.runs.pages}`);
  await reader.read();
  await settle();
  assert(runtime.runs.pages <= 2, `pages: ${runtime.runs.pages} of ${PAGE_SIZE} entries`);
  await reader.cancel();
  await settle();
  assertEquals(runtime.runs.following, 0);
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
    const { send } = await withRun("answer");
    assertEquals(
      await problemOf(await send(`GET /v1/runs/run_1/events${query}`, { headers: SSE })),
      "400 request_invalid",
    );
  });
}

Deno.test("GET /v1/runs/{id}/events refuses an invalid Last-Event-ID", async () => {
  const { send } = await withRun("answer");
  for (const id of ["x", "-1", "9".repeat(20)]) {
    const response = await send("GET /v1/runs/run_1/events", { headers: { ...SSE, "last-event-id": id } });
    assertEquals(await problemOf(response), "400 request_invalid");
  }
});

Deno.test("GET /v1/runs/{id}/events answers 404 for an unknown run and for a run of another caller, before the stream starts", async () => {
  const { send } = await withRun("answer");
  const foreign = { headers: { ...SSE, authorization: "Bearer k2" } };
  assertEquals(await problemOf(await send("GET /v1/runs/run_1/events", foreign)), "404 not_found");
  assertEquals(await problemOf(await send("GET /v1/runs/run_x/events", { headers: SSE })), "404 not_found");
});

Deno.test("GET /v1/runs/{id}/events answers 410 with the run when its log has expired", async () => {
  const { send, runtime } = await withRun("answer");
  runtime.runs.stored.get("run_1")!.log_expired = true;
  for (const headers of [SSE, {}] as Record<string, string>[]) {
    const response = await send("GET /v1/runs/run_1/events", { headers });
    const problem = await bodyOf(response, "Problem");
    assertEquals([response.status, problem.error.code, problem.run.id], [410, "log_expired", "run_1"]);
  }
});

Deno.test("HEAD /v1/runs/{id}/events opens no stream", async () => {
  const { send, runtime } = await withRun("hang");
  const response = await send("HEAD /v1/runs/run_1/events", { headers: SSE });
  assertEquals([response.status, await response.text(), runtime.runs.following], [200, "", 0]);
});
