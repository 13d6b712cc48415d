import { assert, assertEquals, assertMatch, assertStringIncludes } from "../../assert.ts";
import { type CheckOptions, checkPlan } from "../../../src/plan/check/check.ts";
import { formatPath } from "../../../src/sdk/value_path.ts";
import type { JsonObject } from "../../../src/sdk/json.ts";
import { GOOD } from "../../support/plans.ts";

/** Errors of a plan: `path code`, or the code alone for the plan itself. */
function failed(value: unknown): string[] {
  return checkPlan(value).findings.errors.map(({ path, code }) => `${formatPath(path)} ${code}`.trim());
}

/** Errors of a good plan with more in it: `path code` or `path code hint`. */
function errorsOf(more: JsonObject): string[] {
  return checkPlan({ ...GOOD, ...more }, { origin: "caller" }).findings.errors.map(({ path, code, hint }) =>
    `${formatPath(path)} ${code}${hint?.startsWith("did you mean") ? ` ${hint}` : ""}`
  );
}

Deno.test("checkPlan() stops at root_type when the plan is not an object", () => {
  for (const value of ["text", ["list"], null, 5, undefined]) assertEquals(failed(value), ["root_type"]);
});

Deno.test("checkPlan() reports the missing session of an empty plan", () => {
  assertEquals(failed({}), ["session_present"]);
});

Deno.test("checkPlan() reports the missing context of a session", () => {
  const plan = { session: { orchestrator: "loop-basic" } };
  assertEquals(failed(plan), ["session context_present"]);
  const [error] = checkPlan(plan).findings.errors;
  assertEquals(error?.message, "Configuration must specify session.context");
  assertEquals(failed({ session: { context: "context-simple" } }), ["session orchestrator_present"]);
});

Deno.test("checkPlan() takes the config of string forms from the top level", () => {
  const { plan } = checkPlan({
    ...GOOD,
    orchestrator: { config: { max_iterations: 3 } },
    context: { config: { max_tokens: 9 } },
  });
  assertEquals(plan?.session.orchestrator, {
    module: "loop-streaming",
    type: "orchestrator",
    source: { kind: "builtin" },
    config: { max_iterations: 3 },
    path: "session.orchestrator",
  });
  assertEquals(plan?.session.context.config, { max_tokens: 9 });
});

Deno.test("checkPlan() takes the source of string forms from the key beside them", () => {
  const session = { ...GOOD.session, orchestrator_source: "https://example.com/loop.ts" };
  const { plan } = checkPlan({ ...GOOD, session });
  const original = "https://example.com/loop.ts";
  assertEquals(plan?.session.orchestrator.source, { kind: "url", url: original, original });
});

Deno.test("checkPlan() takes the nested config of object forms and ignores the top level with a warning", () => {
  const session = { orchestrator: { module: "loop-basic", config: { a: 1 } }, context: "context-simple" };
  const { plan, findings } = checkPlan({ ...GOOD, session, orchestrator: { config: { a: 2 } } });
  assertEquals(plan?.session.orchestrator.config, { a: 1 });
  assertEquals(findings.warnings.map(({ path }) => formatPath(path)), ["orchestrator.config"]);
});

Deno.test("checkPlan() warns of an unknown section by name", () => {
  const { plan, findings: { warnings } } = checkPlan({ ...GOOD, foo: 1 });
  assertEquals(plan !== undefined, true);
  assertEquals(warnings.map(({ code, message }) => [code, message]), [
    ["unknown_sections", 'Unknown sections will be ignored: "foo"'],
  ]);
});

Deno.test("checkPlan() requires lists for providers, tools and hooks", () => {
  assertEquals(failed({ ...GOOD, tools: {} }), ["tools type"]);
  assertEquals(failed({ ...GOOD, hooks: "x", providers: null }), ["providers type", "hooks type"]);
});

Deno.test("checkPlan() accepts an empty list", () => {
  const { plan, findings: { warnings } } = checkPlan({ ...GOOD, tools: [] });
  assertEquals([plan?.tools, warnings], [[], []]);
});

Deno.test("checkPlan() reports every error of a spec", () => {
  const tools = [
    { source: "https://example.com/x.ts" },
    { module: "" },
    { module: 5 },
    { module: "a", config: [] },
    { module: "a", source: 7 },
    { module: "a", config: null },
    7,
  ];
  assertEquals(failed({ ...GOOD, tools }), [
    "tools[0] module_required",
    "tools[1].module module_empty",
    "tools[2].module module_type",
    "tools[3].config config_type",
    "tools[4].source source_type",
    "tools[5].config config_type",
    "tools[6] type",
  ]);
  assertEquals(failed({ ...GOOD, session: { orchestrator: {}, context: 1 } }), [
    "session.orchestrator module_required",
    "session.context type",
  ]);
});

Deno.test("checkPlan() requires instance_id when a provider module is listed twice without", () => {
  const twice = checkPlan({ ...GOOD, providers: ["provider-mock", { module: "provider-mock" }] });
  assertEquals(twice.plan, undefined);
  assertMatch(twice.findings.errors[0]?.message ?? "", /instance_id/);
  const named = { ...GOOD, providers: ["provider-mock", { module: "provider-mock", instance_id: "second" }] };
  assertEquals(checkPlan(named).plan?.providers.map(({ instance_id }) => instance_id), [undefined, "second"]);
});

Deno.test("checkPlan() expands short forms and gives each module its section's type", () => {
  const { plan } = checkPlan({ ...GOOD, tools: ["weird-name"], hooks: [{ module: "hooks-x", id: "h" }] });
  assertEquals(plan?.tools, [{
    module: "weird-name",
    type: "tool",
    source: { kind: "builtin" },
    config: {},
    path: "tools[0]",
  }]);
  assertEquals([plan?.hooks[0]?.type, plan?.hooks[0]?.instance_id], ["hook", "h"]);
  assertEquals([plan?.agents, plan?.limits], [{}, {}]);
});

Deno.test("checkPlan() reports a misspelled key as an error everywhere except in config", () => {
  assertEquals(errorsOf({ tool: [] }), ['tool unknown_key did you mean "tools"?']);
  assertEquals(errorsOf({ tools: [{ module: "a", integrty: "x" }] }), [
    'tools[0].integrty unknown_key did you mean "integrity"?',
  ]);
  assertEquals(errorsOf({ tools: [{ module: "a", permisions: {} }] }), [
    'tools[0].permisions unknown_key did you mean "permissions"?',
  ]);
  assertEquals(errorsOf({ limits: { max_iteration: 1 } }), [
    'limits.max_iteration unknown_key did you mean "max_iterations"?',
  ]);
  assertEquals(errorsOf({ session: { ...GOOD.session, contxet: "x" } }), [
    'session.contxet unknown_key did you mean "context"?',
  ]);
  assertEquals(errorsOf({ permissions: { nett: true } }), [
    'permissions.nett unknown_key did you mean "net"?',
  ]);
  assertEquals(errorsOf({ tools: [{ module: "a", config: { integrty: 1, modul: 2 } }] }), []);
});

Deno.test("checkPlan() reports other unknown keys as errors in limits, permissions and session, as warnings in a spec", () => {
  assertEquals(errorsOf({ limits: { colour: 1 } }), ["limits.colour unknown_key"]);
  assertEquals(errorsOf({ permissions: { camera: true } }), ["permissions.camera unknown_key"]);
  assertEquals(errorsOf({ session: { ...GOOD.session, colour: 1 } }), ["session.colour unknown_key"]);
  const { plan, findings } = checkPlan({ ...GOOD, tools: [{ module: "a", colour: 1 }] });
  assert(plan);
  assertEquals(findings.warnings.map(({ path }) => formatPath(path)), ["tools[0].colour"]);
});

Deno.test("checkPlan() checks the values of limits", () => {
  for (const value of [-1, 1.5, "5", null, true, 2 ** 60]) {
    assertEquals(
      errorsOf({ limits: { max_tool_calls: value } }),
      ["limits.max_tool_calls type"],
      String(value),
    );
  }
  for (const value of [0.5, "-1", "1e3", "", "1.", ".5", "5 USD", "0x10", null]) {
    assertEquals(errorsOf({ limits: { max_cost_usd: value } }), ["limits.max_cost_usd type"], String(value));
  }
  assertEquals(errorsOf({ limits: { max_iterations: 0 } }), ["limits.max_iterations type"]);
  assertEquals(errorsOf({ limits: [] }), ["limits type"]);
  assertEquals(checkPlan({ ...GOOD, limits: { max_duration_s: 0.5 } }).plan?.limits, { max_duration_s: 0.5 });
  const { plan } = checkPlan({ ...GOOD, limits: { max_tool_calls: 0, max_cost_usd: "0.50" } });
  assertEquals(plan?.limits, { max_tool_calls: 0, max_cost_usd: "0.50" });
});

Deno.test("checkPlan() suggests how to write a cost that is a number", () => {
  const { findings } = checkPlan({ ...GOOD, limits: { max_cost_usd: 0.5 } });
  assertEquals(findings.errors[0]?.hint, 'write it in quotes: "0.5"');
});

for (
  const [name, entry, hint] of [
    ["net", "https://a.example:8/x", 'write "a.example:8"'],
    ["net", "::1", 'write "[::1]"'],
    ["net", "[0::1%lo]", 'write "[::1]"'],
    ["net", "*", "write true for every host"],
    ["net", "bücher.example", 'write "xn--bcher-kva.example"'],
    ["net", "[fe80::]/10", /"\[::1\]:80"/],
    ["net", "fe80::/10", /"\[::1\]:80"/],
    ["net", "10.0.0.0/33", /"10.0.0.0\/8"/],
    ["net", "a.example:99999", /"10.0.0.0\/8"/],
    ["net", "a.example:", /"10.0.0.0\/8"/],
    ["net", ":80", /"10.0.0.0\/8"/],
    ["net", "a.*.example", /"10.0.0.0\/8"/],
    ["net", "a b", /"10.0.0.0\/8"/],
    ["net", "a..example", /"10.0.0.0\/8"/],
    ["net", "127.1", /"10.0.0.0\/8"/],
    ["net", "*.10.0.0.1", /"10.0.0.0\/8"/],
    ["net", "unix:/run/x.sock", /"10.0.0.0\/8"/],
    ["import", "https://a.example/x.ts", 'write "a.example"'],
    ["read", "~/notes", /write the full path/],
    ["write", "file:///tmp/x", 'write "/tmp/x"'],
    ["sys", "hostnam", /did you mean "hostname"\?/],
    ["sys", "temperature", /known are hostname,/],
  ] as const
) {
  Deno.test(`checkPlan() refuses ${name} ${entry}, which Deno does not accept`, () => {
    const { findings } = checkPlan({ ...GOOD, permissions: { [name]: [entry] } }, { origin: "caller" });
    const [error] = findings.errors;
    assertEquals([findings.errors.length, error?.path], [1, ["permissions", name, 0]]);
    if (typeof hint === "string") assertEquals(error?.hint, hint);
    else assertMatch(error?.hint ?? "", hint);
  });
}

Deno.test("checkPlan() accepts every entry that Deno accepts", () => {
  const net = [
    "a.example",
    "A.example.:080",
    "*.a_b.example:443",
    "10.0.0.0/8:80",
    "0.0.0.0/0",
    "[::1]:80",
    "-x",
    "localhost",
  ];
  const permissions = {
    net,
    import: net,
    read: ["~x", "a b", "/"],
    env: ["AWS_*"],
    sys: ["uid"],
    run: ["./a"],
  };
  assertEquals(errorsOf({ permissions }), []);
});

Deno.test("checkPlan() checks the form of permissions", () => {
  assertEquals(errorsOf({ permissions: { net: "api.example.com" } }), ["permissions.net type"]);
  assertEquals(errorsOf({ permissions: { net: [1, ""] } }), [
    "permissions.net[0] type",
    "permissions.net[1] type",
  ]);
  assertEquals(errorsOf({ permissions: { net: ["https://a.example/x"] } }), ["permissions.net[0] value"]);
  assertEquals(errorsOf({ permissions: { net: null } }), ["permissions.net type"]);
  assertEquals(errorsOf({ permissions: true }), ["permissions type"]);
  assertEquals(errorsOf({ permissions: { read: ["a\nb"] } }), ["permissions.read[0] value"]);
  assertEquals(errorsOf({ permissions: { env: ["A=B"] } }), ["permissions.env[0] value"]);
  const permissions = { net: true, read: ["./data"], env: [], ffi: false };
  assertEquals(checkPlan({ ...GOOD, permissions }).plan?.permissions, permissions);
});

Deno.test("checkPlan() requires integrity as sha256 and standard base64 of 32 bytes", () => {
  const good = "sha256-gWR8L2GZsyupZSEYA52fT/MTL+9dCxH6bk3bplD1AJw=";
  assertEquals(errorsOf({ tools: [{ module: "a", integrity: good }] }), []);
  for (
    const value of ["md5-x", "sha256-", good.slice(0, -1), good.replace("+", "-"), `${good} ${good}`, 5, ""]
  ) {
    const errors = errorsOf({ tools: [{ module: "a", integrity: value }] });
    assertMatch(errors.join(), /^tools\[0\]\.integrity (value|type)$/, String(value));
  }
});

Deno.test("checkPlan() accepts true or false for required", () => {
  for (const required of [true, false]) {
    assertEquals(errorsOf({ tools: [{ module: "a", required }] }), []);
  }
  assertEquals(errorsOf({ hooks: [{ module: "a", required: "yes" }] }), ["hooks[0].required type"]);
});

Deno.test("checkPlan() accepts the two tiers only, and reads the former worker as process with a warning", () => {
  for (const isolation of ["inline", "process"]) {
    assertEquals(errorsOf({ tools: [{ module: "a", isolation }] }), []);
  }
  const { plan, findings } = checkPlan({ ...GOOD, tools: [{ module: "a", isolation: "worker" }] });
  assertEquals(plan?.tools[0]?.isolation, "process");
  assertEquals(findings.warnings.map(({ code }) => code), ["isolation_worker"]);
  assertEquals(errorsOf({ tools: [{ module: "a", isolation: "proces" }] }), [
    'tools[0].isolation type did you mean "process"?',
  ]);
});

Deno.test("checkPlan() refuses two entries of one instance_id in any list", () => {
  const entry = { module: "a", instance_id: "x" };
  const { findings } = checkPlan({
    ...GOOD,
    hooks: [entry, { module: "b", instance_id: "x" }],
    tools: [entry],
  });
  assertEquals(findings.errors.map(({ code }) => code), ["duplicate_instance_id"]);
  assertEquals(
    errorsOf({ tools: [{ module: "a", instance_id: "" }, { module: "b", id: "x", instance_id: "y" }] }),
    [
      "tools[0].instance_id instance_id_type",
      "tools[1].instance_id instance_id_type",
    ],
  );
});

Deno.test("checkPlan() warns of the same tool twice without a config of its own", () => {
  const warnings = (tools: unknown[]) =>
    checkPlan({ ...GOOD, tools }).findings.warnings.map(({ code }) => code);
  assertEquals(warnings(["a", { module: "a", config: {} }]), ["duplicate_module"]);
  assertEquals(warnings(["a", { module: "a", config: { b: 1 } }]), []);
  assertEquals(warnings(["a", { module: "a", instance_id: "b" }]), []);
});

Deno.test("checkPlan() warns when there is no provider", () => {
  for (const providers of [undefined, []]) {
    const { plan, findings } = checkPlan({ session: GOOD.session, ...(providers ? { providers } : {}) });
    assert(plan);
    assertEquals(findings.warnings.map(({ code }) => code), ["no_providers"]);
  }
});

Deno.test("checkPlan() checks injection limits, flags and metadata of the session", () => {
  const errors = errorsOf({
    session: {
      ...GOOD.session,
      injection_size_limit: -1,
      injection_budget_per_turn: "x",
      injection_budget_mode: "stop",
      raw: "yes",
      hooks_first: 1,
      metadata: [],
    },
  });
  assertEquals(errors.map((error) => error.split(" ")[0]), [
    "session.injection_budget_per_turn",
    "session.injection_size_limit",
    "session.injection_budget_mode",
    "session.raw",
    "session.hooks_first",
    "session.metadata",
  ]);
  const { plan } = checkPlan({
    ...GOOD,
    session: { ...GOOD.session, injection_size_limit: null, raw: true },
  });
  assertEquals([plan?.session.injection_size_limit, plan?.session.raw], [null, true]);
  assertEquals(plan?.session.injection_budget_per_turn, undefined);
});

Deno.test("checkPlan() takes system as text or instruction, and as a file only if files are allowed", () => {
  assertEquals(checkPlan({ ...GOOD, system: "a" }).plan?.system, "a");
  assertEquals(checkPlan({ ...GOOD, system: { instruction: "a" } }).plan?.system, "a");
  assertEquals(errorsOf({ system: { file: "./x.md" } }), ["system.file file_refused"]);
  assertEquals(checkPlan({ ...GOOD, system: { file: "./x.md" } }, { files: true }).files, [{
    owner: [],
    file: "./x.md",
  }]);
  assertEquals(errorsOf({ system: {} }), ["system value"]);
  assertEquals(errorsOf({ system: { instruction: "a", file: "b" } }), ["system value"]);
  assertEquals(errorsOf({ system: ["a"] }), ["system type"]);
  assertEquals(
    errorsOf({ system: { instructions: "a" } })[0],
    'system.instructions unknown_key did you mean "instruction"?',
  );
});

Deno.test("checkPlan() checks each agent as a partial plan, with its name in the path", () => {
  const agents = {
    a: { description: "x", tools: [{}], session: { orchestrator: "loop-basic" } },
    b: { "tools+": ["tool-x"], agents: "none", limits: { max_tool_calls: -1 } },
    c: 5,
    d: { agents: 7, sistem: "x", provider_preferences: [{ model: "x" }] },
  };
  assertEquals(errorsOf({ agents }), [
    "agents.a.tools[0] module_required",
    "agents.b.limits.max_tool_calls type",
    "agents.c type",
    'agents.d.sistem unknown_key did you mean "system"?',
    "agents.d.agents type",
    "agents.d.provider_preferences type",
  ]);
  assertEquals(failed({ ...GOOD, agents: { a: { tools: {} } } }), ["agents.a.tools type"]);
  assertEquals(errorsOf({ agents: [] }), ["agents type"]);
  const roles = { a: { model_role: "fast" }, b: { model_role: ["best", "fast"] }, c: { model_role: 7 } };
  assertEquals(errorsOf({ agents: { ...roles, d: { model_role: ["fast", 7] } } }), [
    "agents.c.model_role type",
    "agents.d.model_role[1] type",
  ]);
});

Deno.test("checkPlan() checks preamp, description, spawn and the top-level module blocks", () => {
  assertEquals(errorsOf({ preamp: 1, description: "x", spawn: { exclude_tools: ["a"] } }), []);
  assertEquals(errorsOf({ preamp: 2 }), ["preamp value"]);
  assertEquals(errorsOf({ description: 5 }), ["description type"]);
  assertEquals(errorsOf({ spawn: { tools: "x" } }), ["spawn.tools type"]);
  assertEquals(errorsOf({ orchestrator: "loop-basic" }), ["orchestrator type"]);
  assertEquals(errorsOf({ context: { config: [] } }), ["context.config type"]);
});

Deno.test("checkPlan() refuses ids that contain spaces or control characters", () => {
  for (const module of ["tool x", "tool\n", " tool-a", "x".repeat(129)]) {
    assertEquals(errorsOf({ tools: [{ module }] }), ["tools[0].module module_invalid"], module);
  }
});

Deno.test("checkPlan() accepts variables in the configs of modules that an agent appends", () => {
  const tools = [{ module: "tool-x", config: { key: "${KEY}" } }];
  const { plan, env } = checkPlan({ ...GOOD, agents: { a: { "tools+": tools } } });
  assert(plan);
  assertEquals(env.map(({ path, expanded }) => [path, expanded]), [["agents.a.tools+[0].config.key", true]]);
});

Deno.test("checkPlan() refuses variables outside of config in an operator's plan, and notes them in a caller's", () => {
  const plan = {
    ...GOOD,
    session: { ...GOOD.session, metadata: { note: "${ANY}" } },
    tools: [{ module: "tool-a", source: "https://example.com/${A}/mod.ts", config: { key: "${B}" } }],
    agents: { x: { tools: [{ module: "tool-b", config: { key: "${D}" } }] } },
  };
  const operator = checkPlan(plan);
  assertEquals(operator.findings.errors.map(({ path, code }) => [formatPath(path), code]), [[
    "tools[0].source",
    "env_place",
  ]]);
  const caller = checkPlan(plan, { origin: "caller" });
  assert(caller.plan);
  assertEquals(caller.env.map(({ name, path, expanded }) => [name, path, expanded]), [
    ["A", "tools[0].source", false],
    ["B", "tools[0].config.key", true],
    ["D", "agents.x.tools[0].config.key", true],
  ]);
});

Deno.test("checkPlan() refuses variables in texts that models and people read, of callers too", () => {
  const plan = {
    ...GOOD,
    description: "Greets ${WHO}",
    system: { instruction: "say ${WHO:-it} to ${user.name} in $${WHO} for ${X-Run-Name}" },
    agents: {
      a: { system: "${A}", description: "does ${PLAN_DIR}" },
      b: { instruction: "in ${WORKSPACE}, by ${B}" },
      c: { system: { file: "${PLAN_DIR}/c.md" } },
    },
  };
  const places = (options: CheckOptions) =>
    checkPlan(plan, { folders: { PLAN_DIR: "/p", WORKSPACE: "/w" }, ...options }).findings.errors
      .filter(({ code }) => code === "env_place").map(({ path }) => formatPath(path));
  const texts = [
    "description",
    "system.instruction",
    "system.instruction",
    "agents.a.system",
    "agents.a.description",
    "agents.b.instruction",
  ];
  assertEquals(places({ origin: "caller" }), texts);
  assertEquals(places({ files: true }), [...texts, "agents.c.system.file"]);
  const [first] = checkPlan({ ...GOOD, system: "${WHO}" }).findings.errors;
  assertStringIncludes(first!.hint!, "$${WHO} for the characters ${WHO}");
});

Deno.test("checkPlan() never displays the text of a config that is not an object", () => {
  const { findings } = checkPlan({ ...GOOD, tools: [{ module: "a", config: "sk-secret" }] });
  assertEquals(JSON.stringify(findings.errors).includes("sk-secret"), false);
});

Deno.test("checkPlan() lists at most 20 agents in a message", () => {
  const agents: JsonObject = { x: { agents: ["unknown"] } };
  for (let at = 0; at < 100; at++) agents[`agent-${at}`] = {};
  const [warning] = checkPlan({ ...GOOD, agents }).findings.warnings;
  assertStringIncludes(warning?.message ?? "", '"agent-18", …');
});

Deno.test("checkPlan() limits the entries of a permission", () => {
  const net = (count: number) => Array.from({ length: count }, (_, at) => `a${at}.example`);
  assertEquals(failed({ ...GOOD, permissions: { net: net(200) } }), []);
  assertEquals(failed({ ...GOOD, permissions: { net: net(201) } }), ["permissions.net value"]);
  assertEquals(failed({ ...GOOD, tools: [{ module: "tool-x", permissions: { net: net(201) } }] }), [
    "tools[0].permissions.net value",
  ]);
});

Deno.test("checkPlan() checks the models of roles, and warns once of a role without one", () => {
  assertEquals(failed({ ...GOOD, roles: { fast: "openai/gpt-mini", coding: ["xai", 5] } }), [
    "roles.coding[1] value",
  ]);
  assertEquals(failed({ ...GOOD, roles: "fast" }), ["roles type"]);
  const agents = {
    a: { model_role: "coding" },
    b: { model_role: ["coding", "fast"] },
    c: { model_role: "coding" },
  };
  const { findings } = checkPlan({ ...GOOD, agents, roles: { fast: "openai/gpt-mini" } });
  assertEquals(findings.warnings.map(({ code, message }) => [code, message.includes('"coding"')]), [[
    "role_unknown",
    true,
  ]]);
});
