/** Tests what the client of a request decides: the log, rates without keys, links and the host check. */
import type { ConnectionInfo } from "../../../src/server/context.ts";
import { assertEquals, assertStringIncludes } from "../../assert.ts";
import { problemOf, type TestApp, testApp } from "../../support/http.ts";

const PROXY: ConnectionInfo = { remoteAddr: { transport: "tcp", hostname: "10.0.0.1", port: 1 } };
const STRANGER: ConnectionInfo = { remoteAddr: { transport: "tcp", hostname: "192.0.2.7", port: 1 } };

function get(
  { app }: TestApp,
  path: string,
  headers: Record<string, string>,
  connection = PROXY,
): Promise<Response> {
  return app.fetch(
    new Request(`http://agents.internal${path}`, { headers: { host: "agents.internal", ...headers } }),
    connection,
  );
}

Deno.test("the address of a client is logged: of its connection, or from a trusted proxy", async () => {
  const test = testApp({ hosts: "any", trusted_proxies: ["10.0.0.0/8"] });
  const headers = { "x-forwarded-for": "192.0.2.1" };
  for (const connection of [PROXY, STRANGER]) {
    await (await get(test, "/healthz", headers, connection)).body?.cancel();
  }
  await (await test.send("GET /healthz")).body?.cancel();
  assertEquals(test.logged.map(({ client }) => client), ["192.0.2.1", "192.0.2.7", undefined]);
});

Deno.test("without keys, each address has rates of its own", async () => {
  const bounds = () => ({ requests_per_minute: 1, runs_per_minute: 1, max_body_bytes: 100 });
  const test = testApp({ hosts: "any", authenticate: null, trusted_proxies: ["10.0.0.1"], bounds });
  const statuses = [];
  for (const address of ["192.0.2.1", "192.0.2.2", "192.0.2.1"]) {
    const response = await get(test, "/v1/modules", { forwarded: `for=${address}` });
    statuses.push(response.status);
    await response.body?.cancel();
  }
  assertEquals(statuses, [200, 200, 429]);
});

Deno.test("links have the scheme and host that a trusted proxy names", async () => {
  const test = testApp({ hosts: "any", trusted_proxies: ["10.0.0.1"], basePath: "/agents" });
  const headers = { forwarded: 'for=192.0.2.1;proto=https;host="agents.example:8443"' };
  const text = await (await get(test, "/", headers)).text();
  assertStringIncludes(text, "https://agents.example:8443/agents/openapi.json");
  const other = await (await get(test, "/", headers, STRANGER)).text();
  assertStringIncludes(other, "http://agents.internal/agents/openapi.json");
});

Deno.test("a forwarded host is checked as Host is, and does not replace a foreign Host", async () => {
  const test = testApp({ hosts: ["agents.internal"], trusted_proxies: ["10.0.0.1"] });
  const outcome = async (headers: Record<string, string>) => {
    const response = await get(test, "/healthz", headers);
    return response.status === 200 ? "200" : await problemOf(response);
  };
  assertEquals(await outcome({ "x-forwarded-host": "localhost" }), "200");
  assertEquals(await outcome({ "x-forwarded-host": "evil.example" }), "403 forbidden");
  assertEquals(await outcome({ host: "evil.example", "x-forwarded-host": "localhost" }), "403 forbidden");
});

Deno.test("with any Host, Origin must be the host that a trusted proxy names", async () => {
  const test = testApp({ hosts: "any", trusted_proxies: ["10.0.0.1"] });
  const headers = { origin: "https://agents.example", "x-forwarded-host": "agents.example" };
  assertEquals((await get(test, "/healthz", headers)).status, 200);
  assertEquals((await get(test, "/healthz", headers, STRANGER)).status, 403);
});
