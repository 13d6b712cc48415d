import { PERMISSION_KINDS } from "../../src/sdk/plan.ts";
import { noPermissions } from "../../src/sdk/contracts.ts";
import { fullPermissions } from "../../src/policy/effective_permissions.ts";
import { assert, assertEquals, assertMatch, assertStringIncludes } from "../assert.ts";
import { BUILTINS, judge, policyWith } from "../support/policies.ts";
import { detailAt, refusal } from "../support/plans.ts";

Deno.test("authorise() gives a plain plan the policy's limits, inline modules and no permissions", async () => {
  const grants = await judge({ tools: ["tool-calculator"], limits: { max_tool_calls: 5 } });
  assertEquals(grants.limits.max_tool_calls, 5);
  assertEquals(grants.cost_limit, "policy");
  assertEquals(grants.tiers, {
    "session.orchestrator": "inline",
    "session.context": "inline",
    "providers[0]": "inline",
    "tools[0]": "inline",
  });
  assertEquals(grants.permissions["tools[0]"], noPermissions());
  assertEquals(grants.mayReadEnv("HOME"), false);
});

Deno.test("authorise() refuses a module that is not built in, and names the one that is meant or all", async () => {
  const error = await refusal(() => judge({ tools: ["tool-calculater", "tool-unheard-of"] }));
  assertEquals(error.code, "plan_invalid");
  assertEquals(detailAt(error, "tools[0]").hint, 'did you mean "tool-calculator"?');
  assertStringIncludes(detailAt(error, "tools[1]").hint ?? "", "tool-filesystem");
});

for (
  const source of [
    "https://modules.example.com/x.ts",
    "http://169.254.169.254/latest/meta-data",
    "http://localhost:9/x.ts",
    "file:///etc/passwd",
    "/etc/passwd",
    "./x.ts",
    "data:text/javascript,1",
    "npm:left-pad",
    "git+https://github.com/org/repo",
  ]
) {
  Deno.test(`authorise() refuses a module from ${source}, for every origin`, async () => {
    for (const origin of ["caller", "operator"] as const) {
      const error = await refusal(() => judge({ tools: [{ module: "tool-x", source }] }, { origin }));
      assertEquals(error.code, "module_source_denied");
      assertMatch(detailAt(error, "tools[0].source").message, /built-in modules only/);
    }
  });
}

Deno.test("authorise() suggests to leave out the source of a built-in module", async () => {
  const tools = [{ module: "tool-calculator", source: "git+https://github.com/org/repo@main" }];
  const error = await refusal(() => judge({ tools }));
  assertStringIncludes(error.details[0]?.hint ?? "", "leave source out");
});

Deno.test("authorise() refuses an unavailable tier, and never uses a weaker one", async () => {
  const tools = [{ module: "tool-calculator", isolation: "process" }];
  const error = await refusal(() => judge({ tools }));
  assertEquals([error.code, error.details[0]?.path], ["isolation_unavailable", "tools[0].isolation"]);
  await judge({ tools: [{ module: "tool-calculator", isolation: "inline" }] });
});

Deno.test("authorise() refuses a caller's variables that the policy does not list, at any place", async () => {
  const plan = {
    providers: [{
      module: "provider-mock",
      config: { a: "${SECRET}", b: ["x${ALSO:d}"], c: "${LISTED}", d: "$${NOT}" },
    }],
    agents: { x: { tools: [{ module: "tool-calculator", config: { e: { f: "${DEEP}" } } }] } },
    spawn: { exclude_tools: ["${ODD}"] },
  };
  const policy = policyWith({ env: { allow: ["LISTED", "ODD"] } });
  const error = await refusal(() => judge(plan, { policy }));
  assertEquals(error.code, "policy_refused");
  assertEquals(error.details.map(({ path }) => path), [
    "providers[0].config.a",
    "providers[0].config.b[0]",
    "agents.x.tools[0].config.e.f",
    "spawn.exclude_tools[0]",
  ]);
});

Deno.test("authorise() lets an operator's plan read every variable of the process", async () => {
  const providers = [{ module: "provider-mock", config: { a: "${SECRET}" } }];
  assert((await judge({ providers }, { origin: "operator" })).mayReadEnv("SECRET"));
  const allowed = policyWith({ env: { allow: ["SECRET"] } });
  const grants = await judge({ providers }, { policy: allowed });
  assertEquals([grants.mayReadEnv("SECRET"), grants.mayReadEnv("OTHER")], [true, false]);
});

Deno.test("authorise() refuses permissions beyond the policy, each one by name", async () => {
  const policy = policyWith({ permissions: { max: { ...noPermissions(), net: ["api.example.com"] } } });
  const tools = [{
    module: "tool-filesystem",
    permissions: { net: ["api.example.com", "evil.example"], read: true, run: ["sh"], ffi: false, env: [] },
  }];
  const error = await refusal(() => judge({ tools }, { policy }));
  assertEquals(error.code, "policy_refused");
  assertEquals(error.details.map(({ path }) => path), [
    "tools[0].permissions.net",
    "tools[0].permissions.read",
    "tools[0].permissions.run",
  ]);
  assertMatch(error.details[0]?.message ?? "", /evil\.example.*the policy does not allow it/);
});

Deno.test("authorise() grants what is within the policy, and the plan's default to tools without permissions", async () => {
  const policy = policyWith({ permissions: { max: { ...noPermissions(), net: true, read: ["./data"] } } });
  const grants = await judge({
    permissions: { net: ["a.example"] },
    tools: ["tool-calculator", { module: "tool-filesystem", permissions: { read: ["./data"] } }],
  }, { policy });
  assertEquals(grants.permissions["tools[0]"], { ...noPermissions(), net: ["a.example"] });
  assertEquals(grants.permissions["tools[1]"], { ...noPermissions(), read: ["./data"] });
  assertEquals(grants.permissions["providers[0]"], noPermissions());
});

Deno.test("authorise() reports an excess of the plan's default grant once, not for each tool", async () => {
  const plan = { permissions: { net: ["a.example"] }, tools: ["tool-calculator", "tool-filesystem"] };
  const error = await refusal(() => judge(plan));
  assertEquals(error.details.map(({ path }) => path), ["permissions.net"]);
});

Deno.test("authorise() gives an operator's plan the permissions it asks for", async () => {
  const tools = [{ module: "tool-filesystem", permissions: { read: ["./data"], run: true } }];
  const grants = await judge({ tools }, { origin: "operator" });
  assertEquals(grants.permissions["tools[0]"], { ...noPermissions(), read: ["./data"], run: true });
});

Deno.test("authorise() applies the policy's limits to operators and callers", async () => {
  for (const origin of ["caller", "operator"] as const) {
    const error = await refusal(() =>
      judge({ limits: { max_iterations: 51 } }, { origin, limits: { max_cost_usd: "6" } })
    );
    assertEquals(error.code, "policy_refused");
    assertEquals(error.details.map(({ path }) => path), [
      "limits.max_iterations",
      "request.limits.max_cost_usd",
    ]);
  }
});

Deno.test("authorise() lists reasons of different kinds together as policy_refused", async () => {
  const plan = {
    tools: ["tool-unknown"],
    limits: { max_iterations: 51 },
    providers: [{ module: "provider-mock", config: { a: "${A}" } }],
  };
  const error = await refusal(() => judge(plan));
  assertEquals([error.code, error.details.length], ["policy_refused", 3]);
  assertMatch(error.message, /^Cannot run this plan: 3 reasons/);
});

Deno.test("authorise() keeps a caller's provider off other hosts and off the server's keys", async () => {
  const provider = (config: unknown) => ({ providers: [{ module: "provider-openai", config }] });
  const policy = policyWith({
    permissions: { max: { ...noPermissions(), net: ["llm.example:8443", "plain.example"] } },
  });
  const refused = async (config: unknown) =>
    (await refusal(() => judge(provider(config), { policy }))).details.length;
  assertEquals(await refused({ base_url: "https://evil.example/v1", api_key: "own" }), 1);
  assertEquals(await refused({ base_url: "https://llm.example:8443/v1" }), 1);
  assertEquals(await refused({ base_url: "https://llm.example/v1", api_key: "own" }), 1);
  assertEquals(await refused({ base_url: "https://plain.example@evil.example/", api_key: "own" }), 1);
  assertEquals(await refused({ base_url: 7, api_key: "own" }), 1);
  assertEquals(await refused({ proxy: "evil.example", api_key: "" }), 2);
  await judge(provider({ base_url: "https://llm.example:8443/v1", api_key: "own" }), { policy });
  await judge(provider({ base_url: "http://plain.example/v1", api_key: "own" }), { policy });
  await judge(provider({ model: "m" }), { policy });
  await judge(provider({ base_url: "https://anywhere.example" }), { policy, origin: "operator" });
});

Deno.test("authorise() refuses an endpoint of a provider in every list of modules", async () => {
  const entry = {
    module: "provider-openai",
    config: { base_url: "http://127.0.0.1:8000/v1", api_key: "own" },
  };
  for (const list of ["providers", "hooks", "tools"]) {
    const { code, details } = await refusal(() => judge({ [list]: [entry] }));
    assertEquals([code, details?.at(-1)?.path], ["policy_refused", `${list}[0].config.base_url`]);
  }
});

Deno.test("authorise() never displays a secret of the config it refuses", async () => {
  const providers = [{
    module: "provider-openai",
    config: { base_url: "https://user:hunter22@evil.example", api_key: "sk-own" },
  }];
  const error = await refusal(() => judge({ providers }));
  assertEquals(/hunter22|sk-own/.test(JSON.stringify(error.details) + error.message), false);
});

Deno.test("authorise() accepts every built-in id", async () => {
  for (const id of BUILTINS) await judge({ tools: [id] });
});

Deno.test("fullPermissions() has every name and returns a new object", () => {
  const asked = { net: ["a"] };
  const full = fullPermissions(asked);
  asked.net.push("b");
  assertEquals(full, { ...noPermissions(), net: ["a"] });
  assertEquals(Object.keys(full).sort(), [...PERMISSION_KINDS].sort());
});
