import { assert, assertEquals, assertMatch, assertThrows } from "../assert.ts";
import { createPreamp, type PreampOptions } from "../../src/server/mod.ts";
import { hashKey } from "../../src/policy/api_keys.ts";
import { defaultPolicy } from "../../src/policy/settings.ts";
import { bodyOf, problemOf, readEvents } from "../support/http.ts";

const PLAN = {
  session: { orchestrator: "loop-streaming", context: "context-simple" },
  system: "Be brief.",
  providers: [{
    module: "provider-mock",
    config: {
      chunk_chars: 8,
      responses: [
        { tool_calls: [{ name: "calculator", arguments: { expression: "6*7" } }] },
        { text: "6 × 7 is 42." },
      ],
    },
  }],
  tools: ["tool-calculator"],
};
const ASKING = {
  ...PLAN,
  hooks: [{ module: "hooks-approval", config: { rules: [{ tool: "calculator", action: "ask" }] } }],
};

function open(options: PreampOptions = {}) {
  const preamp = createPreamp({ authenticate: null, ...options });
  const send = (route: string, body?: unknown, headers: Record<string, string> = {}) => {
    const [method = "", path = ""] = route.split(" ");
    return preamp.fetch(
      new Request(`http://localhost${path}`, {
        method,
        headers: { "content-type": "application/json", ...headers },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      }),
    );
  };
  return { ...preamp, send, [Symbol.asyncDispose]: preamp.close };
}

Deno.test("createPreamp() runs a posted plan and answers in every format", async () => {
  await using preamp = open();
  const json = await preamp.send("POST /v1/runs", { prompt: "What is 6 × 7?", plan: PLAN });
  const run = await bodyOf(json, "Run");
  assertEquals([run.status, run.output_text, run.tool_call_count], ["completed", "6 × 7 is 42.", 1]);
  const text = await preamp.send("POST /v1/runs", { prompt: "?", plan: PLAN }, { accept: "text/plain" });
  assertEquals([text.status, await text.text()], [200, "6 × 7 is 42.\n"]);
  const stream = await preamp.send("POST /v1/runs", { prompt: "?", plan: PLAN }, {
    accept: "text/event-stream",
  });
  const events = await readEvents(stream.body!);
  assertEquals(events.map(({ id }) => Number(id)), events.map((_, index) => index + 1));
  assertEquals([events[0]?.event, events.at(-1)?.event], ["run:start", "run:end"]);
});

Deno.test("createPreamp() refuses an option that it could not use", () => {
  const wrong: Record<string, unknown[]> = {
    policy: [{}, { limits: { max_cost_usd: "1" } }, { ...defaultPolicy(), limits: {} }, "preamp.yaml"],
    store: ["memory", "postgres://localhost/x", {}],
    plans: ["plans/", new URL("file:///plans")],
    home: ["~/.preamp"],
    modules: [5, []],
    authenticate: ["key", {}],
    hosts: ["example.com", [5]],
    basePath: [5],
    heartbeat_ms: ["3000", 0, NaN],
    log: [console],
    runtime_log: ["stderr"],
    secrets: ["key", [5]],
  };
  for (const [option, values] of Object.entries(wrong)) {
    for (const value of values) {
      assertThrows(
        () => createPreamp({ [option]: value }),
        TypeError,
        `Cannot create Preamp: ${option} must be `,
      );
    }
  }
});

Deno.test("createPreamp() returns the same log in every format and resumes exactly", async () => {
  await using preamp = open();
  const { id } = await bodyOf(await preamp.send("POST /v1/runs", { prompt: "?", plan: PLAN }), "Run");
  const list = (await bodyOf(await preamp.send(`GET /v1/runs/${id}/events`), "EventList")).data;
  for (let after = 0; after < list.length; after += 5) {
    const headers = { accept: "text/event-stream", "last-event-id": String(after) };
    const response = await preamp.send(`GET /v1/runs/${id}/events`, undefined, headers);
    const events = await readEvents(response.body!);
    assertEquals(events.map(({ data }) => JSON.parse(data)), list.slice(after));
  }
  const lines = await preamp.send(`GET /v1/runs/${id}/events`, undefined, { accept: "application/x-ndjson" });
  assertEquals((await lines.text()).trimEnd().split("\n").map((line) => JSON.parse(line)), list);
});

Deno.test("createPreamp() accepts the decision of an approval over HTTP", async () => {
  await using preamp = open();
  const waiting = await preamp.send("POST /v1/runs", { prompt: "?", plan: ASKING });
  const { id, status, approvals } = await bodyOf(waiting, "Run");
  assertEquals([status, approvals.length], ["awaiting_approval", 1]);
  const path = `/v1/runs/${id}/approvals/${approvals[0].id}`;
  const decided = await bodyOf(
    await preamp.send(`POST ${path}`, { decision: "allow", reason: "ok" }),
    "Approval",
  );
  assertEquals([decided.status, decided.decided_by], ["granted", "anonymous"]);
  assertEquals(
    await problemOf(await preamp.send(`POST ${path}`, { decision: "allow" })),
    "409 approval_already_resolved",
  );
  const rest = await preamp.send(`GET /v1/runs/${id}/events`, undefined, { accept: "application/x-ndjson" });
  await rest.text();
  assertEquals((await bodyOf(await preamp.send(`GET /v1/runs/${id}`), "Run")).status, "completed");
  const session = await bodyOf(await preamp.send("GET /v1/sessions"), "SessionList");
  const history = await preamp.send(`GET /v1/sessions/${session.data[0].id}/messages`);
  assertEquals((await bodyOf(history, "MessageList")).data.at(-1).role, "assistant");
});

Deno.test("createPreamp() refuses a plan without providers before a run exists", async () => {
  await using preamp = open();
  const session = { orchestrator: "loop-streaming", context: "context-simple" };
  for (const plan of [{ session }, { session, providers: [] }]) {
    const response = await preamp.send("POST /v1/runs", { prompt: "?", plan });
    const { error } = await bodyOf(response, "Problem");
    assertEquals([response.status, error.code, error.details[0].path], [
      422,
      "module_load_failed",
      "providers",
    ]);
    assertMatch(error.message, /No providers mounted/);
  }
  assertEquals((await bodyOf(await preamp.send("GET /v1/runs"), "RunList")).data, []);
});

Deno.test("createPreamp() answers an invalid plan with line and column, and a check of it with 200", async () => {
  await using preamp = open();
  const send = (path: string) =>
    preamp.fetch(
      new Request(`http://localhost${path}`, {
        method: "POST",
        headers: { "content-type": "application/yaml" },
        body: "session: {orchestrator: loop-basic, context: context-simple}\nproviders: 7\n",
      }),
    );
  const { error } = await bodyOf(await send("/v1/runs?prompt=x"), "Problem");
  assertEquals([error.code, error.details[0].path, error.details[0].line], ["plan_invalid", "providers", 2]);
  const check = await bodyOf(await send("/v1/plans/check"), "PlanCheck");
  assertEquals([check.ok, check.errors[0].path], [false, "providers"]);
});

Deno.test("createPreamp() returns the same run for a repeated Idempotency-Key", async () => {
  await using preamp = open();
  const headers = { "idempotency-key": "k" };
  const first = await bodyOf(await preamp.send("POST /v1/runs", { prompt: "?", plan: PLAN }, headers), "Run");
  const second = await bodyOf(
    await preamp.send("POST /v1/runs", { prompt: "?", plan: PLAN }, headers),
    "Run",
  );
  assertEquals(second.id, first.id);
  const other = await preamp.send("POST /v1/runs", { prompt: "!", plan: PLAN }, headers);
  assertEquals(await problemOf(other), "409 idempotency_conflict");
});

Deno.test("createPreamp() lists the built-in modules as documented", async () => {
  await using preamp = open();
  const { data } = await bodyOf(await preamp.send("GET /v1/modules"), "ModuleList");
  assert(data.length > 0);
  assertEquals((await bodyOf(await preamp.send(`GET /v1/modules/${data[0].id}`), "Module")).id, data[0].id);
  assertEquals(await problemOf(await preamp.send("GET /v1/modules/nope")), "404 not_found");
});

Deno.test("createPreamp() accepts the keys of its policy, and no key without them", async () => {
  const closed = createPreamp();
  const request = () =>
    new Request("http://any.example/v1/runs", { headers: { authorization: "Bearer k1" } });
  assertEquals((await closed.fetch(request())).status, 401);
  assertEquals((await closed.fetch(new Request("http://any.example/healthz"))).status, 200);
  await closed.close();
  const policy = defaultPolicy();
  policy.auth.keys.push({ name: "ci", sha256: hashKey("k1") });
  const keyed = createPreamp({ policy });
  assertEquals((await keyed.fetch(request())).status, 200);
  await keyed.close();
});

Deno.test("createPreamp() cancels each earlier run of simultaneous ones when if_busy is cancel", async () => {
  await using preamp = open();
  const first = await bodyOf(await preamp.send("POST /v1/runs", { prompt: "?", plan: ASKING }), "Run");
  const { session_id } = first;
  const calls = [{ name: "calculator", arguments: { expression: "6*7" } }];
  const provider = { module: "provider-mock", config: { responses: Array(20).fill({ tool_calls: calls }) } };
  const plan = { ...ASKING, providers: [provider] };
  const body = { prompt: "?", plan, session_id, if_busy: "cancel" };
  const answers = await Promise.all(Array.from({ length: 6 }, () => preamp.send("POST /v1/runs", body)));
  assertEquals(answers.map(({ status }) => status), Array(6).fill(200));
  const { data } = await bodyOf(await preamp.send(`GET /v1/sessions/${session_id}/runs`), "RunList");
  const statuses = data.map(({ status }: { status: string }) => status);
  const open_runs = statuses.filter((status: string) => status !== "cancelled");
  assertEquals([statuses.length, open_runs.length], [7, 1]);
});

Deno.test("createPreamp() reports why a queued run cannot be steered", async () => {
  await using preamp = open();
  const plan = {
    ...PLAN,
    providers: [{ module: "provider-mock", config: { responses: [{ text: "x", delay_ms: 60_000 }] } }],
  };
  const busy = await bodyOf(
    await preamp.send("POST /v1/runs", { prompt: "?", plan, background: true }),
    "Run",
  );
  const { session_id } = busy;
  const body = { prompt: "?", plan, session_id, if_busy: "queue", background: true };
  const queued = await bodyOf(await preamp.send("POST /v1/runs", body), "Run");
  assertEquals(queued.status, "queued");
  const problem = await bodyOf(
    await preamp.send(`POST /v1/runs/${queued.id}/steer`, { text: "x" }),
    "Problem",
  );
  assertEquals([problem.status, problem.error.code], [409, "not_steerable"]);
  assertEquals(problem.error.message.includes("has not started"), true);
  for (const { id } of [queued, busy]) await preamp.send(`POST /v1/runs/${id}/cancel`, { mode: "immediate" });
});

Deno.test("createPreamp() ends a run with max_cost_usd at its first unpriced call, with the reason", async () => {
  await using preamp = open();
  const body = { prompt: "?", plan: { ...PLAN, limits: { max_cost_usd: "0.01" } } };
  const run = await bodyOf(await preamp.send("POST /v1/runs", body), "Run");
  assertEquals([run.status, run.stop_reason, run.turn_count], ["incomplete", "limit:max_cost_usd", 1]);
  assertEquals(run.warnings.map(({ code }: { code: string }) => code), ["price_unknown"]);
  assertEquals(run.warnings[0].message.includes("config.prices"), true);
  const { data } = await bodyOf(await preamp.send(`GET /v1/runs/${run.id}/events`), "EventList");
  const names = data.map(({ event }: { event: string }) => event);
  const place = (name: string) => names.indexOf(name);
  assertEquals(place("provider:response") > 0, true);
  assertEquals(place("provider:response") < place("execution:end"), true);
});

Deno.test("createPreamp().drain() sends streams the end of their runs and waiting requests the run", async () => {
  await using preamp = open();
  const plan = {
    ...PLAN,
    providers: [{ module: "provider-mock", config: { responses: [{ text: "x", delay_ms: 60_000 }] } }],
  };
  const body = { prompt: "?", plan };
  const stream = await preamp.send("POST /v1/runs", body, { accept: "text/event-stream" });
  const text = stream.text();
  const waiting = preamp.send("POST /v1/runs", body);
  while ((await bodyOf(await preamp.send("GET /v1/runs"), "RunList")).data.length < 2);
  await preamp.drain(1_000);
  assertEquals(/\nevent: run:end\ndata: .*"status":"cancelled".*\n\n$/.test(await text), true);
  assertEquals((await bodyOf(await waiting, "Run")).status, "cancelled");
});

Deno.test("a closed server answers 503, whether it was used before or not", async () => {
  for (const is_used of [false, true]) {
    const preamp = open();
    if (is_used) assertEquals((await preamp.send("GET /v1/runs")).status, 200);
    await preamp.close();
    const started = await preamp.send("POST /v1/runs", { prompt: "?", plan: PLAN });
    assertEquals(await problemOf(started), "503 draining");
    assertEquals(await problemOf(await preamp.send("GET /v1/runs")), "503 draining");
    assertEquals((await preamp.send("GET /readyz")).status, 503);
  }
});
