/** Tests of a plan's agents, which `check` and `create` authorise before the plan runs. */
import { createRuntime } from "../../src/app/runtime.ts";
import { defaultPolicy } from "../../src/policy/settings.ts";
import type { Caller } from "../../src/runs/types.ts";
import { agentPlans } from "../../src/app/agent_plans.ts";
import { assert, assertEquals, assertStringIncludes } from "../assert.ts";
import { refusal } from "../support/plans.ts";

const CALLER: Caller = { name: "key:ci", namespace: "ns", origin: "caller" };

const PLAN = `session: {orchestrator: loop-streaming, context: context-simple}
providers: [provider-mock]
tools: [tool-task, tool-calculator]
agents:
  reader:
    tools:
      - {module: tool-todo, permissions: {read: ["/etc"]}}
  stranger:
    tools: [tool-unheard-of]
  elsewhere:
    providers:
      - module: provider-mock
        config: {base_url: "https://evil.example"}
  greedy:
    limits: {max_tool_calls: 100000}
  fine:
    tools: [tool-todo]
`;

const EXPECTED = [
  ["agents.reader.tools[0].permissions.read", 7, 43],
  ["agents.stranger.tools[0]", 9, 13],
  ["agents.elsewhere.providers[0].config.base_url", 13, 18],
  ["agents.elsewhere.providers[0].config.base_url", 13, 18],
  ["agents.greedy.limits.max_tool_calls", 15, 14],
];

Deno.test("plans.check() authorises every agent as if it were spawned, and reports reasons with line and column", async () => {
  const runtime = createRuntime();
  const { ok, errors, plan_hash } = await runtime.plans.check({ plan: PLAN }, CALLER);
  assertEquals([ok, typeof plan_hash], [false, "string"]);
  assertEquals(errors.map(({ path, line, column }) => [path, line, column]), EXPECTED);
  assertStringIncludes(errors[1]?.message ?? "", 'Cannot load module "tool-unheard-of"');
  await runtime.close();
});

Deno.test("runs.create() refuses a plan when one of its agents may not run, before anything is created", async () => {
  const runtime = createRuntime();
  const error = await refusal(() => runtime.runs.create({ prompt: "x", plan: PLAN }, CALLER));
  assertEquals([error.code, error.details.map(({ path }) => path)], [
    "policy_refused",
    EXPECTED.map(([path]) => path),
  ]);
  assertEquals(error.details[0]?.line, 7);
  assertEquals((await runtime.runs.list(CALLER, {})).data, []);
  await runtime.close();
});

Deno.test("an agent gets only permissions that a module of its plan has, also in an operator's plan", async () => {
  const runtime = createRuntime({ policy: defaultPolicy() });
  const operator: Caller = { name: "terminal", namespace: "ns", origin: "operator" };
  const reader = "{module: tool-todo, permissions: {read: [./data]}}";
  const plan = (tools: string) =>
    `session: {orchestrator: loop-streaming, context: context-simple}\nproviders: [provider-mock]\n` +
    `tools: [${tools}]\nagents:\n  reader:\n    tools: [${reader}]\n`;
  const { errors } = await runtime.plans.check({ plan: plan("tool-task") }, operator);
  assertEquals(errors.map(({ path, line }) => [path, line]), [[
    "agents.reader.tools[0].permissions.read",
    6,
  ]]);
  assertEquals((await runtime.plans.check({ plan: plan(`tool-task, ${reader}`) }, operator)).errors, []);
  await runtime.close();
});

Deno.test("plans.check() warns of a variable that is not set in an agent's config", async () => {
  const runtime = createRuntime({ env: (name) => name === "SET" ? "1" : undefined });
  const operator: Caller = { name: "terminal", namespace: "ns", origin: "operator" };
  const plan = `session: {orchestrator: loop-streaming, context: context-simple}
providers: [provider-mock]
agents:
  a:
    system: Say nothing.
    providers: [{module: provider-mock, config: {response: "\${SET} \${UNSET} \${OTHER:-fine}"}}]
`;
  const { ok, warnings } = await runtime.plans.check({ plan }, operator);
  assertEquals([ok, warnings.map(({ code, path }) => [code, path])], [
    true,
    [["env_unset", "agents.a.providers[0].config.response"]],
  ]);
  await runtime.close();
});

Deno.test("plans.check() refuses more agents than can be checked in a short time", async () => {
  const runtime = createRuntime();
  const errorsOf = async (count: number, tools: number) => {
    const agents = Object.fromEntries(
      Array.from({ length: count }, (_, at) => [`a${at}`, { agents: "none" }]),
    );
    const plan = {
      session: { orchestrator: "loop-streaming", context: "context-simple" },
      providers: ["provider-mock"],
      tools: Array.from({ length: tools }, (_, at) => ({ module: "tool-calculator", instance_id: `i${at}` })),
      agents,
    };
    const { code, errors } = await runtime.plans.check({ plan }, CALLER);
    return errors.length === 0 ? null : [code, ...errors.map(({ path }) => path)];
  };
  assertEquals(await errorsOf(256, 1), null);
  assertEquals(await errorsOf(257, 1), ["plan_limit_exceeded", "agents"]);
  assertEquals(await errorsOf(60, 500), null);
  assertEquals(await errorsOf(120, 500), ["plan_limit_exceeded", "agents"]);
  await runtime.close();
});

Deno.test("agentPlans() yields plans without the contents of other agents, and lets other work run", async () => {
  const agents = Object.fromEntries(
    Array.from({ length: 100 }, (_, at) => [`a${at}`, { tools: [`tool-${at}`] }]),
  );
  let turns = 0;
  const timer = setInterval(() => turns++);
  for await (const { name, written } of agentPlans({ tools: ["tool-x"], agents })) {
    const { tools, agents: others } = written;
    assertEquals(tools, ["tool-x", `tool-${name.slice(1)}`]);
    assertEquals(Object.keys(others as object).length, 100);
    assertEquals(Object.values(others as object).filter((other) => Object.keys(other).length > 0).length, 1);
    for (const end = performance.now() + 1; performance.now() < end;);
  }
  clearInterval(timer);
  assert(turns > 0);
});
