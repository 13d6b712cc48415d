import { assertEquals, assertMatch, assertStringIncludes } from "../assert.ts";
import { PreampError } from "../../src/sdk/errors.ts";
import { ROUTES } from "../../src/server/route_table.ts";
import { until } from "../support/clock.ts";
import { bodyOf, problemOf, testApp } from "../support/http.ts";

Deno.test("an unknown path is 404 and a wrong method 405 with Allow", async () => {
  const { send } = testApp();
  const unknown = [
    "/v1",
    "/v1/runs/",
    "/v1/runs/x/y",
    "/v1/plans/nothing/more",
    "/docs/",
    "/v1/metrics",
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
  const { send } = testApp();
  const { id } = await bodyOf(await send("POST /v1/runs", { body: { prompt: "answer" } }), "Run");
  const paths = ROUTES.filter(({ method }) => method === "GET").map(({ path }) => path.replace("{id}", id));
  for (const path of [...paths, "/v1/runs/run_9", "/nowhere"]) {
    for (const headers of [{}, { "accept-encoding": "gzip" }, { accept: "text/event-stream" }]) {
      const [head, get] = [await send(`HEAD ${path}`, { headers }), await send(`GET ${path}`, { headers })];
      assertEquals([head.status, await head.text()], [get.status, ""], path);
      const text = new TextDecoder().decode(await get.bytes());
      if (!get.headers.has("content-encoding") && get.headers.get("content-type") !== "text/event-stream") {
        get.headers.set("content-length", String(new TextEncoder().encode(text).length)); // as Deno sends it
      }
      get.headers.set("preamp-request-id", head.headers.get("preamp-request-id") ?? "");
      if (path === "/metrics") { // the second request has counted the first
        for (const { headers } of [head, get]) headers.delete("content-length");
      }
      assertEquals([...head.headers], [...get.headers], path);
    }
  }
  assertEquals((await send("HEAD /v1/plans/check")).status, 405);
});

Deno.test("every text or JSON response ends with a newline", async () => {
  const { send } = testApp();
  const { id } = await bodyOf(await send("POST /v1/runs", { body: { prompt: "answer" } }), "Run");
  for (const { method, path } of ROUTES) {
    const route = `${method} ${path.replace("{id}", id).replace("{approval_id}", "apr_1")}`;
    const text = await (await send(route, method === "GET" ? {} : { body: { prompt: "answer" } })).text();
    assertEquals(text.at(-1) ?? "\n", "\n", route);
  }
});

Deno.test("an unexpected error is 500 internal without its message, which is logged under the request id", async () => {
  let failure: unknown;
  const rejecting = testApp({}, ({ plans }) => ({
    plans: { ...plans, list: () => Promise.reject(failure) },
  }));
  const authenticate = () => {
    throw failure;
  };
  for (
    failure of [
      new Error("/srv/secret: sk-123"),
      new PreampError("internal", "sk-123"),
      "sk-123",
      null,
      undefined,
      Object.create(null),
    ]
  ) {
    for (const { send, logged } of [rejecting, testApp({ authenticate })]) {
      const response = await send("GET /v1/plans");
      const text = await response.text();
      assertEquals([response.status, text.includes("sk-123") || text.includes("/srv")], [500, false]);
      const record = logged.at(-1);
      assertEquals([record?.level, record?.code], ["error", "internal"]);
      assertEquals(JSON.parse(text).error.request_id, record?.request_id);
      assertEquals(response.headers.get("preamp-request-id"), record?.request_id);
    }
  }
  assertStringIncludes(rejecting.logged[0]?.error?.message ?? "", "sk-123");
});

/** Creates an app whose drain ends no run, as when no run reaches an end in time. */
function drainedApp() {
  const graces: number[] = [];
  const test = testApp({}, () => ({ drain: (grace_ms) => Promise.resolve(void graces.push(grace_ms)) }));
  return { ...test, graces };
}

Deno.test("drain() ends streams with a retry hint and answers waiting requests with 202", async () => {
  const { app, send, start, created, readers, clock, graces } = drainedApp();
  const accept = "text/event-stream";
  const stream = await send("POST /v1/runs", { body: { prompt: "hang" }, headers: { accept } });
  const text = stream.text();
  const waiting = send("POST /v1/runs", { body: { prompt: "hang" } });
  const plain = send("POST /v1/runs", { body: { prompt: "hang" }, headers: { accept: "text/plain" } });
  await until(() => created.length === 3);
  await start("hang"); // answered once the runs before it exist
  const drained = app.drain(3000);
  await clock.advance(400); // none of these runs ends in the drain
  await drained;
  assertMatch(await text, /^retry: 1000\n\n[^]*event: run:start[^]*retry: 1000\n\n$/);
  const run = await bodyOf((await waiting).clone(), "Run");
  assertEquals([(await waiting).status, (await waiting).headers.get("location")], [
    202,
    `/v1/runs/${run.id}`,
  ]);
  assertEquals([(await plain).status, (await plain).headers.get("preamp-run-status")], [502, "running"]);
  assertEquals([graces, readers.open, run.status], [[3000], 0, "running"]);
});

Deno.test("drain() ends later streams and waits at once", async () => {
  const { app, send, readers } = drainedApp();
  await app.drain(0);
  const accept = "text/event-stream";
  const stream = await send("POST /v1/runs", { body: { prompt: "hang" }, headers: { accept } });
  assertEquals(await stream.text(), "retry: 1000\n\n");
  assertEquals((await send("POST /v1/runs", { body: { prompt: "hang" } })).status, 202);
  assertEquals(readers.open, 0);
});
