import { Plans } from "../../src/app/plan_service.ts";
import { LazyLoader, LazySandbox } from "../../src/app/lazy_loader_and_sandbox.ts";
import { createModuleTable } from "../../src/app/module_table.ts";
import { NamedPlans } from "../../src/app/named_plans.ts";
import { SourceOverrides } from "../../src/app/source_overrides.ts";
import { defaultPolicy } from "../../src/policy/settings.ts";
import { Redactor } from "../../src/policy/redact.ts";
import type { Caller } from "../../src/runs/types.ts";
import type { JsonObject, ModuleSpec } from "../../src/sdk/types.ts";
import { assertEquals, assertStrictEquals } from "../assert.ts";

const OPERATOR: Caller = { name: "library", namespace: "a", origin: "operator" };
const SILENT = { warn: () => {}, console: () => {} };

/** Prepares the same plan twice and opens one of its modules in both runs. */
async function openTwice(plan: JsonObject, spec: (specs: ModuleSpec[]) => ModuleSpec | undefined, env = {}) {
  const variables: Record<string, string> = env;
  const policy = defaultPolicy();
  const plans = new Plans({
    policy,
    named: new NamedPlans([]),
    modules: createModuleTable({ "tool-own": { mount: () => Promise.resolve() } }),
    env: (name) => variables[name],
    loading: new LazyLoader({ cache_dir: null }),
    sandboxing: new LazySandbox({ policy, metrics: null, log: () => {} }),
    sources: new SourceOverrides([], policy.modules.esm_host),
  });
  const open = async () => {
    const ready = await plans.ready({ prompt: "", plan: structuredClone(plan) }, OPERATOR);
    const { session: { orchestrator, context }, providers, tools, hooks } = ready.compiled.plan;
    const secrets = new Redactor();
    ready.registerSecrets(secrets);
    const found = spec([orchestrator, context, ...providers, ...tools, ...hooks])!; // the test names one
    return { ready, opened: await ready.open(found, secrets, SILENT), secrets: secrets.size };
  };
  const first = await open();
  for (const name of Object.keys(variables)) variables[name] += "-changed";
  return [first, await open()] as const;
}

function planWith(provider: JsonObject, tools: JsonObject[] = []): JsonObject {
  return {
    session: { orchestrator: "loop-basic", context: { module: "context-simple", config: { recall: true } } },
    providers: [{ module: "provider-mock", config: provider }],
    tools,
  };
}

const named = (module: string) => (specs: ModuleSpec[]) => specs.find((spec) => spec.module === module);

Deno.test("runs of the same plan share the built-in modules whose configs do not change", async () => {
  const [first, second] = await openTwice(planWith({ response: "a" }), named("context-simple"));
  assertStrictEquals(second.ready.compiled, first.ready.compiled);
  assertStrictEquals(second.ready.limits, first.ready.limits);
  assertStrictEquals(second.ready.warnings, first.ready.warnings);
  assertStrictEquals(second.opened, first.opened);
  assertEquals(first.opened.config, { recall: true });
  assertEquals(Object.isFrozen(first.opened.config), true);
});

Deno.test("a config with a variable has the value of the variable in each run", async () => {
  const plan = planWith({ response: "${GREETING}" });
  const [first, second] = await openTwice(plan, named("provider-mock"), { GREETING: "good-day" });
  assertStrictEquals(second.ready.compiled, first.ready.compiled);
  assertEquals(first.opened.config, { response: "good-day" });
  assertEquals(second.opened.config, { response: "good-day-changed" });
  assertEquals([first.secrets, second.secrets], [1, 1]);
});

Deno.test("a config with a secret registers it in each run", async () => {
  const [first, second] = await openTwice(planWith({ password: "a-long-secret" }), named("provider-mock"));
  assertEquals([first.secrets, second.secrets], [1, 1]);
  assertEquals(second.opened.config === first.opened.config, false);
});

Deno.test("a module of the application has a config of its own in each run, which it may change", async () => {
  const plan = planWith({}, [{ module: "tool-own", config: { list: [1] } }]);
  const [first, second] = await openTwice(plan, named("tool-own"));
  (first.opened.config.list as number[]).push(2);
  assertEquals(first.opened.config, { list: [1, 2] });
  assertEquals(second.opened.config, { list: [1] });
});
