import { assertEquals, assertStringIncludes } from "../assert.ts";
import { PreampError } from "../../src/sdk/errors.ts";
import { ROUTES } from "../../src/server/route_table.ts";
import { bodyOf, problemOf, testApp } from "./client.ts";

async function withRuns(...prompts: string[]) {
  const test = testApp();
  for (const prompt of prompts) {
    await test.send("POST /v1/runs", { body: { prompt, background: true, session_id: "ses_a" } });
  }
  return test;
}

Deno.test("GET /v1/runs lists newest first, filters and pages", async () => {
  const { send } = await withRuns("answer", "hang", "answer");
  const ids = async (query: string) => {
    const page = await bodyOf(await send(`GET /v1/runs${query}`), "RunList");
    return [page.data.map(({ id }: { id: string }) => id), page.next_cursor];
  };
  assertEquals(await ids(""), [["run_3", "run_2", "run_1"], null]);
  assertEquals(await ids("?status=completed"), [["run_3", "run_1"], null]);
  assertEquals(await ids("?session_id=ses_b"), [[], null]);
  assertEquals(await ids("?limit=2"), [["run_3", "run_2"], "2"]);
  assertEquals(await ids("?limit=2&cursor=2"), [["run_1"], null]);
  for (const query of ["?limit=0", "?limit=1001", "?limit=x", "?status=done", "?stat=failed", "?cursor="]) {
    assertEquals(await problemOf(await send(`GET /v1/runs${query}`)), "400 request_invalid");
  }
});

Deno.test("GET /v1/runs/{id} returns the run, and 404 for a run of another caller", async () => {
  const { send } = await withRuns("answer 42");
  const response = await send("GET /v1/runs/run_1");
  assertEquals(response.headers.get("preamp-run-id"), "run_1");
  assertEquals((await bodyOf(response, "Run")).output_text, "42");
  const foreign = await send("GET /v1/runs/run_1", { headers: { authorization: "Bearer k2" } });
  const unknown = await send("GET /v1/runs/run_9", { headers: { authorization: "Bearer k2" } });
  const problems = [await foreign.json(), await unknown.json()].map((
    { error: { request_id: _, ...error }, ...rest },
  ) => ({
    ...rest,
    error,
  }));
  assertEquals([foreign.status, problems[0]], [404, problems[1]]);
});

Deno.test("DELETE /v1/runs/{id} answers 204, and 409 while it runs", async () => {
  const { send } = await withRuns("answer", "hang");
  assertEquals((await send("DELETE /v1/runs/run_1")).status, 204);
  assertEquals(await problemOf(await send("GET /v1/runs/run_1")), "404 not_found");
  assertEquals(await problemOf(await send("DELETE /v1/runs/run_2")), "409 session_busy");
});

Deno.test("POST /v1/runs/{id}/cancel accepts a mode or no body, and returns an ended run unchanged", async () => {
  const { send, runtime } = await withRuns("hang", "hang", "answer");
  assertEquals((await bodyOf(await send("POST /v1/runs/run_1/cancel"), "Run")).status, "cancelled");
  await send("POST /v1/runs/run_2/cancel", { body: { mode: "immediate" } });
  assertEquals(runtime.runs.cancelled, [{ id: "run_1", mode: "graceful" }, {
    id: "run_2",
    mode: "immediate",
  }]);
  const ended = await send("POST /v1/runs/run_3/cancel", { body: {} });
  assertEquals([ended.status, (await bodyOf(ended, "Run")).status], [200, "completed"]);
  const wrong = [{ mode: "now" }, { mod: "graceful" }, [], "null"];
  for (const body of wrong) {
    assertEquals(await problemOf(await send("POST /v1/runs/run_1/cancel", { body })), "400 request_invalid");
  }
  const yaml = { body: "mode: graceful", headers: { "content-type": "application/yaml" } };
  assertEquals(await problemOf(await send("POST /v1/runs/run_1/cancel", yaml)), "415 unsupported_media_type");
});

Deno.test("POST /v1/runs/{id}/steer forwards the text, and refuses blank text and ended runs", async () => {
  const { send, runtime } = await withRuns("hang", "answer");
  assertEquals(
    (await bodyOf(await send("POST /v1/runs/run_1/steer", { body: { text: "left" } }), "Run")).id,
    "run_1",
  );
  assertEquals(runtime.runs.steered, ["left"]);
  for (const body of [{ text: "  " }, {}, undefined]) {
    assertEquals(await problemOf(await send("POST /v1/runs/run_1/steer", { body })), "400 request_invalid");
  }
  assertEquals(
    await problemOf(await send("POST /v1/runs/run_2/steer", { body: { text: "x" } })),
    "409 run_ended",
  );
});

Deno.test("approvals are listed and decided once, with the caller's name", async () => {
  const { send } = await withRuns("ask");
  const path = "/v1/runs/run_1/approvals";
  const before = await bodyOf(await send(`GET ${path}`), "ApprovalList");
  assertEquals([before.data[0].status, before.next_cursor], ["pending", null]);
  const answer = (body: unknown, id = "apr_run_1") => send(`POST ${path}/${id}`, { body });
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

Deno.test("sessions are listed, read, paged and deleted", async () => {
  const { send } = await withRuns("answer", "answer");
  assertEquals((await bodyOf(await send("GET /v1/sessions"), "SessionList")).data.length, 1);
  assertEquals((await bodyOf(await send("GET /v1/sessions/ses_a"), "Session")).run_count, 2);
  const runs = await bodyOf(await send("GET /v1/sessions/ses_a/runs?limit=1"), "RunList");
  assertEquals([runs.data[0].id, runs.next_cursor], ["run_2", "1"]);
  assertEquals(await problemOf(await send("GET /v1/sessions/ses_x/runs")), "404 not_found");
  const all = await bodyOf(await send("GET /v1/sessions/ses_a/messages"), "MessageList");
  assertEquals([all.data.length, all.next_cursor], [5, null]);
  const page = await bodyOf(await send("GET /v1/sessions/ses_a/messages?limit=2&cursor=2"), "MessageList");
  assertEquals([page.data[0].content, page.next_cursor], ["message 2", "4"]);
  assertEquals((await send("DELETE /v1/sessions/ses_a")).status, 204);
  assertEquals(await problemOf(await send("GET /v1/sessions/ses_a")), "404 not_found");
});

Deno.test("POST /v1/plans/check accepts a plan, a name, or a plan as the whole body in JSON or YAML", async () => {
  const { send, runtime } = testApp();
  const yaml = { "content-type": "application/yaml" };
  const bare = '{"session":{}}';
  const bodies = [
    { body: { plan: { session: {} } } },
    { body: { plan_ref: "default" } },
    { body: bare },
    { body: "session: {}\n", headers: yaml },
    { body: "session: [", headers: yaml },
  ];
  for (const options of bodies) {
    const response = await send("POST /v1/plans/check", options);
    assertEquals([response.status, (await bodyOf(response, "PlanCheck")).ok], [200, true]);
  }
  assertEquals(runtime.checked, [
    { plan: { session: {} } },
    { plan_ref: "default" },
    { plan: bare },
    { plan: "session: {}\n" },
    { plan: "session: [" },
  ]);
  for (const body of [{}, { plan: {}, plan_ref: "x" }, { plans: {} }]) {
    assertEquals(await problemOf(await send("POST /v1/plans/check", { body })), "400 request_invalid");
  }
});

Deno.test("plans and modules are listed", async () => {
  const { send } = testApp();
  assertEquals((await bodyOf(await send("GET /v1/plans"), "PlanList")).data[0].name, "default");
  assertEquals((await bodyOf(await send("GET /v1/modules"), "ModuleList")).data.length, 1);
  assertEquals((await bodyOf(await send("GET /v1/modules/tool-calculator"), "Module")).type, "tool");
  assertEquals(await problemOf(await send("GET /v1/modules/tool-x")), "404 not_found");
});

Deno.test("/healthz answers 200 while /readyz answers 503", async () => {
  const { send, runtime } = testApp();
  assertEquals((await bodyOf(await send("GET /healthz"), "Health")).status, "ok");
  assertEquals((await send("GET /readyz")).status, 200);
  runtime.readiness = { ok: false, reasons: ["draining"] };
  const response = await send("GET /readyz");
  assertEquals([response.status, response.headers.get("retry-after")], [503, "1"]);
  assertEquals((await bodyOf(response, "Readiness")).reasons, ["draining"]);
});

Deno.test("GET / returns text to curl and HTML to a browser", async () => {
  const { send } = testApp();
  const text = await send("GET /", { headers: { accept: "*/*" } });
  assertEquals(text.headers.get("content-type"), "text/plain; charset=utf-8");
  assertStringIncludes(await text.text(), "curl -N http://localhost/v1/runs");
  const page = await send("GET /", { headers: { accept: "text/html,application/xhtml+xml,*/*;q=0.8" } });
  assertEquals(page.headers.get("content-type"), "text/html; charset=utf-8");
  assertStringIncludes(await page.text(), '<a href="/openapi.json">');
});

Deno.test("an unknown path is 404 and a wrong method 405 with Allow", async () => {
  const { send } = testApp();
  const unknown = [
    "/v1",
    "/v1/runs/",
    "/v1/runs/x/y",
    "/v1/plans/nothing",
    "/docs/",
    "/metrics",
    "/openai/v1/models",
  ];
  for (const path of unknown) assertEquals(await problemOf(await send(`GET ${path}`)), "404 not_found");
  const wrong = await send("PUT /v1/runs");
  assertEquals([await problemOf(wrong), wrong.headers.get("allow")], [
    "405 method_not_allowed",
    "POST, GET, HEAD",
  ]);
  const open = await send("POST /healthz", { headers: { authorization: "" } });
  assertEquals([await problemOf(open), open.headers.get("allow")], ["405 method_not_allowed", "GET, HEAD"]);
});

Deno.test("HEAD answers each route as GET does, without a body", async () => {
  const { send } = await withRuns("answer");
  const paths = ROUTES.filter(({ method }) => method === "GET").map(({ path }) =>
    path.replace("{id}", "run_1")
  );
  for (const path of [...paths, "/v1/runs/run_9", "/nowhere"]) {
    for (const headers of [{}, { "accept-encoding": "gzip" }, { accept: "text/event-stream" }]) {
      const [head, get] = [await send(`HEAD ${path}`, { headers }), await send(`GET ${path}`, { headers })];
      assertEquals([head.status, await head.text()], [get.status, ""], path);
      const text = new TextDecoder().decode(await get.bytes());
      if (!get.headers.has("content-encoding") && get.headers.get("content-type") !== "text/event-stream") {
        get.headers.set("content-length", String(new TextEncoder().encode(text).length)); // as Deno sends it
      }
      get.headers.set("preamp-request-id", head.headers.get("preamp-request-id") ?? "");
      assertEquals([...head.headers], [...get.headers], path);
    }
  }
  assertEquals((await send("HEAD /v1/plans/check")).status, 405);
});

Deno.test("every text or JSON response ends with a newline", async () => {
  const { send } = await withRuns("answer");
  for (const { method, path } of ROUTES) {
    const route = `${method} ${path.replace("{id}", "run_1").replace("{approval_id}", "apr_1")}`;
    const text = await (await send(route, method === "GET" ? {} : { body: { prompt: "answer" } })).text();
    assertEquals(text.at(-1) ?? "\n", "\n", route);
  }
});

Deno.test("an unexpected error is 500 internal without its message, which is logged under the request id", async () => {
  const { send, runtime, logged } = testApp();
  for (
    const failure of [new Error("/srv/secret: sk-123"), new PreampError("internal", "sk-123"), "sk-123", null]
  ) {
    runtime.failure = failure ?? Object.create(null);
    const response = await send("GET /v1/plans");
    const text = await response.text();
    assertEquals([response.status, text.includes("sk-123") || text.includes("/srv")], [500, false]);
    const record = logged.at(-1);
    assertEquals([record?.level, record?.code], ["error", "internal"]);
    assertEquals(JSON.parse(text).error.request_id, record?.request_id);
    assertEquals(response.headers.get("preamp-request-id"), record?.request_id);
  }
  assertStringIncludes(logged[0]?.error?.message ?? "", "sk-123");
});
