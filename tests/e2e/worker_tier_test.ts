/**
 * The `worker` tier is not a boundary, and says so: a guest that is busy for ever is given up, and the server
 * wants a restart.
 */
import { assert, assertEquals, assertMatch } from "../assert.ts";
import { startServer } from "./program.ts";
import { temporaryFolder } from "../support/folder.ts";

const BUSY = `export async function mount(coordinator) {
  await coordinator.mount("tools", { name: "busy", description: "Is busy", execute() { for (;;); } });
}`;

const PLAN = {
  session: { orchestrator: "loop-basic", context: "context-simple" },
  providers: [{
    module: "provider-mock",
    config: { responses: [{ tool_calls: [{ name: "busy", arguments: {} }] }, { text: "Gave it up." }] },
  }],
  tools: [{ module: "tool-busy", source: "./busy.js" }],
};

Deno.test("a busy guest in the worker tier is abandoned, the run continues, and /readyz requests a restart", async () => {
  await using temporary = await temporaryFolder();
  const folder = temporary.path;
  await Deno.writeTextFile(`${folder}/busy.js`, BUSY);
  await Deno.writeTextFile(`${folder}/busy.json`, JSON.stringify(PLAN));
  const policy = {
    store: "memory",
    plans: `${folder}/`,
    isolation: { urls_from_operator: "worker" },
    limits: { tool_timeout_s: 1 },
  };
  await Deno.writeTextFile(`${folder}/preamp.yaml`, JSON.stringify(policy));
  await using server = await startServer(["--config", `${folder}/preamp.yaml`], { cwd: folder });
  const before = await server.get("/readyz");
  assertEquals([before.status, before.body.ok, before.body.isolation.process], [200, true, true]);
  const { status, body } = await server.post("/v1/runs", { plan_ref: "busy", prompt: "go" });
  assertEquals([status, body.status, body.output_text], [200, "completed", "Gave it up."]);
  assertEquals(body.isolation["tool-busy"], "worker");
  let after = await server.get("/readyz");
  for (let asked = 0; after.status === 200 && asked < 600; asked++) { // it is given half a second to answer
    await new Promise((resolve) => setTimeout(resolve, 50));
    after = await server.get("/readyz");
  }
  assertEquals([after.status, after.body.ok], [503, false]);
  assertMatch(String(after.body.reasons), /cannot be stopped; restart the server/);
  assert((await server.get("/healthz")).status === 200);
  server.kill("SIGKILL"); // a process with such a worker cannot end by itself
  await server.ended;
});
