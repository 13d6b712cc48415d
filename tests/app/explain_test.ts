/** Tests of `explain`: where the prompts of a plan go, and which paths a caller sees. */
import type { JsonObject } from "preamp";
import { createRuntime } from "../../src/app/runtime.ts";
import type { Caller } from "../../src/runs/types.ts";
import { assertEquals } from "../assert.ts";
import { temporaryFolder } from "../support/folder.ts";

const OPERATOR: Caller = { namespace: "test", name: "test", origin: "operator" };
const CALLER: Caller = { ...OPERATOR, origin: "caller" };

/** Explains a plan with providers; resolves to where its prompts go. */
async function promptsTo(
  providers: unknown[],
  { env = {}, caller = OPERATOR, more = {} }: {
    env?: Record<string, string>;
    caller?: Caller;
    more?: JsonObject;
  } = {},
): Promise<string[]> {
  await using runtime = createRuntime({ env: (name) => env[name] });
  const session = { orchestrator: "loop-basic", context: "context-simple" };
  const { summary } = await runtime.plans.explain({ plan: { session, providers, ...more } }, caller);
  return summary.prompts_to;
}

Deno.test("explain() names the vendor's host, or that of the plan's address or of a variable", async () => {
  const openai = (base_url: string) => ({ module: "provider-openai", config: { base_url } });
  assertEquals(
    await promptsTo(["provider-mock", "provider-anthropic", "provider-gemini", "provider-ollama"]),
    ["127.0.0.1:11434", "api.anthropic.com", "generativelanguage.googleapis.com"],
  );
  assertEquals(await promptsTo([openai("http://localhost:1234/v1")]), ["localhost:1234"]);
  assertEquals(
    await promptsTo(["provider-openai"], { env: { OPENAI_BASE_URL: "https://gw.example/v1?key=x" } }),
    [
      "gw.example",
    ],
  );
  assertEquals(await promptsTo([openai("${BASE}/v1")], { env: { BASE: "https://other.example" } }), [
    "other.example",
  ]);
});

Deno.test("explain() names the hosts of agents' providers too", async () => {
  const agents = {
    helper: { providers: [{ module: "provider-openai", config: { base_url: "https://a.example" } }] },
  };
  assertEquals(await promptsTo(["provider-mock"], { more: { agents } }), ["a.example"]);
});

Deno.test("explain() names a variable of the server to callers, not its value", async () => {
  const env = { OPENAI_BASE_URL: "https://internal.example/v1" };
  assertEquals(await promptsTo(["provider-openai"], { env, caller: CALLER }), ["${OPENAI_BASE_URL}"]);
});

Deno.test("explain() of a named plan has no folder of the server above the plan's for callers", async () => {
  await using folder = await temporaryFolder();
  const plan = {
    session: { orchestrator: "loop-basic", context: "context-simple" },
    providers: ["provider-mock"],
    tools: [{
      module: "tool-filesystem",
      permissions: { read: ["${PLAN_DIR}/data", "./more", "${WORKSPACE}"] },
    }],
  };
  await Deno.writeTextFile(`${folder.path}/own.yaml`, JSON.stringify(plan));
  await using runtime = createRuntime({ plans: new URL(`file://${folder.path}/`) });
  const text = async (caller: Caller) =>
    JSON.stringify(await runtime.plans.explain({ plan_ref: "own" }, caller));
  assertEquals((await text(CALLER)).includes(folder.path), false);
  assertEquals((await text(OPERATOR)).includes(`${folder.path}/data`), true);
});

Deno.test("explain() flags an agent whose approval rules may allow what the plan asks about or denies", async () => {
  await using runtime = createRuntime({ env: () => undefined });
  const gate = (config: JsonObject) => ({ hooks: [{ module: "hooks-approval", config }] });
  const deny = { tool: "bash", argv: ["rm", "**"], action: "deny" };
  const ask = { tool: "edit", action: "ask" };
  const flags = async (helper: JsonObject) => {
    const plan = {
      session: { orchestrator: "loop-basic", context: "context-simple" },
      providers: ["provider-mock"],
      ...gate({ rules: [deny, ask] }),
      agents: { helper },
    };
    const { red_flags } = await runtime.plans.explain({ plan }, OPERATOR);
    return red_flags.filter(({ code }) => code === "approval_loosened").map(({ path }) => path);
  };
  const loose = ["agents.helper.hooks[0]"];
  assertEquals(await flags({}), []);
  assertEquals(await flags(gate({ preset: "read-only" })), []);
  assertEquals(await flags(gate({ rules: [deny, { ...ask, action: "deny" }] })), []);
  assertEquals(await flags(gate({ "rules+": [{ tool: "x", action: "ask" }] })), []);
  assertEquals(await flags(gate({ rules: [ask] })), loose);
  assertEquals(await flags(gate({ rules: [{ tool: "*", action: "allow" }, deny, ask] })), loose);
  assertEquals(await flags(gate({ rules: [deny, { ...ask, action: "allow" }] })), loose);
});

Deno.test("check() warns of rules that allow a program with any words although its options write or run", async () => {
  await using runtime = createRuntime({ env: () => undefined });
  const allow = (...argv: string[]) => ({ tool: "bash", argv, action: "allow" });
  const gate = (...rules: JsonObject[]) => [{ module: "hooks-approval", config: { rules } }];
  const plan = {
    session: { orchestrator: "loop-basic", context: "context-simple" },
    providers: ["provider-mock"],
    hooks: gate(
      ...[allow("ls", "**"), allow("git", "status"), allow("git", "log", "**"), allow("git", "**")],
      ...[allow("git", "log", "--oneline", "--", "**"), allow("python*", "**"), allow("uniq", "**")],
      ...[{ ...allow("rm", "**"), action: "deny" }, { tool: "bash", action: "allow" }],
    ),
    agents: { helper: { hooks: gate(allow("sed", "**")) } },
  };
  const { warnings } = await runtime.plans.check({ plan: JSON.stringify(plan) }, CALLER);
  const found = warnings.filter(({ code }) => code === "approval_rule_wide");
  assertEquals(found.map(({ path }) => path), [
    ...[2, 3, 5, 6].map((index) => `hooks[0].config.rules[${index}].argv`),
    "agents.helper.hooks[0].config.rules[0].argv",
  ]);
  assertEquals(
    found[0]!.message,
    "The rule allows git log **, that is any further words, and git log writes files with options such as --output",
  );
});
