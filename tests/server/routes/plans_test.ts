import { assertEquals } from "../../assert.ts";
import { parsePlanText } from "../../../src/plan/parse/parse.ts";
import { createPreamp } from "../../../src/server/mod.ts";
import { temporaryFolder } from "../../support/folder.ts";
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

Deno.test("a named plan and the plan of a run show no header, variable, query value or option of a server", async () => {
  await using folder = await temporaryFolder();
  const canary = "canary-7531";
  const servers = {
    local: { command: "node", args: ["server.js", "--token", canary], env: { PLAIN: canary } },
    web: { url: `https://ada:${canary}@mcp.example.com/mcp?id=${canary}`, headers: { "x-team": canary } },
  };
  const plan = {
    session: { orchestrator: "loop-basic", context: "context-simple" },
    providers: [{ module: "provider-mock", config: { responses: ["Done."] } }],
    tools: [{
      module: "tool-mcp",
      required: false,
      config: { servers },
      permissions: { net: ["mcp.example.com"], run: ["node"] },
    }],
  };
  await Deno.writeTextFile(`${folder.path}/servers.json`, JSON.stringify(plan));
  const preamp = createPreamp({ authenticate: null, plans: new URL(`file://${folder.path}/`) });
  const textOf = async (path: string, init?: RequestInit) =>
    await (await preamp.fetch(new Request(`http://localhost${path}`, init))).text();
  const named = await textOf("/v1/plans/servers");
  assertEquals([named.includes("[REDACTED]"), named.includes(canary)], [true, false]);
  const headers = { "content-type": "application/json" };
  for (const to of [{ ...plan, tools: [] }, JSON.parse(JSON.stringify(plan).replaceAll(canary, "another"))]) {
    const body = JSON.stringify({ from: { plan_ref: "servers" }, to });
    const compared = await textOf("/v1/plans/diff", { method: "POST", headers, body });
    assertEquals([compared.includes("tool-mcp"), compared.includes(canary)], [true, false], compared);
  }
  const explained = await textOf("/v1/plans/explain", {
    method: "POST",
    headers,
    body: '{"plan_ref":"servers"}',
  });
  assertEquals([explained.includes("mcp.example.com"), explained.includes(canary)], [true, false], explained);
  await preamp.close();
});

async function parsed(text: string): Promise<unknown> {
  return (await parsePlanText(text)).data;
}

Deno.test("GET /v1/plan/schema has the modules of the server, without what the host fills in", async () => {
  const { send } = testApp();
  const response = await send("GET /v1/plan/schema");
  assertEquals(response.headers.get("content-type"), "application/schema+json");
  const { properties, $defs } = await response.json();
  assertEquals(["session", "tools", "model"].filter((key) => key in properties).length, 3);
  const [ids, entry] = $defs.tool.anyOf;
  assertEquals(ids.anyOf.some((id: { const?: string }) => id.const === "tool-mcp"), true);
  assertEquals(JSON.stringify(entry.allOf).includes("supplied_by"), false);
});

Deno.test("POST /v1/plans/check has all findings at once: of the form, of configs, and warnings", async () => {
  const { send } = testApp();
  const body = `session: { orchestrator: loop-streaming, contxt: context-simple }
providers:
  - { module: provider-mock, config: { chunk_chars: none } }
tools:
  - { module: tool-todo, colour: green }
`;
  const answer = await send("POST /v1/plans/check", {
    body,
    headers: { "content-type": "application/yaml" },
  });
  const { ok, errors, warnings } = await bodyOf(answer, "PlanCheck");
  const places = (found: { path: string; line?: number }[]) =>
    found.map(({ path, line }) => `${line} ${path}`);
  assertEquals([ok, places(errors), places(warnings)], [
    false,
    ["1 session.contxt", "1 session", "3 providers[0].config.chunk_chars"],
    ["5 tools[0].colour"],
  ]);
});
