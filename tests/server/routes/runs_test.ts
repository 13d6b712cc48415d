import { assertEquals } from "../../assert.ts";
import { turn } from "../../../src/testing/clocks.ts";
import { bodyOf, problemOf, type TestApp, testApp } from "../../support/http.ts";

/** Resolves when the runs have ended. */
async function ended(send: TestApp["send"], ...runs: { id: string }[]): Promise<void> {
  for (const run of runs) await hasEvent(send, run, "run:end");
}

/** Resolves when the log of a run contains an event. */
async function hasEvent(send: TestApp["send"], { id }: { id: string }, event: string): Promise<void> {
  for (;;) {
    const { data } = await bodyOf(await send(`GET /v1/runs/${id}/events`), "EventList");
    if (data.some((entry: { event: string }) => entry.event === event)) return;
    await turn();
  }
}

Deno.test("GET /v1/runs lists newest first, filters and pages", async () => {
  const { send, start } = testApp();
  const first = await start("answer");
  const second = await start("hang");
  const third = await start("answer");
  await ended(send, first, third);
  const ids = async (query: string) => {
    const page = await bodyOf(await send(`GET /v1/runs${query}`), "RunList");
    return [page.data.map(({ id }: { id: string }) => id), page.next_cursor];
  };
  assertEquals(await ids(""), [[third.id, second.id, first.id], null]);
  assertEquals(await ids("?status=completed"), [[third.id, first.id], null]);
  assertEquals(await ids(`?session_id=${second.session_id}`), [[second.id], null]);
  const [page, cursor] = await ids("?limit=2");
  assertEquals(page, [third.id, second.id]);
  assertEquals(await ids(`?limit=2&cursor=${encodeURIComponent(String(cursor))}`), [[first.id], null]);
  const { error: { message } } = await (await send("GET /v1/runs?limit=-1")).json();
  assertEquals(message.split(": ").slice(-2), [
    "must be a whole number of at most 15 digits",
    'received "-1"',
  ]);
  for (const query of ["?limit=0", "?limit=1001", "?limit=x", "?status=done", "?stat=failed", "?cursor="]) {
    assertEquals(await problemOf(await send(`GET /v1/runs${query}`)), "400 request_invalid");
  }
});

Deno.test("GET /v1/runs?status= answers no empty page before the last one", async () => {
  const { send, start } = testApp();
  const asking = await start("ask");
  await hasEvent(send, asking, "approval:required");
  await start("hang");
  const page = await bodyOf(await send("GET /v1/runs?status=awaiting_approval&limit=1"), "RunList");
  assertEquals(page.data.map(({ id }: { id: string }) => id), [asking.id]);
});

Deno.test("GET /v1/runs/{id} returns the run, and 404 for a run of another caller", async () => {
  const { send, start } = testApp();
  const run = await start("answer 42");
  await ended(send, run);
  const response = await send(`GET /v1/runs/${run.id}`);
  assertEquals(response.headers.get("preamp-run-id"), run.id);
  assertEquals((await bodyOf(response, "Run")).output_text, "42");
  const foreign = await send(`GET /v1/runs/${run.id}`, { headers: { authorization: "Bearer k2" } });
  const unknown = await send("GET /v1/runs/run_9", { headers: { authorization: "Bearer k2" } });
  const problems = await Promise.all([foreign, unknown].map(async (response) => {
    const { error: { request_id: _, ...error }, ...rest } = await response.json();
    return JSON.stringify({ ...rest, error });
  }));
  assertEquals([foreign.status, problems[0]?.replaceAll(run.id, "run_9")], [404, problems[1]]);
});

Deno.test("DELETE /v1/runs/{id} answers 204, and 409 while it runs", async () => {
  const { send, start } = testApp();
  const run = await start("answer");
  const hanging = await start("hang");
  await ended(send, run);
  assertEquals((await send(`DELETE /v1/runs/${run.id}`)).status, 204);
  assertEquals(await problemOf(await send(`GET /v1/runs/${run.id}`)), "404 not_found");
  assertEquals(await problemOf(await send(`DELETE /v1/runs/${hanging.id}`)), "409 session_busy");
});

Deno.test("POST /v1/runs/{id}/cancel accepts a mode or no body, and returns an ended run unchanged", async () => {
  const { send, start } = testApp();
  const graceful = await start("ask");
  const immediate = await start("hang");
  const run = await start("answer");
  await ended(send, run);
  const cancel = (id: string, body?: unknown) => send(`POST /v1/runs/${id}/cancel`, body ? { body } : {});
  assertEquals((await bodyOf(await cancel(immediate.id, { mode: "immediate" }), "Run")).id, immediate.id);
  await ended(send, immediate); // the model has not answered
  await hasEvent(send, graceful, "approval:required");
  assertEquals((await bodyOf(await cancel(graceful.id), "Run")).id, graceful.id);
  await ended(send, graceful);
  const statuses = [immediate, graceful].map(async ({ id }) =>
    (await bodyOf(await send(`GET /v1/runs/${id}`), "Run")).status
  );
  assertEquals(await Promise.all(statuses), ["cancelled", "cancelled"]);
  const unchanged = await cancel(run.id, {});
  assertEquals([unchanged.status, (await bodyOf(unchanged, "Run")).status], [200, "completed"]);
  const wrong = [{ mode: "now" }, { mod: "graceful" }, [], "null"];
  for (const body of wrong) {
    assertEquals(await problemOf(await cancel(run.id, body)), "400 request_invalid");
  }
  const yaml = { body: "mode: graceful", headers: { "content-type": "application/yaml" } };
  assertEquals(
    await problemOf(await send(`POST /v1/runs/${run.id}/cancel`, yaml)),
    "415 unsupported_media_type",
  );
});

Deno.test("POST /v1/runs/{id}/steer forwards the text, and refuses blank text and ended runs", async () => {
  const { send, start, answerHanging } = testApp();
  const hanging = await start("hang");
  const run = await start("answer");
  await ended(send, run);
  const steer = (id: string, body: unknown) => send(`POST /v1/runs/${id}/steer`, { body });
  await hasEvent(send, hanging, "provider:request");
  assertEquals((await bodyOf(await steer(hanging.id, { text: "answer left" }), "Run")).id, hanging.id);
  for (const body of [{ text: "  " }, {}, undefined]) {
    assertEquals(await problemOf(await steer(hanging.id, body)), "400 request_invalid");
  }
  assertEquals(await problemOf(await steer(run.id, { text: "x" })), "409 run_ended");
  await answerHanging();
  await ended(send, hanging);
  assertEquals((await bodyOf(await send(`GET /v1/runs/${hanging.id}`), "Run")).output_text, "left");
});

Deno.test("approvals are listed and decided once, with the caller's name", async () => {
  const { send } = testApp();
  const run = await bodyOf(await send("POST /v1/runs", { body: { prompt: "ask" } }), "Run");
  const path = `/v1/runs/${run.id}/approvals`;
  const listed = await send(`GET ${path}`);
  assertEquals(listed.headers.get("preamp-run-id"), run.id);
  const before = await bodyOf(listed, "ApprovalList");
  assertEquals([before.data[0].status, before.next_cursor], ["pending", null]);
  const answer = (body: unknown, id = run.approvals[0].id) => send(`POST ${path}/${id}`, { body });
  assertEquals(
    await problemOf(await answer({ decision: "allow", args_hash: "other" })),
    "409 approval_args_mismatch",
  );
  assertEquals(await problemOf(await answer({ decision: "" })), "400 request_invalid");
  assertEquals(await problemOf(await answer({ decision: "allow" }, "apr_x")), "404 not_found");
  const decided = await bodyOf(await answer({ decision: "allow", reason: "looks right" }), "Approval");
  assertEquals([decided.status, decided.reason, decided.decided_by], ["granted", "looks right", "key:k1"]);
  assertEquals(await problemOf(await answer({ decision: "deny" })), "409 approval_already_resolved");
});

Deno.test("lists of runs, sessions and events end a page at 8 MiB; their cursors reach every item once", async () => {
  const { send, runtime } = testApp();
  const caller = { name: "key:k1", namespace: "k1", origin: "caller" } as const;
  const large = "x".repeat(3 * 1024 * 1024);
  const ids: string[] = [];
  for (let count = 1; count <= 4; count++) {
    const handle = await runtime.runs.create({ prompt: large, metadata: { large } }, caller);
    ids.unshift((await handle.settled("end")).id);
  }
  const pages = async <T>(route: string, schema: "RunList" | "SessionList" | "EventList") => {
    const found: T[][] = [];
    for (let cursor: string | null = ""; cursor !== null;) {
      const query: string = `?limit=1000${cursor && `&cursor=${cursor}`}`;
      const page = await bodyOf(await send(`GET ${route}${query}`), schema);
      found.push(page.data);
      cursor = page.next_cursor;
    }
    return found;
  };
  const runs = await pages<{ id: string }>("/v1/runs", "RunList");
  assertEquals(runs.map((page) => page.map(({ id }) => id)), [ids.slice(0, 3), ids.slice(3)]);
  assertEquals((await pages("/v1/sessions", "SessionList")).map(({ length }) => length), [3, 1]);
  const events = await pages<{ seq: number; event: string }>(`/v1/runs/${ids[0]}/events`, "EventList");
  const seqs = events.flat().map(({ seq }) => seq);
  assertEquals(seqs, Array.from(seqs, (_, index) => index + 1));
  assertEquals([events.length > 1, events.at(-1)?.at(-1)?.event], [true, "run:end"]);
});

Deno.test("POST /v1/runs/{id}/limits raises a limit that the run waits at", async () => {
  const { send } = testApp();
  const plan = {
    session: { orchestrator: "loop-basic", context: "context-simple" },
    providers: ["provider-prompted"],
    tools: ["tool-calculator"],
    limits: { max_tool_calls: 0, on_limit: "pause" },
  };
  const run = await bodyOf(await send("POST /v1/runs", { body: { prompt: "ask", plan } }), "Run");
  assertEquals([run.status, run.approvals[0].limit.name], ["awaiting_limit", "max_tool_calls"]);
  const raise = (body: unknown) => send(`POST /v1/runs/${run.id}/limits`, { body });
  for (const body of [{}, { max_tool_calls: "3" }, { max_duration_s: 3 }, { on_limit: "end" }]) {
    assertEquals(await problemOf(await raise(body)), "400 request_invalid");
  }
  assertEquals(await problemOf(await raise({ max_tool_calls: 1e9 })), "403 policy_refused");
  assertEquals((await bodyOf(await raise({ max_tool_calls: 3 }), "Run")).limits.max_tool_calls, 3);
  await ended(send, run);
  assertEquals((await bodyOf(await send(`GET /v1/runs/${run.id}`), "Run")).output_text, "allowed");
  assertEquals(await problemOf(await raise({ max_tool_calls: 5 })), "409 run_ended");
});
