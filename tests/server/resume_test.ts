import { createPreamp } from "../../src/server/mod.ts";
import { assertEquals } from "../assert.ts";

Deno.test("Runtime.resume() resolves when the active runs have ended, or after its time", async () => {
  await using preamp = createPreamp({ authenticate: null, log: null });
  const plan = {
    session: { orchestrator: "loop-basic", context: "context-simple" },
    providers: [{ module: "provider-mock", config: { responses: [{ text: "Done.", delay_ms: 400 }] } }],
  };
  const send = (path: string, init?: RequestInit) =>
    preamp.fetch(new Request(`http://localhost${path}`, init));
  const started = await send("/v1/runs", {
    method: "POST",
    headers: { "content-type": "application/json", prefer: "respond-async" },
    body: JSON.stringify({ prompt: "hello", plan }),
  });
  const { id } = await started.json();
  const statusNow = async () => (await (await send(`/v1/runs/${id}`)).json()).status;
  await preamp.runtime.resume(50);
  assertEquals(await statusNow(), "running");
  await preamp.runtime.resume(10_000);
  assertEquals(await statusNow(), "completed");
});
