import { assert, assertEquals } from "../assert.ts";
import { BUILTIN_IDS, createModuleTable } from "../../src/app/module_table.ts";
import { createRuntime } from "../../src/app/runtime.ts";
import type { Caller } from "../../src/runs/types.ts";
import { PreampError } from "../../src/sdk/errors.ts";
import { isObject, type JsonObject } from "../../src/sdk/json.ts";
import { createTestCoordinator } from "../../src/sdk/testing.ts";
import { createPreamp } from "../../src/server/mod.ts";

const CALLER: Caller = { name: "key:x", namespace: "x", origin: "caller" };
const SESSION = { orchestrator: "loop-basic", context: "context-simple" };

/** Yields a schema and every schema inside of it. */
function* schemasIn(schema: JsonObject): Generator<JsonObject> {
  yield schema;
  const { items, anyOf, properties } = schema;
  if (isObject(items)) yield* schemasIn(items);
  for (const one of Array.isArray(anyOf) ? anyOf.filter(isObject) : []) yield* schemasIn(one);
  for (const one of Object.values(isObject(properties) ? properties : {})) {
    if (isObject(one)) yield* schemasIn(one);
  }
}

/** Keywords that the config check supports, and annotations. Schemas of built-in modules have no others. */
const CONFIG_KEYWORDS: ReadonlySet<string> = new Set([
  ...[
    "type",
    "enum",
    "anyOf",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "minItems",
    "maxItems",
  ],
  ...["minimum", "maximum", "exclusiveMinimum", "minLength", "maxLength", "format"],
  ...["description", "default", "title", "examples", "env_vars", "vendor_url", "supplied_by"],
]);

for (const id of BUILTIN_IDS) {
  Deno.test(`${id} has a config schema that the check supports`, async () => {
    const { module } = await createModuleTable().module(id);
    const schema = module?.config_schema;
    assert(isObject(schema) && isObject(schema.properties), "it lists its keys");
    for (const one of schemasIn(schema)) {
      assertEquals(Object.keys(one).filter((keyword) => !CONFIG_KEYWORDS.has(keyword)), []);
    }
  });
}

/** Returns a plan with a module, and the module's path. */
function planWith(id: string, config: JsonObject): { plan: JsonObject; place: string } {
  const spec = { module: id, config };
  const kind = id.split("-")[0];
  const base = { session: SESSION, providers: ["provider-mock"] };
  switch (kind) {
    case "loop":
      return {
        plan: { ...base, session: { ...SESSION, orchestrator: spec } },
        place: "session.orchestrator.config",
      };
    case "context":
      return { plan: { ...base, session: { ...SESSION, context: spec } }, place: "session.context.config" };
    case "provider":
      return { plan: { ...base, providers: [spec] }, place: "providers[0].config" };
    default:
      return {
        plan: { ...base, [`${kind === "hooks" ? "hooks" : "tools"}`]: [spec] },
        place: `${kind === "hooks" ? "hooks" : "tools"}[0].config`,
      };
  }
}

async function mounts(id: string, config: JsonObject): Promise<boolean> {
  const coordinator = await createTestCoordinator({
    config: { agents: {} },
    permissions: { read: ["/srv"], run: ["deno"], net: ["example.com"] },
  });
  try {
    await (await createModuleTable().module(id)).mount(coordinator, config);
    return true;
  } catch (error) {
    if (error instanceof PreampError) return false;
    throw error;
  }
}

/** Configs that both the check and the module's mount refuse. */
const WRONG: [id: string, config: JsonObject, path: string][] = [
  ["loop-basic", { max_iterations: "5" }, ".max_iterations"],
  ["loop-streaming", { max_parallel_tools: 0 }, ".max_parallel_tools"],
  ["loop-streaming", { steering: "yes" }, ".steering"],
  ["loop-events", { fallback: 5 }, ".fallback"],
  ["loop-events", { fallback: [5] }, ".fallback[0]"],
  ["loop-basic", { response_format: { type: "xml" } }, ".response_format.type"],
  ["loop-basic", { max_retries: -1 }, ".max_retries"],
  ["context-simple", { max_tokens: "many" }, ".max_tokens"],
  ["context-simple", { target_usage: 2 }, ".target_usage"],
  ["context-simple", { token_meter: "exakt" }, ".token_meter"],
  ["context-persistent", { memory_files: "a.md" }, ".memory_files"],
  ["context-summarizing", { summary_max_calls: 0 }, ".summary_max_calls"],
  ["provider-mock", { responses: [{ tool_calls: [{ arguments: {} }] }] }, ".responses[0].tool_calls[0]"],
  ["provider-mock", { responses: [{ error: { type: "RateLimit" } }] }, ".responses[0].error.type"],
  ["provider-mock", { models: [{ name: "m" }] }, ".models[0]"],
  ["provider-mock", { chunk_chars: 0 }, ".chunk_chars"],
  ["provider-replay", { events: "log" }, ".events"],
  ["tool-skills", { skills: "skills" }, ".skills"],
  ["tool-skills", { visibility: { enabled: "yes" } }, ".visibility.enabled"],
  ["tool-task", { inherit_context: "al" }, ".inherit_context"],
  ["tool-task", { exclude_tools: "tool-x" }, ".exclude_tools"],
  ["hooks-logging", { max_bytes: 5 }, ".max_bytes"],
  ["hooks-logging", { max_files: 0 }, ".max_files"],
  ["hooks-timing", { debug: 1 }, ".debug"],
  ["tool-web", { engine: "bing" }, ".engine"],
  ["hooks-redaction", { rules: ["pii"] }, ".rules[0]"],
  ["hooks-status-context", { include_git: "yes" }, ".include_git"],
  ["hooks-todo-reminder", { inject_role: "tool" }, ".inject_role"],
];

for (const [id, config, path] of WRONG) {
  Deno.test(`check() and mount() of ${id} refuse ${JSON.stringify(config)}`, async () => {
    const { plan, place } = planWith(id, config);
    const { ok, errors } = await createRuntime().plans.check({ plan }, CALLER);
    assertEquals([ok, errors[0]?.path], [false, `${place}${path}`]);
    assertEquals(await mounts(id, config), false);
  });
}

Deno.test("check() and mount() of hooks-approval refuse the same rules: its gate denies every call instead", async () => {
  const { plan, place } = planWith("hooks-approval", { rules: [{ tool: "x", action: "alow" }] });
  const { errors } = await createRuntime().plans.check({ plan }, CALLER);
  assertEquals([errors[0]?.path, errors[0]?.hint], [`${place}.rules[0].action`, 'did you mean "allow"?']);
});

/** Misspelled keys, which the check refuses at any depth. */
const NEAR_MISSES: [id: string, config: JsonObject, path: string, meant: string][] = [
  ["loop-basic", { max_iteration: 5 }, ".max_iteration", "max_iterations"],
  ["context-simple", { compact_treshold: 0.5 }, ".compact_treshold", "compact_threshold"],
  ["provider-mock", { respones: [] }, ".respones", "response"],
  ["provider-mock", { responses: [{ txt: "a" }] }, ".responses[0].txt", "text"],
  ["tool-mcp", { servers: { a: { urk: "https://x.example" } } }, ".servers.a.urk", "url"],
  ["hooks-approval", { rules: [{ tool: "a", agrv: ["ls"], action: "allow" }] }, ".rules[0].agrv", "argv"],
];

for (const [id, config, path, meant] of NEAR_MISSES) {
  Deno.test(`check() refuses ${JSON.stringify(config)} of ${id}: did you mean ${meant}?`, async () => {
    const { plan, place } = planWith(id, config);
    const { ok, errors } = await createRuntime().plans.check({ plan }, CALLER);
    assertEquals([ok, errors.map(({ path, hint }) => [path, hint])], [
      false,
      [[`${place}${path}`, `did you mean "${meant}"?`]],
    ]);
  });
}

for (const id of BUILTIN_IDS) {
  Deno.test(`check() warns of an unknown key of ${id}, and ${id} mounts`, async () => {
    const config = { a_key_of_another_runtime: { deep: 1 } };
    const { plan, place } = planWith(id, config);
    const { ok, errors, warnings } = await createRuntime().plans.check({ plan }, CALLER);
    assertEquals([ok, errors], [true, []]);
    const { module } = await createModuleTable().module(id);
    const known = Object.keys((module?.config_schema as JsonObject).properties as JsonObject);
    assertEquals(warnings, [{
      code: "unknown_key",
      path: `${place}.a_key_of_another_runtime`,
      message: `Cannot use key "a_key_of_another_runtime": ${place} has no such key; it is ignored`,
      hint: known.length === 0 ? "it has no keys" : `known keys: ${known.join(", ")}`,
    }]);
    // they need a recording, and a server
    if (!["provider-replay", "tool-mcp"].includes(id)) assertEquals(await mounts(id, config), true);
  });
}

Deno.test("check() warns of unknown keys inside the objects and lists of a config", async () => {
  const deep: [id: string, config: JsonObject, path: string][] = [
    ["provider-mock", { responses: [{ text: "a", colour: 1 }] }, ".responses[0].colour"],
    [
      "provider-mock",
      { responses: [{ tool_calls: [{ name: "x", colour: 1 }] }] },
      ".responses[0].tool_calls[0].colour",
    ],
    ["provider-mock", { responses: [{ usage: { colour: 1 } }] }, ".responses[0].usage.colour"],
    ["provider-mock", { responses: [{ error: { colour: 1 } }] }, ".responses[0].error.colour"],
    ["provider-mock", { models: [{ id: "m", colour: 1 }] }, ".models[0].colour"],
    ["loop-basic", { response_format: { type: "json", colour: 1 } }, ".response_format.colour"],
    ["hooks-approval", { rules: [{ tool: "a", action: "ask", colour: 1 }] }, ".rules[0].colour"],
  ];
  for (const [id, config, path] of deep) {
    const { plan, place } = planWith(id, config);
    const { errors, warnings } = await createRuntime().plans.check({ plan }, CALLER);
    assertEquals([errors, warnings.map(({ path }) => path)], [[], [`${place}${path}`]]);
    assertEquals(await mounts(id, config), true, path);
  }
});

/** Configs that the module accepts, so its schema must accept them too. */
const RIGHT: [id: string, config: JsonObject][] = [
  ["loop-basic", {
    max_iterations: null,
    fallback: null,
    steering: null,
    default_provider: null,
    response_format: null,
  }],
  ["loop-streaming", {
    max_iterations: -1,
    fallback: ["a"],
    temperature: 0.5,
    stop: ["x"],
    tool_choice: "auto",
  }],
  ["loop-events", {
    response_format: { type: "json_schema", json_schema: { name: "x", schema: {} }, name: "x" },
  }],
  ["context-simple", { max_tool_result_bytes: null, max_tokens: 1000, colour: "blue" }],
  ["context-summarizing", { summary_provider: null, summary_timeout_s: 5 }],
  ["provider-mock", {
    responses: ["a", { tool_calls: [{ name: "x", arguments: null }], usage: { cost_usd: null } }],
  }],
  ["provider-mock", { models: ["a", { id: "b", capabilities: [] }], debug: true }],
  ["hooks-logging", { path: null, stderr: true, additional_events: [] }],
  ["hooks-timing", { debug: null }],
  ["tool-calculator", {}],
];

for (const [id, config] of RIGHT) {
  Deno.test(`check() and mount() of ${id} accept ${JSON.stringify(config)}`, async () => {
    const { plan } = planWith(id, config);
    assertEquals((await createRuntime().plans.check({ plan }, CALLER)).errors, []);
    assertEquals(await mounts(id, config), true);
  });
}

const TEXT = `session: {orchestrator: loop-basic, context: context-simple}
orchestrator: {config: {max_iteration: 5}}
providers:
  - module: provider-mock
    config:
      chunk_chars: "8"
`;

Deno.test("a run whose plan has an invalid config is 400 plan_invalid with line, column and hint, before anything runs", async () => {
  await using preamp = disposable();
  const send = (path: string) =>
    preamp.fetch(
      new Request(`http://localhost${path}`, {
        method: "POST",
        headers: { "content-type": "application/yaml" },
        body: TEXT,
      }),
    );
  const expected = [
    ["orchestrator.config.max_iteration", 2, 25, 'did you mean "max_iterations"?'],
    ["providers[0].config.chunk_chars", 6, 7, "write it without quotes"],
  ];
  const response = await send("/v1/runs?prompt=x");
  const { error } = await response.json();
  assertEquals([response.status, error.code, placesOf(error.details)], [400, "plan_invalid", expected]);
  const checked = await (await send("/v1/plans/check")).json();
  assertEquals([checked.ok, placesOf(checked.errors)], [false, expected]);
  const { data } = await (await preamp.fetch(new Request("http://localhost/v1/runs"))).json();
  assertEquals(data, []);
});

Deno.test("check() reports config errors together with the policy's reasons, and those of agents at their paths", async () => {
  const { plans } = createRuntime();
  const both = TEXT + "tools: [tool-unknown]\n";
  const { errors } = await plans.check({ plan: both }, CALLER);
  assertEquals(errors.map(({ path, line }) => [path, line]), [
    ["orchestrator.config.max_iteration", 2],
    ["providers[0].config.chunk_chars", 6],
    ["tools[0]", 7],
  ]);
  const agent = "session: {orchestrator: loop-basic, context: context-simple}\nproviders: [provider-mock]\n" +
    "agents:\n  a: {tools: [{module: tool-task, config: {inherit_contxt: all}}]}\n";
  const found = await plans.check({ plan: agent }, CALLER);
  assertEquals(found.errors.map(({ path, line, hint }) => [path, line, hint]), [
    ["agents.a.tools[0].config.inherit_contxt", 4, 'did you mean "inherit_context"?'],
  ]);
});

function placesOf(details: { path: string; line: number; column: number; hint: string }[]): unknown[] {
  return details.map(({ path, line, column, hint }) => [path, line, column, hint]);
}

function disposable() {
  const preamp = createPreamp({ authenticate: null });
  return { ...preamp, [Symbol.asyncDispose]: preamp.close };
}

Deno.test("check() warns of secrets in plain text in an operator's plan, and in its agents", async () => {
  await using runtime = createRuntime({ env: () => "set" });
  const plan = {
    session: SESSION,
    providers: [
      { module: "provider-openai", config: { api_key: "sk-1234", headers: { "X-Api-Key": "abc" } } },
      { module: "provider-anthropic", config: { api_key: "${MY_KEY}" } },
    ],
    agents: { helper: { providers: [{ module: "provider-gemini", config: { api_key: "k" } }] } },
  };
  const literals = async (origin: Caller["origin"]) => {
    const { warnings } = await runtime.plans.check({ plan: JSON.stringify(plan) }, { ...CALLER, origin });
    return warnings.filter(({ code }) => code === "secret_literal");
  };
  const found = await literals("operator");
  assertEquals(found.map(({ path, line }) => [path, line]), [
    ["providers[0].config.api_key", 1],
    ["providers[0].config.headers.X-Api-Key", 1],
    ["agents.helper.providers[0].config.api_key", 1],
  ]);
  assertEquals(found[0]?.message, "The plan has the value of api_key in plain text");
  assert(!JSON.stringify(found).includes("sk-1234"), "the value is in no warning");
  assertEquals(await literals("caller"), []);
});
