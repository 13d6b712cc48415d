import { assertEquals } from "../../assert.ts";
import { problemOf, type TestApp, testApp } from "../../support/http.ts";

const local = testApp({ hosts: ["Preamp.Example.", "::2"] });
const anywhere = testApp({ hosts: "any" });

async function outcome({ app }: TestApp, headers: Record<string, string>): Promise<string> {
  const request = new Request("http://localhost:8484/healthz", { headers });
  const response = await app.fetch(request, { remoteAddr: {} });
  return response.status === 200 ? "200" : await problemOf(response);
}

for (
  const [headers, expected] of [
    [{ host: "127.0.0.1:8484" }, "200"],
    [{ host: "localhost" }, "200"],
    [{ host: "LocalHost.:1" }, "200"],
    [{ host: "[::1]:8484" }, "200"],
    [{ host: "[::2]" }, "200"],
    [{ host: "preamp.example:443" }, "200"],
    [{ host: "evil.example" }, "403 forbidden"],
    [{ host: "localhost.evil.example" }, "403 forbidden"],
    [{ host: "127.0.0.1.evil.example:80" }, "403 forbidden"],
    [{ host: "evil.example:127.0.0.1" }, "400 request_invalid"],
    [{ host: "" }, "400 request_invalid"],
    [{ host: "localhost, localhost" }, "400 request_invalid"],
    [{ host: "localhost", "content-length": "5", "transfer-encoding": "chunked" }, "400 request_invalid"],
    [{}, "400 request_invalid"],
    [{ host: "localhost", origin: "http://localhost:3000" }, "200"],
    [{ host: "localhost", origin: "https://preamp.example" }, "200"],
    [{ host: "localhost", origin: "http://[::1]:8484" }, "200"],
    [{ host: "localhost", origin: "https://evil.example" }, "403 forbidden"],
    [{ host: "localhost", origin: "http://localhost.evil.example" }, "403 forbidden"],
    [{ host: "localhost", origin: "http://localhost@evil.example" }, "403 forbidden"],
    [{ host: "localhost", origin: "null" }, "403 forbidden"],
    [{ host: "localhost", origin: "file://" }, "403 forbidden"],
    [{ host: "localhost", origin: "" }, "403 forbidden"],
  ] as [Record<string, string>, string][]
) {
  Deno.test(`checkHost() answers ${expected} to ${JSON.stringify(headers)}`, async () => {
    assertEquals(await outcome(local, headers), expected);
  });
}

Deno.test("a Host that is no host with an optional port is 400, whatever the hosts and the route", async () => {
  const wrong = [
    "",
    "a b",
    "a/b",
    "a/v1/runs?",
    "a?b",
    "a#b",
    "u@a",
    "a\\b",
    "http://a",
    "[::1",
    "[::1]x",
    ":80",
  ];
  for (const host of [...wrong, "a:99999", "a:b", "256.1.1.1", "a%2fb", "a\u00e9", "<a>", "a".repeat(300)]) {
    for (const server of [local, anywhere]) {
      assertEquals(await outcome(server, { host }), "400 request_invalid", host);
      assertEquals(
        await problemOf(await server.send("POST /v1/runs", { headers: { host } })),
        "400 request_invalid",
      );
    }
  }
  for (const host of ["a", "a.example.:8080", "1.2.3.4:1", "[::1]", "[2001:db8::1]:443", "a_b.example"]) {
    assertEquals(await outcome(anywhere, { host }), "200", host);
  }
});

Deno.test("checkHost() compares Origin with Host when hosts is any", async () => {
  assertEquals(await outcome(anywhere, { host: "a.example" }), "200");
  assertEquals(await outcome(anywhere, { host: "A.example:8", origin: "http://a.example:8" }), "200");
  assertEquals(await outcome(anywhere, { host: "a.example", origin: "https://b.example" }), "403 forbidden");
  assertEquals(await outcome(anywhere, { host: "a.example", origin: "null" }), "403 forbidden");
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
