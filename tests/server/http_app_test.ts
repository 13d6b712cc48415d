import { createHttpApp, type Routes } from "../../src/server/http_app.ts";
import { assertEquals } from "../assert.ts";

const ROUTES: Routes = {
  answer: (_, { path }) => new Response(path),
  drain: () => Promise.resolve(),
};

function get(path: string, method = "GET"): Request {
  return new Request(`http://localhost${path}`, { method });
}

Deno.test("createPass() says that the process is up before its routes are there, and lets all else wait for them", async () => {
  const opened = Promise.withResolvers<Routes>();
  let asked = 0;
  const { fetch } = createHttpApp({ routes: () => (asked++, opened.promise) });
  const health = await fetch(get("/healthz?deep=1"));
  assertEquals([health.status, await health.json(), asked], [200, { status: "ok" }, 0]);
  assertEquals((await fetch(get("/healthz", "HEAD"))).status, 200);
  const waiting = [fetch(get("/readyz")), fetch(get("/v1/runs"))];
  opened.resolve(ROUTES);
  const texts = await Promise.all(waiting.map(async (one) => (await one).text()));
  assertEquals([texts, asked], [["/readyz", "/v1/runs"], 1]);
  assertEquals(await (await fetch(get("/healthz", "POST"))).text(), "/healthz"); // the routes say what is wrong with it
});

Deno.test("createPass() answers 500 while its routes cannot be had, logs why, and tries again", async () => {
  const told: unknown[] = [];
  let broken = true;
  const { fetch } = createHttpApp({
    routes: () => broken ? Promise.reject(new Error("no such file")) : Promise.resolve(ROUTES),
    log: ({ status, code, error }) => told.push([status, code, error?.message]),
  });
  assertEquals((await fetch(get("/readyz"))).status, 500);
  broken = false;
  assertEquals(await (await fetch(get("/readyz"))).text(), "/readyz");
  assertEquals(told, [[500, "internal", "no such file"], [200, undefined, undefined]]);
});

Deno.test("createPass() opens its routes to drain them, and beforehand when it is told to", async () => {
  const done: unknown[] = [];
  const routes = { ...ROUTES, drain: (ms: number) => Promise.resolve(void done.push(ms)) };
  const open = () => Promise.resolve(void done.push("opened")).then(() => routes);
  await createHttpApp({ routes: open }).drain(5);
  const { open: opening, drain } = createHttpApp({ routes: open });
  await opening();
  await drain(6);
  assertEquals(done, ["opened", 5, "opened", 6]);
});
