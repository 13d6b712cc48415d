/** Tests of the API under a path prefix in another application. */
import { Hono } from "hono";
import { assertEquals, assertStringIncludes, assertThrows } from "../assert.ts";
import { createPreamp, type Preamp } from "../../src/server/mod.ts";

const PLAN = {
  session: { orchestrator: "loop-basic", context: "context-simple" },
  providers: [{ module: "provider-mock", config: { response: "Hello." } }],
};

/** Ways to mount the API. */
const MOUNTED: Readonly<
  Record<string, (preamp: Preamp) => (request: Request) => Response | Promise<Response>>
> = {
  "Hono's mount()": (preamp) => new Hono().mount("/agents", preamp.fetch).fetch,
  "a route of Hono": (preamp) =>
    new Hono().all("/agents", (call) => preamp.fetch(call.req.raw))
      .all("/agents/*", (call) => preamp.fetch(call.req.raw)).fetch,
  "fetch": (preamp) => preamp.fetch,
};

for (const [way, mount] of Object.entries(MOUNTED)) {
  Deno.test(`basePath is part of every URL in responses, mounted by ${way}`, async () => {
    const preamp = createPreamp({ authenticate: null, basePath: "/agents" });
    const fetch = mount(preamp);
    const send = async (path: string, init: RequestInit = {}) =>
      await fetch(new Request(`http://localhost${path}`, init));
    try {
      const started = await send("/agents/v1/runs", {
        method: "POST",
        headers: { "content-type": "application/json", prefer: "respond-async" },
        body: JSON.stringify({ prompt: "?", plan: PLAN }),
      });
      const { id, session_id, events_url } = await started.json();
      assertEquals([started.status, started.headers.get("location")], [202, `/agents/v1/runs/${id}`]);
      assertEquals(events_url, `/agents/v1/runs/${id}/events`);
      const log = await (await send(events_url, { headers: { accept: "text/event-stream" } })).text();
      assertStringIncludes(log, "event: run:end");
      assertStringIncludes(log, `"events_url":"${events_url}"`);
      assertEquals((await (await send(`/agents/v1/runs/${id}`)).json()).events_url, events_url);
      const replayed = await send(`/agents/v1/runs/${id}/replay`, { method: "POST" });
      assertEquals(await replayed.json(), { equal: true });
      const fork = await send(`/agents/v1/sessions/${session_id}/fork`, { method: "POST" });
      assertEquals(fork.headers.get("location"), `/agents/v1/sessions/${(await fork.json()).id}`);
      const { servers } = await (await send("/agents/openapi.json")).json();
      assertEquals(servers, [{ url: "/agents" }]);
      for (const path of ["/agents", "/agents/"]) {
        const introduction = await (await send(path)).text();
        assertStringIncludes(introduction, "curl -N http://localhost/agents/v1/runs");
        assertStringIncludes(introduction, "http://localhost/agents/openapi.json");
        const page = await (await send(path, { headers: { accept: "text/html" } })).text();
        const base = new URL(/<base href="(.*?)">/.exec(page)![1]!, "http://localhost/");
        const file = new URL(/ src="(.*?)"/.exec(page)![1]!, base).pathname;
        assertEquals((await send(file)).headers.get("content-type"), "text/javascript; charset=utf-8", file);
      }
      assertEquals((await send("/agents/healthz")).status, 200);
      assertEquals((await send("/agents/v1/plans/check")).status, 405);
      assertEquals((await send("/agents/nowhere")).status, 404);
      assertEquals((await send("/agentsv1/runs")).status, 404);
    } finally {
      await preamp.close();
    }
  });
}

Deno.test("basePath may end with a slash; / means no prefix", async () => {
  for (const [basePath, url] of [["/agents/", "/agents"], ["/a/b", "/a/b"], ["/", "/"], ["", "/"]] as const) {
    await using preamp = createPreamp({ authenticate: null, basePath });
    const response = await preamp.fetch(new Request("http://localhost/openapi.json"));
    assertEquals((await response.json()).servers, [{ url }]);
  }
});

for (
  const basePath of [
    "agents",
    "//agents",
    "/a b",
    "/a?b",
    "/a#b",
    "/a/../b",
    "/a//",
    "/:id",
    "/*",
    "http://localhost/a",
  ]
) {
  Deno.test(`createPreamp() refuses basePath ${JSON.stringify(basePath)}`, () => {
    assertThrows(() => createPreamp({ basePath }), TypeError, "begin with a slash");
  });
}
