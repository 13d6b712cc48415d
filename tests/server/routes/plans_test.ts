import { assertEquals } from "../../assert.ts";
import { parsePlanText } from "../../../src/plan/parse/parse.ts";
import { bodyOf, PLAN, problemOf, testApp } from "../../support/http.ts";

Deno.test("POST /v1/plans/check accepts a plan, a name, or a plan as the whole body in JSON or YAML", async () => {
  const { send } = testApp();
  const yaml = { "content-type": "application/yaml" };
  const bare = JSON.stringify(PLAN);
  const bodies = [
    { body: { plan: PLAN } },
    { body: { plan_ref: "default" } },
    { body: bare },
    { body: bare, headers: yaml },
  ];
  for (const options of bodies) {
    const response = await send("POST /v1/plans/check", options);
    const { ok, plan_hash } = await bodyOf(response, "PlanCheck");
    assertEquals([response.status, ok, plan_hash.startsWith("sha256-")], [200, true, true]);
  }
  const broken = await bodyOf(
    await send("POST /v1/plans/check", { body: "session: [\n", headers: yaml }),
    "PlanCheck",
  );
  assertEquals([broken.ok, broken.errors[0].line], [false, 1]);
  for (const body of [{}, { plan: {}, plan_ref: "x" }, { plans: {} }]) {
    assertEquals(await problemOf(await send("POST /v1/plans/check", { body })), "400 request_invalid");
  }
});

Deno.test("POST /v1/plans/explain explains a caller's plan on another model, and no plan of the server", async () => {
  const { send } = testApp();
  const model = "anthropic/claude-sonnet-5-5";
  const response = await send("POST /v1/plans/explain", { body: { plan: PLAN, model } });
  const { summary } = await bodyOf(response, "Explanation");
  assertEquals(summary.prompts_to, ["api.anthropic.com"]);
  const refused = await send("POST /v1/plans/explain", { body: { plan_ref: "default", model } });
  assertEquals(await problemOf(refused), "403 policy_refused");
});

Deno.test("POST /v1/plans/diff compares plans and names, and refuses a name with another field beside it", async () => {
  const { send } = testApp();
  const named = { plan_ref: "default" };
  const compared = await send("POST /v1/plans/diff", { body: { from: named, to: PLAN } });
  assertEquals([compared.status, Object.keys(await compared.json())], [200, ["widens", "narrows", "other"]]);
  for (const to of [{ ...named, lock: {} }, { ...PLAN, ...named }]) {
    const refused = await send("POST /v1/plans/diff", { body: { from: named, to } });
    assertEquals(await problemOf(refused), "400 request_invalid");
  }
});

Deno.test("plans and modules are listed", async () => {
  const { send } = testApp();
  assertEquals((await bodyOf(await send("GET /v1/plans"), "PlanList")).data[0].name, "default");
  const { data } = await bodyOf(await send("GET /v1/modules"), "ModuleList");
  assertEquals(data.some(({ id }: { id: string }) => id === "tool-calculator"), true);
  assertEquals((await bodyOf(await send("GET /v1/modules/tool-calculator"), "Module")).type, "tool");
  assertEquals(await problemOf(await send("GET /v1/modules/tool-x")), "404 not_found");
});

Deno.test("GET /v1/plans/{name} and /v1/runs/{id}/plan give a plan as data and YAML, without secrets", async () => {
  const { send } = testApp();
  const named = await bodyOf(await send("GET /v1/plans/default"), "PlanDocument");
  assertEquals([named.name, await parsed(named.text)], ["default", named.plan]);
  const plan = (key: string) => ({
    session: { orchestrator: "loop-streaming", context: "context-simple" },
    system: "Be brief: yes.\n\tOr no.",
    providers: ["provider-prompted", { module: "provider-anthropic", config: { api_key: key } }],
  });
  for (const [key, read] of [["sk-literal", "[REDACTED]"], ["${X-Run-Key}", "${X-Run-Key}"]] as const) {
    const body = { prompt: "answer", plan: plan(key) };
    const { id } = await bodyOf(
      await send("POST /v1/runs", { body, headers: { "x-run-key": "sk-of-the-header" } }),
      "Run",
    );
    const answer = await bodyOf(await send(`GET /v1/runs/${id}/plan`), "RunPlan");
    assertEquals([answer.origin, answer.plan], ["caller", plan(read)]);
    assertEquals(await parsed(answer.text), plan(read));
    const foreign = await send(`GET /v1/runs/${id}/plan`, { headers: { authorization: "Bearer k2" } });
    assertEquals(await problemOf(foreign), "404 not_found");
  }
  assertEquals(await problemOf(await send("GET /v1/plans/unknown")), "404 not_found");
});

async function parsed(text: string): Promise<unknown> {
  return (await parsePlanText(text)).data;
}
