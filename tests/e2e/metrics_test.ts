import { assert, assertEquals } from "../assert.ts";
import { dataUrl, toolModule } from "../app/settings_effects/kit.ts";
import { startServer } from "./program.ts";

const PLAN = {
  session: { orchestrator: "loop-basic", context: "context-simple" },
  providers: [{ module: "provider-mock", config: { responses: ["hello"] } }],
};

Deno.test("serve counts runs and requests for GET /metrics, which needs a key", async () => {
  await using server = await startServer();
  assertEquals((await server.post("/v1/runs", { prompt: "hi", plan: PLAN })).status, 200);
  const closed = await fetch(`${server.url}/metrics`);
  assertEquals((await closed.json()).error.code, "unauthorized");
  const text = await (await server.fetch("/metrics")).text();
  const lines = text.split("\n").filter((line) =>
    /^preamp_(http\w+_count|runs_ended_total|model\w+_count)/.test(line)
  );
  assert(lines.includes('preamp_runs_ended_total{status="denied",stop_reason="denied"} 0'), text);
  assertEquals(lines.filter((line) => !line.endsWith("} 0")), [
    'preamp_http_request_duration_seconds_count{method="POST",route="/v1/runs",status="200"} 1',
    'preamp_http_request_duration_seconds_count{method="GET",route="/metrics",status="401"} 1',
    'preamp_runs_ended_total{status="completed",stop_reason="end_turn"} 1',
    'preamp_model_call_duration_seconds_count{provider="mock",outcome="ok"} 1',
  ]);
  assert(text.includes('preamp_store_commit_duration_seconds_count{store="sqlite",outcome="ok"}'), text);
});

Deno.test("serve --metrics.open true answers GET /metrics without a key", async () => {
  await using server = await startServer(["--metrics.open", "true"]);
  const response = await fetch(`${server.url}/metrics`);
  assert((await response.text()).includes("process_resident_memory_bytes "));
  assertEquals(response.status, 200);
});

Deno.test("serve counts sandboxes by tier and by the cause of their end", async () => {
  await using server = await startServer(["--modules.allow", "data:"]);
  const plan = {
    ...PLAN,
    providers: [{
      module: "provider-mock",
      config: { responses: [{ tool_calls: [{ name: "t" }] }, "done"] },
    }],
    tools: [{ module: "tool-t", source: dataUrl(toolModule("t", "return 1;")) }],
  };
  const run = (await server.post("/v1/runs", { prompt: "go", plan })).body;
  assertEquals(run.status, "completed");
  let lines: string[] = [];
  for (let tries = 0; tries < 100 && !lines.some((line) => line.includes("_ended_total")); tries++) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    const text = await (await server.fetch("/metrics")).text();
    lines = text.split("\n").filter((line) => line.startsWith("preamp_guests") && !line.endsWith("} 0"));
  }
  assertEquals(lines, [
    "preamp_guests 0",
    'preamp_guests_ended_total{cause="ended"} 1',
  ]);
});
