import { assertEquals } from "../../assert.ts";
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
