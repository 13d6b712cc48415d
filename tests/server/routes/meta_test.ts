import { assertEquals, assertMatch, assertStringIncludes } from "../../assert.ts";
import { bodyOf, testApp } from "../../support/http.ts";

Deno.test("/healthz answers 200 while /readyz answers 503", async () => {
  const { app, send } = testApp();
  assertEquals((await bodyOf(await send("GET /healthz"), "Health")).status, "ok");
  assertEquals((await send("GET /readyz")).status, 200);
  await app.drain(0);
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
  assertMatch(page.headers.get("vary")!, /\baccept$/);
  assertStringIncludes(await page.text(), '<a href="/openapi.json">');
});
