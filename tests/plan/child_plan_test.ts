import { childPlan } from "../../src/plan/child_plan.ts";
import { compilePlan } from "../../src/plan/compile.ts";
import { withPlaces } from "../../src/plan/parse/parse.ts";
import { preferenceProblem, preferProvider } from "../../src/plan/model_choice.ts";
import { formatPath, parsePath } from "../../src/sdk/value_path.ts";
import { deepFreeze, type JsonObject } from "../../src/sdk/json.ts";
import { assert, assertEquals, assertMatch, assertThrows } from "../assert.ts";
import { detailAt, GOOD, refusal } from "../support/plans.ts";
import fc from "fast-check";

const PARENT: JsonObject = deepFreeze({
  session: { orchestrator: "loop-streaming", context: "context-simple", metadata: { team: "a" } },
  description: "the parent",
  system: "You are the parent.",
  providers: ["provider-mock"],
  tools: [{ module: "a", config: { x: 1 } }, "b", { module: "c", instance_id: "c2" }],
  hooks: ["h"],
  agents: {
    x: { description: "X", tools: [{ module: "a", config: { y: 2 } }, "d"], limits: { max_tool_calls: 3 } },
    y: { instruction: "You are Y.", agents: "none", provider_preferences: [{ provider: "mock" }] },
    z: { system: { instruction: "You are Z." }, agents: ["x"] },
  },
  spawn: { exclude_tools: ["b"] },
});

Deno.test("childPlan() merges the overlay over the parent, and does not change the parent", () => {
  const { written, limits, preferences } = childPlan(PARENT, "x");
  assertEquals(written.tools, [
    { module: "a", config: { x: 1, y: 2 } },
    { module: "c", instance_id: "c2" },
    "d",
  ]);
  assertEquals([written.system, written.description, written.hooks], ["You are the parent.", "X", ["h"]]);
  assertEquals([limits, preferences], [{ max_tool_calls: 3 }, []]);
});

Deno.test("childPlan() filters the agents of the child, reads instruction as system, removes the overlay's own keys", () => {
  const y = childPlan(PARENT, "y");
  assertEquals([y.written.agents, y.written.system], [{}, "You are Y."]);
  assertEquals([y.preferences, Object.hasOwn(y.written, "provider_preferences")], [
    [{ provider: "mock" }],
    false,
  ]);
  assertEquals(Object.keys(childPlan(PARENT, "z").written.agents as JsonObject), ["x"]);
  assertEquals(childPlan(PARENT, "x").written.agents, PARENT.agents);
});

Deno.test("childPlan() of self is the plan itself, without modules that children do not inherit", () => {
  const { description: _, ...rest } = PARENT;
  const { written } = childPlan(PARENT, "self");
  assertEquals(written, {
    ...rest,
    tools: [{ module: "a", config: { x: 1 } }, { module: "c", instance_id: "c2" }],
  });
});

Deno.test("childPlan() removes the tools that spawn excludes, by module or instance, never the overlay's own", () => {
  const tools = (options: Parameters<typeof childPlan>[2], agent = "self") =>
    childPlan(PARENT, agent, options).written.tools;
  assertEquals(tools({ exclude_tools: ["c"] }), [{ module: "a", config: { x: 1 } }]);
  assertEquals(tools({ exclude_tools: ["c2", "a"] }), []);
  assertEquals(tools({ inherit_tools: ["c2"] }), [{ module: "c", instance_id: "c2" }]);
  assertEquals(tools({ inherit_tools: [] }, "x"), [{ module: "a", config: { y: 2 } }, "d"]);
});

Deno.test("childPlan() merges metadata over the plan's own", () => {
  const { written } = childPlan(PARENT, "x", { metadata: { agent: "x", depth: 1 } });
  assertEquals((written.session as JsonObject).metadata, { team: "a", agent: "x", depth: 1 });
});

Deno.test("childPlan() lists the agents when the name is unknown", () => {
  for (const name of ["unknown", "__proto__", "constructor"]) {
    const error = assertThrows(() => childPlan(PARENT, name)) as Error & { code?: string };
    assertEquals(error.code, "request_invalid");
    assertMatch(error.message, /its agents are "x", "y", "z", "self"$/);
  }
});

const PROVIDERS: JsonObject = {
  session: {
    orchestrator: { module: "loop-streaming", config: { default_provider: "one" } },
    context: "context-simple",
  },
  providers: [
    "provider-one",
    { module: "provider-two", instance_id: "deux", config: { priority: 50, api_key: "k" } },
  ],
};
const models = (names: readonly string[]) =>
  Promise.resolve(names.includes("deux") ? ["big-2", "big-1", "small-1"] : []);

Deno.test("preferProvider() promotes the first preference that can be met before all others, and sets its model", async () => {
  const plan = await preferProvider(
    PROVIDERS,
    [{ provider: "zero" }, { provider: "two", model: "big-*" }],
    models,
  );
  assertEquals(plan?.providers, [
    "provider-one",
    { module: "provider-two", instance_id: "deux", config: { priority: 49, api_key: "k", model: "big-2" } },
  ]);
  assertEquals((plan?.session as JsonObject).orchestrator, { module: "loop-streaming", config: {} });
  const exact = await preferProvider(PROVIDERS, [{ provider: "one", model: "any" }], models);
  assertEquals((exact?.providers as JsonObject[])[0], {
    module: "provider-one",
    config: { priority: 49, model: "any" },
  });
  assertEquals(await preferProvider(PROVIDERS, [{ provider: "deux", model: "huge-?" }], models), null);
  assertEquals(await preferProvider(PROVIDERS, [], models), null);
});

Deno.test("preferenceProblem() refuses credentials, endpoints and network settings in any spelling and depth", () => {
  const problem = (config: JsonObject) => preferenceProblem([{ provider: "p", config }], "list");
  assertEquals(problem({ temperature: 0, nested: { top_k: 1 } }), null);
  for (
    const key of [
      "api_base",
      "api_version",
      "auth",
      "authorization",
      "extra_headers",
      "host",
      "organization",
      "port",
      "private_key",
      "project",
      "verify_ssl",
      "API-Key",
      "client_secret",
      "baseURL",
      "Azure_Endpoint",
      "access_token",
    ]
  ) {
    assertMatch(problem({ [key]: "x" }) ?? "", /^list\[0\]\.config: must not set/, key);
    assertMatch(problem({ list: [{ [key]: "x" }] }) ?? "", /must not set/, key);
  }
  assertMatch(problem({ note: "${AWS_SECRET}" }) ?? "", /must not name the variable "AWS_SECRET"/);
  assertMatch(preferenceProblem([{ provider: "p", model: "${X}" }], "list") ?? "", /variable "X"/);
  for (
    const bad of [null, {}, ["p"], [{}], [{ provider: "" }], [{ provider: "p", model: 1 }], [{
      provider: "p",
      config: [],
    }]]
  ) {
    assert(preferenceProblem(bad, "list") !== null, JSON.stringify(bad));
  }
});

Deno.test("parsePath() reads what formatPath() writes", () => {
  const step = fc.oneof(
    fc.nat({ max: 999 }),
    fc.string({ minLength: 1, maxLength: 20 }),
    fc.constantFrom('a"]b', "a.b", "\\"),
  );
  fc.assert(fc.property(fc.array(step, { maxLength: 6 }), (path) => {
    assertEquals(parsePath(formatPath(path)), path);
  }));
  for (const bad of ["a..b", "a[", "a[x]", "[1.5]", "a]b["]) assertEquals(parsePath(bad), undefined, bad);
});

Deno.test("withPlaces() adds line and column to findings without a place", async () => {
  const text = "session: {}\nagents:\n  a:\n    tools:\n      - module: x\n        config: {b: 1}\n";
  assertEquals(
    await withPlaces([{ path: "agents.a.tools[0].config.b", message: "m" }, {
      path: "",
      message: "n",
      line: 9,
    }, { path: "request.limits.max_iterations", message: "o" }], text),
    [
      { path: "agents.a.tools[0].config.b", line: 6, column: 18, message: "m" },
      { path: "", message: "n", line: 9 },
      { path: "request.limits.max_iterations", message: "o" },
    ],
  );
});

Deno.test("compilePlan() reports errors of agents with their path", async () => {
  const text = `session: {orchestrator: loop-streaming, context: context-simple}
providers: [provider-mock]
agents:
  self: {}
  a:
    spawn: {exclude_tools: tool-task}
    provider_preferences:
      - {provider: mock, config: {api_key: mine}}
`;
  const error = await refusal(() => compilePlan(text, { origin: "caller" }));
  const place = (path: string) => {
    const { line, column } = detailAt(error, path);
    return [line, column];
  };
  assertEquals(place("agents.self"), [4, 3]);
  assertEquals(place("agents.a.spawn.exclude_tools"), [6, 13]);
  assertMatch(detailAt(error, "agents.a.provider_preferences").message, /must not set "api_key"/);
  const { warnings } = await compilePlan({ ...GOOD, agents: { a: { agents: ["b", "a"] } } }, {
    origin: "caller",
  });
  assertEquals(warnings.map(({ code, path }) => [code, path]), [["unknown_agent", "agents.a.agents[0]"]]);
});

Deno.test("childPlan() takes the models of an agent's roles after its own preferences", () => {
  const plan = (overlay: JsonObject) => ({
    roles: { fast: ["openai/gpt-mini", "groq"], coding: "anthropic/claude-opus-[0-9]*" },
    agents: { a: overlay },
  });
  const preferencesOf = (overlay: JsonObject) => childPlan(plan(overlay), "a").preferences;
  assertEquals(preferencesOf({ model_role: ["unknown", "fast", "coding"] }), [
    { provider: "openai", model: "gpt-mini" },
    { provider: "groq" },
  ]);
  assertEquals(preferencesOf({ model_role: "coding", provider_preferences: [{ provider: "xai" }] }), [
    { provider: "xai" },
    { provider: "anthropic", model: "claude-opus-[0-9]*" },
  ]);
  assertEquals(preferencesOf({ model_role: "constructor" }), []);
});
