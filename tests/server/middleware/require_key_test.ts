import { assert, assertEquals } from "../../assert.ts";
import type { Authenticate } from "../../../src/server/middleware/require_key.ts";
import { ROUTES } from "../../../src/server/route_table.ts";
import { problemOf, testApp } from "../../support/http.ts";

async function bodyWithoutId(response: Response) {
  const { error: { request_id: _, ...error }, ...rest } = await response.json();
  return { ...rest, error };
}

Deno.test("a missing, a malformed and an unknown key get the same response", async () => {
  const { send, created } = testApp();
  const answers = [];
  for (
    const authorization of [
      "",
      "Bearer",
      "Bearer ",
      "Bearer nope",
      "Basic k1",
      "k1",
      "Bearer k1 k1",
      "Bearer k1,",
    ]
  ) {
    const response = await send("POST /v1/runs", { headers: { authorization }, body: { prompt: "answer" } });
    assertEquals([response.status, response.headers.get("www-authenticate")], [401, 'Bearer realm="preamp"']);
    answers.push(await bodyWithoutId(response));
  }
  assertEquals(new Set(answers.map((answer) => JSON.stringify(answer))).size, 1);
  assertEquals(answers[0].error.code, "unauthorized");
  assertEquals(created.length, 0);
});

Deno.test("authenticate is called once for each request", async () => {
  const keys: string[] = [];
  const { send } = testApp({ authenticate: (key) => (keys.push(key), null) });
  for (const authorization of ["", "Bearer x", "Basic y"]) {
    await send("GET /v1/runs", { headers: { authorization } });
  }
  assertEquals(keys, ["", "x", ""]);
});

Deno.test("an empty key is refused even if authenticate accepts it", async () => {
  const { send } = testApp({ authenticate: () => ({ name: "key:x", namespace: "x", origin: "caller" }) });
  assertEquals((await send("GET /v1/runs", { headers: { authorization: "Bearer " } })).status, 401);
});

Deno.test("authenticate may return a promise, and only a caller is let in", async () => {
  const caller = { name: "key:x", namespace: "x", origin: "caller" };
  const wrong = [true, "x", {}, [caller], { ...caller, name: "" }, { ...caller, namespace: 5 }];
  const without_rights = [{ ...caller, origin: undefined }, { ...caller, origin: "root" }, {
    ...caller,
    policy: 5,
  }];
  const expected: [found: unknown, status: number][] = [
    [caller, 200],
    [{ ...caller, origin: "operator" }, 200],
    [null, 401],
    [undefined, 401],
    ...[...wrong, ...without_rights].map((found): [unknown, number] => [found, 500]),
  ];
  for (const [found, status] of expected) {
    for (const answer of [() => found, () => Promise.resolve(found)]) {
      const { send } = testApp({ authenticate: answer as Authenticate });
      assertEquals((await send("GET /v1/runs")).status, status, JSON.stringify(found));
    }
  }
  const hanging = testApp({ authenticate: () => new Promise(() => {}) });
  const answer = hanging.send("GET /v1/runs");
  await hanging.clock.advance(10_000);
  assertEquals([(await answer).status, hanging.clock.pending], [500, 0]);
  const failing = testApp({ authenticate: () => Promise.reject(new Error("no database")) });
  assertEquals((await failing.send("GET /v1/runs")).status, 500);
  assertEquals(failing.created, []);
});

Deno.test("the scheme of the key is case-insensitive", async () => {
  const { send } = testApp();
  assertEquals((await send("GET /v1/runs", { headers: { authorization: "bEARER  k1" } })).status, 200);
});

Deno.test("every route except open ones needs a key, also for a wrong method", async () => {
  const { send } = testApp();
  const headers = { authorization: "" };
  for (const { method, path, open } of ROUTES) {
    const response = await send(`${method} ${path.replaceAll(/[{}]/g, "")}`, { headers });
    assertEquals(response.status === 401, !open, `${method} ${path}`);
    await response.body?.cancel();
  }
  assertEquals((await send("PUT /v1/runs", { headers })).status, 401);
  assertEquals(
    ROUTES.filter(({ open }) => open).map(({ path }) => path),
    [
      "/healthz",
      "/readyz",
      "/openapi.json",
      "/docs",
      "/docs/search.json",
      "/docs/{page}",
      "/llms.txt",
      "/",
      "/page/{file}",
    ],
  );
});

Deno.test("an unknown path is 404 with and without a key", async () => {
  const { send } = testApp();
  for (const path of ["/v2", "/v1/metrics", "/v1/plans/nothing/more", "/v1/runs/x/y", "/favicon.ico"]) {
    for (const method of ["GET", "POST", "OPTIONS"]) {
      for (const authorization of ["", "Bearer k1", "Bearer wrong"]) {
        const response = await send(`${method} ${path}`, { headers: { authorization } });
        assertEquals(await problemOf(response), "404 not_found", `${method} ${path} ${authorization}`);
      }
    }
  }
});

Deno.test("the Authorization header is ignored when keys are not checked", async () => {
  const { send, created } = testApp({ authenticate: null });
  await send("POST /v1/runs", { body: { prompt: "answer" }, headers: { authorization: "Bearer whatever" } });
  assertEquals(created[0]?.caller, {
    name: "anonymous",
    namespace: "local",
    origin: "caller",
  });
});

Deno.test("the key is checked before the body is read", async () => {
  const { send } = testApp();
  let pulled = false;
  const body = new ReadableStream({
    pull() {
      pulled = true;
    },
  }, { highWaterMark: 0 });
  assertEquals((await send("POST /v1/runs", { body, headers: { authorization: "Bearer no" } })).status, 401);
  assert(!pulled);
});
