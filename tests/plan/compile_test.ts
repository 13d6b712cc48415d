import { assert, assertEquals, assertRejects, assertStrictEquals, assertStringIncludes } from "../assert.ts";
import { compilePlan, createPlanCache } from "../../src/plan/compile.ts";
import { DOCUMENT_LIMITS } from "../../src/plan/parse/document_limits.ts";
import { formatDetail } from "../../src/plan/check/findings.ts";
import { canonicalHash } from "../../src/sdk/digest.ts";
import type { JsonObject } from "../../src/sdk/json.ts";
import { processorTime } from "../support/busy_time.ts";
import { detailAt, GOOD, refusal } from "../support/plans.ts";

/** A plan with a known hash. */
const TRACE = `
session: {orchestrator: loop-streaming, context: context-simple}
system: "Be brief."
providers:
  - module: provider-mock
    config:
      chunk_chars: 8
      responses:
        - {tool_calls: [{name: calculator, arguments: {expression: "6*7"}}], usage: {input_tokens: 40, output_tokens: 12}}
        - {text: "6 × 7 is 42.", usage: {input_tokens: 60, output_tokens: 10}}
tools: [tool-calculator]
hooks: [{module: hooks-approval, config: {rules: [{tool: calculator, action: ask}]}}]
limits: {max_tool_calls: 5}
`;
const TRACE_HASH = "sha256-gWR8L2GZsyupZSEYA52fT/MTL+9dCxH6bk3bplD1AJw=";

Deno.test("compilePlan() returns the known hash, from text and from data", async () => {
  const fromText = await compilePlan(TRACE, { origin: "caller" });
  assertEquals(fromText.plan_hash, TRACE_HASH);
  assertEquals(canonicalHash(fromText.written), TRACE_HASH);
  const fromData = await compilePlan(structuredClone(fromText.written) as JsonObject, { origin: "caller" });
  assertEquals(fromData, fromText);
  assertEquals(fromText.plan.limits, { max_tool_calls: 5 });
  assertEquals(fromText.warnings, []);
});

Deno.test("compilePlan() hashes the plan as written, whatever the order of its keys", async () => {
  const hash = async (plan: JsonObject) => (await compilePlan(plan, { origin: "caller" })).plan_hash;
  const other = {
    providers: ["provider-mock"],
    session: { context: "context-simple", orchestrator: "loop-streaming" },
  };
  assertEquals(await hash(GOOD), await hash(other));
  const long = { ...GOOD, providers: [{ module: "provider-mock" }] };
  assert(await hash(GOOD) !== await hash(long), "short and long forms are different texts");
});

Deno.test("compilePlan() lists all findings with line and column for text", async () => {
  const text =
    "session: {orchestrator: loop-basic}\ntools:\n  - module: a\n    integrty: x\nlimits: {max_tool_calls: -1}\n";
  const error = await refusal(() => compilePlan(text, { origin: "caller", name: "support" }));
  assertEquals(error.code, "plan_invalid");
  assertEquals(error.details.map(({ path, line, column }) => [path, line, column]), [
    ["session", 1, 1],
    ["tools[0].integrty", 4, 5],
    ["limits.max_tool_calls", 5, 10],
  ]);
  assertStringIncludes(error.message, 'the plan "support": 3 problems');
  assertEquals(
    formatDetail(detailAt(error, "tools[0].integrty"), "plans/support.yaml"),
    'plans/support.yaml:4:5  tools[0].integrty  Cannot use key "integrty": tools[0] has no such key (did you mean "integrity"?)',
  );
});

Deno.test("compilePlan() lists all findings without places for data", async () => {
  const error = await refusal(() => compilePlan({ session: 1, tools: 2 }, { origin: "caller" }));
  assertEquals(error.details.map(({ path, line }) => [path, line]), [["session", undefined], [
    "tools",
    undefined,
  ]]);
});

Deno.test("compilePlan() reports warnings with code and path", async () => {
  const { warnings } = await compilePlan(`${TRACE}colour: blue\n`, { origin: "caller" });
  assertEquals(warnings.map(({ code, path, line }) => [code, path, line]), [[
    "unknown_sections",
    "colour",
    14,
  ]]);
});

Deno.test("compilePlan() limits the details of one error and reports their number", async () => {
  const plan = { ...GOOD, tools: Array(500).fill({}) };
  const error = await refusal(() => compilePlan(plan, { origin: "caller" }));
  assertEquals([error.details.length, error.facts.details_total], [200, 500]);
});

Deno.test("compilePlan() freezes its result and copies its input", async () => {
  const given = { ...GOOD, tools: [{ module: "a", config: { list: [1] } }] };
  const { plan, written } = await compilePlan(given, { origin: "caller" });
  given.tools[0]!.config.list.push(2);
  assertEquals(plan.tools[0]?.config, { list: [1] });
  assert(Object.isFrozen(plan.tools[0]?.config.list) && Object.isFrozen(written));
});

const HOSTILE: Record<string, [code: string, plan: () => unknown]> = {
  "a prototype key": ["plan_invalid", () => JSON.parse('{"session": {"__proto__": {"a": 1}}}')],
  "a constructor key": ["plan_invalid", () => ({ tools: [{ config: { constructor: { prototype: {} } } }] })],
  "half a surrogate pair": ["plan_invalid", () => ({ ...GOOD, system: "\ud800" })],
  "200,000 levels": ["plan_limit_exceeded", () => JSON.parse(`${"[".repeat(200_000)}${"]".repeat(200_000)}`)],
  "33 levels": ["plan_limit_exceeded", () => JSON.parse(`{"a":${"[".repeat(32)}${"]".repeat(32)}}`)],
  "10,001 values": ["plan_limit_exceeded", () => ({ a: Array(9_999).fill(0) })],
  "300 KiB": ["plan_limit_exceeded", () => ({ a: "x".repeat(300 * 1024) })],
  "a cycle": ["plan_invalid", () => {
    const plan: JsonObject = {};
    plan.self = plan;
    return plan;
  }],
  "nothing": ["plan_invalid", () => undefined],
  "a list": ["plan_invalid", () => []],
};
for (const [what, [code, make]] of Object.entries(HOSTILE)) {
  Deno.test(`compilePlan() refuses ${what} as data`, async () => {
    const error = await refusal(() => compilePlan(make() as JsonObject, { origin: "caller" }));
    assertEquals(error.code, code);
    assertEquals(({} as Record<string, unknown>).a, undefined);
  });
}

Deno.test("compilePlan() accepts 32 levels and 10,000 values of data", async () => {
  const deep = JSON.parse(`${"[".repeat(28)}${"]".repeat(28)}`);
  await compilePlan({ ...GOOD, tools: [{ module: "a", config: { deep } }] }, { origin: "caller" });
});

Deno.test("compilePlan() applies its limits, also to cached plans", async () => {
  const cache = createPlanCache();
  await compilePlan(GOOD, { origin: "caller", cache });
  const small = { max_bytes: 20, max_nodes: 3, max_depth: 1, max_aliases: 0 };
  for (const limits of [{ ...small, max_bytes: 1000 }, { ...small, max_nodes: 100, max_depth: 9 }]) {
    for (const plan of [GOOD, JSON.stringify(GOOD)]) {
      const error = await refusal(() => compilePlan(plan, { origin: "caller", cache, limits }));
      assertEquals(error.code, "plan_limit_exceeded");
    }
  }
});

const FILES: Record<string, string> = {
  "file:///srv/plans/system.md": "From a file.",
  "file:///srv/agent.md": "An agent.",
};
const readText = (url: string) =>
  FILES[url] === undefined ? Promise.reject(new Error("not there")) : Promise.resolve(FILES[url]);
const OPERATOR = { origin: "operator", base_url: "file:///srv/plans/support.yaml", readText } as const;

Deno.test("compilePlan() reads system files of an operator's plan, beside the plan", async () => {
  const plan = {
    ...GOOD,
    system: { file: "./system.md" },
    agents: { x: { system: { file: "../agent.md" }, description: "d" } },
  };
  const compiled = await compilePlan(plan, OPERATOR);
  assertEquals(compiled.plan.system, "From a file.");
  assertEquals(compiled.plan.agents, { x: { system: "An agent.", description: "d" } });
  assertEquals(compiled.written, plan);
});

Deno.test("compilePlan() expands folders in texts for the model, and leaves other templates and files alone", async () => {
  const folders = { PLAN_DIR: "/plans", WORKSPACE: "/a ${B}" };
  const system = "Work in ${WORKSPACE}, see ${PLAN_DIR}/x; write $${HOME}, ${user.name} and ${";
  const expanded = "Work in /a ${B}, see /plans/x; write ${HOME}, ${user.name} and ${";
  for (const text of [system, { instruction: system }]) {
    const { plan, written } = await compilePlan({ ...GOOD, system: text }, { origin: "operator", folders });
    assertEquals([plan.system, written.system], [expanded, text]);
  }
  const { plan } = await compilePlan({ ...GOOD, system: { file: "s.md" } }, {
    ...OPERATOR,
    folders,
    readText: () => Promise.resolve(system),
  });
  assertEquals(plan.system, system);
  const open = "${".repeat(100_000);
  const took_ms = await processorTime(async () => {
    assertEquals(
      (await compilePlan({ ...GOOD, system: open }, { origin: "operator", folders })).plan.system,
      open,
    );
  });
  assert(took_ms < 5_000, `${took_ms} ms`); // quadratic: minutes
});

Deno.test("compilePlan() refuses a file that cannot be read, and any file of a caller's plan", async () => {
  const plan = { ...GOOD, system: { file: "./missing.md" } };
  const missing = await refusal(() => compilePlan(plan, OPERATOR));
  assertEquals([missing.code, detailAt(missing, "system.file").path], ["plan_invalid", "system.file"]);
  let asked = false;
  const spy = () => Promise.resolve(String(asked = true));
  await assertRejects(() => compilePlan(plan, { ...OPERATOR, origin: "caller", readText: spy }));
  assertEquals(asked, false);
});

Deno.test("compilePlan() resolves relative sources against the plan's folder", async () => {
  const compiled = await compilePlan({ ...GOOD, tools: [{ module: "t", source: "../tools/t" }] }, OPERATOR);
  const { source } = compiled.plan.tools[0]!;
  assertEquals(source, {
    kind: "url",
    url: "file:///srv/tools/t/mod.ts",
    original: "../tools/t",
    via: "path",
    folder: true,
  });
});

Deno.test("compilePlan() returns the same object for the same plan when it has a cache", async () => {
  const cache = createPlanCache();
  const first = await compilePlan(structuredClone(GOOD), { origin: "caller", cache });
  assertStrictEquals(await compilePlan(structuredClone(GOOD), { origin: "caller", cache }), first);
  assert(await compilePlan(GOOD, { origin: "operator", cache }) !== first, "another origin is another plan");
  assert(await compilePlan(GOOD, { origin: "caller", base_url: "file:///x", cache }) !== first);
  assertEquals(cache.size, 3);
});

Deno.test("compilePlan() does not cache plans that read files, nor errors", async () => {
  const cache = createPlanCache();
  await compilePlan({ ...GOOD, system: { file: "./system.md" } }, { ...OPERATOR, cache });
  await refusal(() => compilePlan({}, { origin: "caller", cache }));
  assertEquals(cache.size, 0);
});

Deno.test("compilePlan() keeps all levels of a plan, however deep the policy allows it to be", async () => {
  let config: JsonObject = { leaf: true };
  for (let level = 0; level < 70; level++) config = { below: config };
  const plan: JsonObject = { ...GOOD, tools: [{ module: "tool-todo", config }] };
  for (const input of [plan, JSON.stringify(plan)]) {
    const { written } = await compilePlan(input, {
      origin: "caller",
      limits: { ...DOCUMENT_LIMITS, max_depth: 80 },
    });
    assertEquals(written, plan);
  }
});

Deno.test("compilePlan() rejects data that is not an object, or too large", async () => {
  const options = { origin: "caller" } as const;
  const compile = async (input: unknown) => await compilePlan(input as JsonObject, options);
  await assertRejects(() => compile([1, 2]), Error, "must be an object: received a list");
  const large = compilePlan({ ...GOOD, system: "x".repeat(300_000) }, options); // does not throw
  await assertRejects(async () => await large, Error, "it has more than 262144 bytes");
});

Deno.test("compilePlan() chooses the plan's own model as -m does, for the plan and its agents", async () => {
  const options = { origin: "operator" as const, builtins: new Set(["provider-mock", "provider-openai"]) };
  const { plan, written } = await compilePlan({ ...GOOD, model: "openai/gpt-6/x" }, options);
  assertEquals(plan.providers.map(({ module, config, required }) => [module, config, required]), [
    ["provider-openai", { model: "gpt-6/x", priority: -1 }, true],
  ]);
  assertEquals("model" in written, false);
  const kept = await compilePlan({ session: GOOD.session, model: "mock" }, options);
  assertEquals([kept.plan.providers[0]?.module, kept.warnings], ["provider-mock", []]);
});

Deno.test("compilePlan() reports an unknown provider or another form of model at its place", async () => {
  const options = { origin: "caller" as const, builtins: new Set(["provider-openai"]) };
  const error = await refusal(() =>
    compilePlan(
      "session: {orchestrator: loop-basic, context: context-simple}\nmodel: opena1/gpt-6\n",
      options,
    )
  );
  const { line, column, message, hint } = detailAt(error, "model");
  assertEquals([error.code, line, column], ["plan_invalid", 2, 1]);
  assertEquals(message, 'Cannot use model "opena1/gpt-6": there is no provider "opena1"');
  assertStringIncludes(String(hint), "did you mean openai?");
  for (const model of [5, null, "", "openai/", ["openai"]]) {
    const { details } = await refusal(() => compilePlan({ ...GOOD, model } as JsonObject, options));
    assertStringIncludes(details[0]?.message ?? "", "Cannot read model: must be PROVIDER or PROVIDER/MODEL");
  }
});
