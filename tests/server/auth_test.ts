import { assert, assertEquals } from "../assert.ts";
import { createHostCheck } from "../../src/server/auth.ts";
import { ROUTES } from "../../src/server/route_table.ts";
import { problemOf, testApp } from "./client.ts";

async function bodyWithoutId(response: Response) {
  const { error: { request_id: _, ...error }, ...rest } = await response.json();
  return { ...rest, error };
}

Deno.test("a missing, a malformed and an unknown key get the same response", async () => {
  const { send, runtime } = testApp();
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
  assertEquals(runtime.runs.created.length, 0);
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
    ["/healthz", "/readyz", "/openapi.json", "/docs", "/docs/{page}", "/llms.txt", "/"],
  );
});

Deno.test("an unknown path is 404 with and without a key", async () => {
  const { send } = testApp();
  for (const path of ["/v2", "/metrics", "/v1/plans/nothing", "/v1/runs/x/y", "/favicon.ico"]) {
    for (const method of ["GET", "POST", "OPTIONS"]) {
      for (const authorization of ["", "Bearer k1", "Bearer wrong"]) {
        const response = await send(`${method} ${path}`, { headers: { authorization } });
        assertEquals(await problemOf(response), "404 not_found", `${method} ${path} ${authorization}`);
      }
    }
  }
});

Deno.test("the Authorization header is ignored when keys are not checked", async () => {
  const { send, runtime } = testApp({ authenticate: null });
  await send("POST /v1/runs", { body: { prompt: "answer" }, headers: { authorization: "Bearer whatever" } });
  assertEquals(runtime.runs.created[0]?.caller, {
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

const local = createHostCheck(["Preamp.Example.", "::2"]);
const anywhere = createHostCheck("any");

function request(headers: Record<string, string>) {
  return new Request("http://localhost:8484/", { headers });
}

function outcome(check: typeof local, headers: Record<string, string>): string {
  try {
    check(request(headers), true);
    return "ok";
  } catch (error) {
    return (error as { code: string }).code; // a PreampError, or the test fails on undefined
  }
}

for (
  const [headers, expected] of [
    [{ host: "127.0.0.1:8484" }, "ok"],
    [{ host: "localhost" }, "ok"],
    [{ host: "LocalHost.:1" }, "ok"],
    [{ host: "[::1]:8484" }, "ok"],
    [{ host: "[::2]" }, "ok"],
    [{ host: "preamp.example:443" }, "ok"],
    [{ host: "evil.example" }, "forbidden"],
    [{ host: "localhost.evil.example" }, "forbidden"],
    [{ host: "127.0.0.1.evil.example:80" }, "forbidden"],
    [{ host: "evil.example:127.0.0.1" }, "forbidden"],
    [{ host: "" }, "forbidden"],
    [{}, "request_invalid"],
    [{ host: "localhost", origin: "http://localhost:3000" }, "ok"],
    [{ host: "localhost", origin: "https://preamp.example" }, "ok"],
    [{ host: "localhost", origin: "http://[::1]:8484" }, "ok"],
    [{ host: "localhost", origin: "https://evil.example" }, "forbidden"],
    [{ host: "localhost", origin: "http://localhost.evil.example" }, "forbidden"],
    [{ host: "localhost", origin: "http://localhost@evil.example" }, "forbidden"],
    [{ host: "localhost", origin: "null" }, "forbidden"],
    [{ host: "localhost", origin: "file://" }, "forbidden"],
    [{ host: "localhost", origin: "" }, "forbidden"],
  ] as [Record<string, string>, string][]
) {
  Deno.test(`createHostCheck() returns ${expected} for ${JSON.stringify(headers)}`, () => {
    assertEquals(outcome(local, headers), expected);
  });
}

Deno.test("createHostCheck() compares Origin with Host when hosts is any", () => {
  assertEquals(outcome(anywhere, { host: "a.example" }), "ok");
  assertEquals(outcome(anywhere, { host: "A.example:8", origin: "http://a.example:8" }), "ok");
  assertEquals(outcome(anywhere, { host: "a.example", origin: "https://b.example" }), "forbidden");
  assertEquals(outcome(anywhere, { host: "a.example", origin: "null" }), "forbidden");
});

Deno.test("a foreign Host or Origin is 403 forbidden on every route, including open ones", async () => {
  const { send } = testApp();
  for (const route of ["GET /healthz", "GET /", "GET /v1/runs", "POST /v1/runs", "GET /nowhere"]) {
    assertEquals(await problemOf(await send(route, { headers: { host: "evil.example" } })), "403 forbidden");
    assertEquals(
      await problemOf(await send(route, { headers: { origin: "https://evil.example" } })),
      "403 forbidden",
    );
  }
});

Deno.test("with keys and any Host, a foreign Origin is 403 forbidden on every route, even with a valid key", async () => {
  const { send } = testApp({ hosts: "any" });
  const host = "agents.example";
  for (const route of ["GET /healthz", "GET /", "GET /v1/runs", "POST /v1/runs", "OPTIONS /v1/runs"]) {
    for (const origin of ["https://evil.example", "https://agents.example:8443", "null"]) {
      assertEquals(await problemOf(await send(route, { headers: { host, origin } })), "403 forbidden");
    }
  }
  for (const headers of [{ host }, { host, origin: `https://${host}` }]) {
    assertEquals((await send("GET /v1/runs", { headers })).status, 200);
    assertEquals((await send("GET /v1/runs", { headers: { ...headers, authorization: "" } })).status, 401);
  }
});

for (const hosts of [["agents.example"], "any"] as const) {
  Deno.test(`a connection without Host is 400 with hosts ${hosts}`, async () => {
    const { app } = testApp({ hosts });
    const response = await app.fetch(new Request("http://localhost/healthz"), { remoteAddr: {} });
    assertEquals(await problemOf(response), "400 request_invalid");
  });

  Deno.test(`a request of HTTP/2 has its host in the URL, with hosts ${hosts}`, async () => {
    const { app } = testApp({ hosts });
    const over = (url: string) => app.fetch(new Request(url), { remoteAddr: {} });
    assertEquals((await over("https://agents.example/healthz")).status, 200);
    assertEquals((await over("https://localhost:8443/healthz")).status, 200);
    assertEquals((await over("https://evil.example/healthz")).status, hosts === "any" ? 200 : 403);
  });
}

Deno.test("without cors no response has a CORS header", async () => {
  const { send } = testApp();
  const headers = { origin: "http://localhost:3000", "access-control-request-method": "POST" };
  for (const route of ["OPTIONS /v1/runs", "GET /v1/runs", "GET /healthz"]) {
    const response = await send(route, { headers });
    assertEquals([...response.headers.keys()].filter((name) => name.startsWith("access-control")), []);
    await response.body?.cancel();
  }
});
