/** Tests of replay, re-execution and forks over HTTP. */
import { assert, assertEquals } from "../../assert.ts";
import { createRuntime } from "../../../src/app/runtime.ts";
import { createApp } from "../../../src/server/app.ts";
import { turn } from "../../../src/testing/clocks.ts";
import { bodyOf, problemOf, testApp } from "../../support/http.ts";

const PLAN = {
  session: { orchestrator: "loop-streaming", context: "context-simple" },
  providers: [{
    module: "provider-mock",
    config: {
      responses: [
        { tool_calls: [{ name: "calculator", arguments: { expression: "6*7" } }] },
        "6 × 7 is 42.",
        "Still 42.",
      ],
    },
  }],
  tools: ["tool-calculator"],
};

/** Creates the whole server without a socket. */
function realApp() {
  const runtime = createRuntime();
  const { fetch } = createApp({ runtime, authenticate: null });
  const send = async (route: string, body?: unknown, headers: Record<string, string> = {}) => {
    const [method = "", path = ""] = route.split(" ");
    const init: RequestInit = body === undefined
      ? { method, headers }
      : { method, headers: { "content-type": "application/json", ...headers }, body: JSON.stringify(body) };
    const response = await fetch(new Request(`http://localhost${path}`, init));
    const text = await response.text();
    // deno-lint-ignore no-explicit-any -- read field by field
    const json: any = /json/.test(response.headers.get("content-type") ?? "") ? JSON.parse(text) : null;
    return { status: response.status, headers: response.headers, text, json };
  };
  return { send, close: () => runtime.close() };
}

Deno.test("POST /v1/runs/{id}/replay replays the run; from_event re-executes it", async () => {
  const { send, close } = realApp();
  try {
    const { json: run } = await send("POST /v1/runs", { prompt: "What is 6 × 7?", plan: PLAN });
    assertEquals(run.output_text, "6 × 7 is 42.");
    const replayed = await send(`POST /v1/runs/${run.id}/replay`);
    assertEquals([replayed.status, replayed.json], [200, { equal: true }]);

    const { json: { data } } = await send(`GET /v1/runs/${run.id}/events`);
    // deno-lint-ignore no-explicit-any -- an entry
    const behind = data.find(({ event }: any) => event === "tool:post").seq;
    const plan = {
      ...PLAN,
      providers: [{ module: "provider-mock", config: { response: "42, as I said." } }],
    };
    const again = await send(`POST /v1/runs/${run.id}/replay`, { from_event: behind, plan });
    assertEquals([again.status, again.json.status, again.json.output_text], [
      200,
      "completed",
      "42, as I said.",
    ]);
    assertEquals((await send(`GET /v1/sessions/${again.json.session_id}`)).json.parent_id, run.session_id);
    const text = await send(`POST /v1/runs/${run.id}/replay`, { from_event: 1 }, { accept: "text/plain" });
    assertEquals([text.status, text.text], [200, "6 × 7 is 42.\n"]);
    const stream = await send(`POST /v1/runs/${run.id}/replay`, { from_event: 1 }, {
      accept: "text/event-stream",
    });
    assert(stream.text.includes("event: run:end"));
  } finally {
    await close();
  }
});

Deno.test("POST /v1/sessions/{id}/fork creates an independent session", async () => {
  const { send, close } = realApp();
  try {
    const { json: run } = await send("POST /v1/runs", { prompt: "What is 6 × 7?", plan: PLAN });
    const fork = await send(`POST /v1/sessions/${run.session_id}/fork`, { turn: 1 });
    assertEquals([fork.status, fork.json.parent_id], [201, run.session_id]);
    assertEquals(fork.headers.get("location"), `/v1/sessions/${fork.json.id}`);
    const next = await send("POST /v1/runs", { prompt: "Sure?", session_id: fork.json.id });
    assertEquals(next.json.output_text, "Still 42.");
    assertEquals((await send(`GET /v1/sessions/${run.session_id}/messages`)).json.data.length, 4);
    assertEquals((await send(`POST /v1/sessions/${run.session_id}/fork`, { turn: 2 })).status, 400);
    assertEquals((await send(`POST /v1/sessions/${run.session_id}/fork`)).status, 201);
    const before = await send(`POST /v1/sessions/${run.session_id}/fork`, { before_run: run.id });
    assertEquals([before.status, before.json.metadata.forked_before_run], [201, run.id]);
    assertEquals((await send(`GET /v1/sessions/${before.json.id}/messages`)).json.data, []);
  } finally {
    await close();
  }
});

Deno.test("replay and fork refuse invalid requests", async () => {
  const { send } = testApp();
  const { id, session_id } = await (await send("POST /v1/runs", { body: { prompt: "answer x" } })).json();
  for (
    const [route, body, status] of [
      [`POST /v1/runs/${id}/replay`, { plan: "x" }, 400],
      [`POST /v1/runs/${id}/replay`, { from_event: 0 }, 400],
      [`POST /v1/runs/${id}/replay`, { from: 1 }, 400],
      ["POST /v1/runs/run_none/replay", undefined, 404],
      [`POST /v1/sessions/${session_id}/fork`, { turn: 0 }, 400],
      [`POST /v1/sessions/${session_id}/fork`, { turn: 1, before_run: id }, 400],
      [`POST /v1/sessions/${session_id}/fork`, { before_run: "run_none" }, 400],
      ["POST /v1/sessions/ses_none/fork", undefined, 404],
    ] as [string, unknown, number][]
  ) {
    const response = await send(route, body === undefined ? {} : { body });
    assertEquals([route, response.status], [route, status]);
    await response.body?.cancel();
  }
  const hanging = await (await send("POST /v1/runs", { body: { prompt: "hang", background: true } })).json();
  const refused = await send(`POST /v1/runs/${hanging.id}/replay`);
  assertEquals([refused.status, (await refused.json()).error.code], [409, "not_replayable"]);
});

Deno.test("GET /v1/events/schema contains every canonical event by name", async () => {
  const { send } = testApp();
  const response = await send("GET /v1/events/schema");
  assertEquals([response.status, response.headers.get("content-type")], [200, "application/schema+json"]);
  const { $defs, anyOf } = await response.json();
  assertEquals($defs["tool:pre"].properties.event, { type: "string", const: "tool:pre" });
  assertEquals(anyOf.length, Object.keys($defs).length);
});

Deno.test("GET /v1/runs/{id}/requests says what a model was sent, of runs that wait too", async () => {
  const { send, start } = testApp();
  const run = await start("ask");
  const list = async (query: string) =>
    await bodyOf(await send(`GET /v1/runs/${run.id}/requests${query}`), "ModelRequestList");
  for (;;) {
    const { data } = await bodyOf(await send(`GET /v1/runs/${run.id}/events`), "EventList");
    if (data.some(({ event }: { event: string }) => event === "approval:required")) break;
    await turn();
  }
  const { data: [request], next_cursor } = await list("");
  assertEquals([request.messages, next_cursor], [[{ role: "user", content: "ask" }], null]);
  assertEquals(await list(`?seq=${request.seq}&limit=1`), { data: [request], next_cursor });
  assertEquals((await list("?seq=1")).data, []);
  for (const query of ["?seq=x", "?limit=0", "?cursor=x", "?after=1"]) {
    assertEquals(
      await problemOf(await send(`GET /v1/runs/${run.id}/requests${query}`)),
      "400 request_invalid",
    );
  }
  const foreign = await send(`GET /v1/runs/${run.id}/requests`, { headers: { authorization: "Bearer k2" } });
  assertEquals(await problemOf(foreign), "404 not_found");
});
