import { createHttpApp, type Routes } from "../../src/server/http_app.ts";
import { assertEquals } from "../assert.ts";

const ROUTES: Routes = {
  answer: (_, { path }) => new Response(path),
  drain: () => Promise.resolve(),
};

function get(path: string, method = "GET"): Request {
  return new Request(`http://localhost${path}`, { method });
}

Deno.test("createHttpApp() answers /healthz before routes are loaded and queues other requests", async () => {
  const opened = Promise.withResolvers<Routes>();
  let loads = 0;
  const { fetch } = createHttpApp({ routes: () => (loads++, opened.promise) });
  const health = await fetch(get("/healthz?deep=1"));
  assertEquals([health.status, await health.json(), loads], [200, { status: "ok" }, 0]);
  assertEquals((await fetch(get("/healthz", "HEAD"))).status, 200);
  const waiting = [fetch(get("/readyz")), fetch(get("/v1/runs"))];
  opened.resolve(ROUTES);
  const texts = await Promise.all(waiting.map(async (response) => (await response).text()));
  assertEquals([texts, loads], [["/readyz", "/v1/runs"], 1]);
  assertEquals(await (await fetch(get("/healthz", "POST"))).text(), "/healthz"); // the routes answer other methods
});

Deno.test("createHttpApp() answers 500 and logs the error when loading routes fails, and retries", async () => {
  const logged: unknown[] = [];
  let broken = true;
  const { fetch } = createHttpApp({
    routes: () => broken ? Promise.reject(new Error("no such file")) : Promise.resolve(ROUTES),
    log: ({ status, code, error }) => logged.push([status, code, error?.message]),
  });
  assertEquals((await fetch(get("/readyz"))).status, 500);
  broken = false;
  assertEquals(await (await fetch(get("/readyz"))).text(), "/readyz");
  assertEquals(logged, [[500, "internal", "no such file"], [200, undefined, undefined]]);
});

Deno.test("createHttpApp() loads its routes for drain() and for open()", async () => {
  const done: unknown[] = [];
  const routes = { ...ROUTES, drain: (ms: number) => Promise.resolve(void done.push(ms)) };
  const open = () => Promise.resolve(void done.push("opened")).then(() => routes);
  await createHttpApp({ routes: open }).drain(5);
  const { open: opening, drain } = createHttpApp({ routes: open });
  await opening();
  await drain(6);
  assertEquals(done, ["opened", 5, "opened", 6]);
});
