import { assertEquals, assertThrows } from "../../assert.ts";
import { allowOrigins } from "../../../src/server/middleware/cors.ts";
import { problemOf, testApp } from "../../support/http.ts";

const APP = "https://app.example.com";
const EXPOSED = "Location,Preamp-Request-Id,Preamp-Run-Id,Preamp-Run-Status,Preference-Applied,Retry-After";

function corsHeaders({ headers }: Response): Record<string, string> {
  return Object.fromEntries(
    [...headers].filter(([name]) => name.startsWith("access-control") || name === "vary"),
  );
}

for (const hosts of [[], "any"] as const) {
  const { send } = testApp({ hosts, cors: { origins: [APP] } });

  Deno.test(`cors.origins allows a page to send a request and read the response, with hosts ${JSON.stringify(hosts)}`, async () => {
    const headers = { host: "localhost:8484", origin: APP };
    const created = await send("POST /v1/runs", { headers, body: { prompt: "answer" } });
    assertEquals([created.status, corsHeaders(created)], [200, {
      "access-control-allow-origin": APP,
      "access-control-expose-headers": EXPOSED,
      vary: "Origin",
    }]);
    await created.body?.cancel();
  });

  Deno.test(`a preflight request of an allowed origin needs no key, with hosts ${JSON.stringify(hosts)}`, async () => {
    const preflight = {
      host: "localhost:8484",
      origin: APP,
      authorization: "",
      "access-control-request-method": "POST",
      "access-control-request-headers": "authorization,content-type",
    };
    const response = await send("OPTIONS /v1/runs", { headers: preflight });
    assertEquals([response.status, response.body, corsHeaders(response)], [204, null, {
      "access-control-allow-headers": "Authorization,Content-Type,Idempotency-Key,Last-Event-ID,Prefer",
      "access-control-allow-methods": "GET,HEAD,POST,PUT,DELETE",
      "access-control-allow-origin": APP,
      "access-control-expose-headers": EXPOSED,
      "access-control-max-age": "600",
      vary: "Origin, Access-Control-Request-Headers",
    }]);
  });

  Deno.test(`cors.origins allows no other origin, with hosts ${JSON.stringify(hosts)}`, async () => {
    for (
      const origin of [
        "https://evil.example",
        `${APP}:8443`,
        "http://app.example.com",
        "null",
        `${APP}.evil.example`,
      ]
    ) {
      for (const route of ["OPTIONS /v1/runs", "GET /v1/runs", "GET /healthz"]) {
        const headers = { host: "localhost:8484", origin, "access-control-request-method": "POST" };
        const response = await send(route, { headers });
        assertEquals(corsHeaders(response), { vary: "Origin" });
        assertEquals(await problemOf(response), "403 forbidden");
      }
    }
  });
}

Deno.test("an allowed page can read errors: a missing key, an unknown path", async () => {
  const { send } = testApp({ cors: { origins: [APP] } });
  for (const [route, status] of [["GET /v1/runs", 401], ["GET /nowhere", 404]] as const) {
    const response = await send(route, { headers: { origin: APP, authorization: "" } });
    assertEquals([response.status, corsHeaders(response)["access-control-allow-origin"]], [status, APP]);
    await response.body?.cancel();
  }
});

Deno.test("an allowed origin does not allow a foreign Host", async () => {
  const { send } = testApp({ cors: { origins: [APP] } });
  const response = await send("GET /healthz", { headers: { host: "evil.example", origin: APP } });
  assertEquals(await problemOf(response), "403 forbidden");
});

Deno.test("a request without Origin is answered with Vary: Origin", async () => {
  const { send } = testApp({ cors: { origins: [APP] } });
  const response = await send("GET /healthz");
  assertEquals([response.status, corsHeaders(response)], [200, { vary: "Origin" }]);
  await response.body?.cancel();
});

Deno.test("OPTIONS without preflight headers is 405", async () => {
  const { send } = testApp({ cors: { origins: [APP] } });
  assertEquals((await send("OPTIONS /v1/runs", { headers: { origin: APP } })).status, 405);
});

for (
  const origin of [
    "*",
    "null",
    "app.example.com",
    `${APP}/`,
    "HTTPS://app.example.com",
    "ftp://a.example",
    "",
  ]
) {
  Deno.test(`allowOrigins() refuses ${JSON.stringify(origin)}`, () => {
    assertThrows(() => allowOrigins([origin]), TypeError, "scheme, host and port");
  });
}
