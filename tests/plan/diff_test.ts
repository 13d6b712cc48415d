import { compilePlan } from "../../src/plan/compile.ts";
import { type ComparedPlan, diffPlans } from "../../src/plan/diff.ts";
import type { PlanDiff } from "../../src/plan/diff_module.ts";
import type { JsonObject } from "../../src/sdk/json.ts";
import { assert, assertEquals } from "../assert.ts";
import { GOOD } from "../support/plans.ts";
import * as fc from "fast-check";

async function plan(more: JsonObject = {}): Promise<ComparedPlan> {
  return await compilePlan({ ...GOOD, ...more }, { origin: "operator", base_url: "file:///plans/a.yaml" });
}

async function diff(from: JsonObject, to: JsonObject): Promise<PlanDiff> {
  return diffPlans(await plan(from), await plan(to), (_, value) => value);
}

/** Returns `[list, path]` of every change. */
function places({ widens, narrows, other }: PlanDiff): string[] {
  return [
    ...widens.map(({ path }) => `widens ${path}`),
    ...narrows.map(({ path }) => `narrows ${path}`),
    ...other.map(({ path }) => `other ${path}`),
  ];
}

const URL_TOOL = { module: "tool-x", source: "https://m.example.com/x.ts" };
const PIN = `sha256-${"A".repeat(42)}A=`;
const OTHER_PIN = `sha256-${"B".repeat(42)}A=`;

const tools = (...list: unknown[]) => ({ tools: list });
const hooks = (...list: unknown[]) => ({ hooks: list });
const rules = (...list: unknown[]) => ({ hooks: [{ module: "hooks-approval", config: { rules: list } }] });
const ask = (tool: string) => ({ tool, action: "ask" });
const deny = (tool: string) => ({ tool, action: "deny" });
const allow = (tool: string) => ({ tool, action: "allow" });

const to = (base_url: string | null) => ({
  providers: [{ module: "provider-openai", config: { base_url } }],
});

const CASES: readonly (readonly [string, JsonObject, JsonObject, string[]])[] = [
  ["nothing for equal plans", tools(URL_TOOL), tools(URL_TOOL), []],
  ["nothing for short forms of the same", tools("tool-todo"), tools({ module: "tool-todo" }), []],
  ["an added tool", {}, tools("tool-todo"), ["widens tools[0]"]],
  ["a removed tool", tools("tool-todo"), {}, ["narrows tools[0]"]],
  ["a removed hook", { hooks: ["hooks-timing"] }, {}, ["widens hooks[0]"]],
  ["an added approval", {}, { hooks: ["hooks-approval"] }, ["narrows hooks[0]"]],
  ["an added watcher", {}, { hooks: ["hooks-timing"] }, ["other hooks[0]"]],
  ["a hook from a URL", {}, { hooks: [{ module: "hooks-x", source: "https://m.example.com/h.ts" }] }, [
    "widens hooks[0]",
  ]],
  ["another host of a provider", to("https://a.example/v1"), to("https://b.example/v1"), [
    "widens providers[0].config.base_url",
  ]],
  ["a host in place of the vendor's", to(null), to("http://127.0.0.1:1"), [
    "widens providers[0].config.base_url",
  ]],
  ["the vendor's host", to("https://a.example"), to(null), ["widens providers[0].config.base_url"]],
  ["an address in a variable", to("https://a.example"), to("${BASE}"), [
    "widens providers[0].config.base_url",
    "widens providers[0].config.base_url",
  ]],
  ["another path of the same host", to("https://a.example/v1"), to("https://a.example:443/v2"), [
    "other providers[0].config.base_url",
  ]],
  ["another loop", {}, { session: { ...GOOD.session, orchestrator: "loop-basic" } }, [
    "widens session.orchestrator",
  ]],
  ["another source", tools(URL_TOOL), tools({ ...URL_TOOL, source: "https://m.example.com/y.ts" }), [
    "widens tools[0].source",
  ]],
  ["a source removed", tools({ ...URL_TOOL, module: "tool-todo" }), tools("tool-todo"), [
    "narrows tools[0].source",
  ]],
  ["a pin removed", tools({ ...URL_TOOL, integrity: PIN }), tools(URL_TOOL), ["widens tools[0].integrity"]],
  ["a pin", tools(URL_TOOL), tools({ ...URL_TOOL, integrity: PIN }), ["narrows tools[0].integrity"]],
  ["another pin", tools({ ...URL_TOOL, integrity: PIN }), tools({ ...URL_TOOL, integrity: OTHER_PIN }), [
    "widens tools[0].integrity",
  ]],
  [
    "a weaker tier",
    tools({ ...URL_TOOL, isolation: "process" }),
    tools({ ...URL_TOOL, isolation: "inline" }),
    [
      "widens tools[0].isolation",
    ],
  ],
  ["a tier removed", tools({ ...URL_TOOL, isolation: "process" }), tools(URL_TOOL), [
    "widens tools[0].isolation",
  ]],
  [
    "a hook that a run may go without",
    hooks({ module: "hooks-x" }),
    hooks({ module: "hooks-x", required: false }),
    [
      "widens hooks[0].required",
    ],
  ],
  ["a hook that is required", hooks({ module: "hooks-x" }), hooks({ module: "hooks-x", required: true }), [
    "narrows hooks[0].required",
  ]],
  ["a tool that is required", tools(URL_TOOL), tools({ ...URL_TOOL, required: true }), [
    "other tools[0].required",
  ]],
  ["a tier", tools(URL_TOOL), tools({ ...URL_TOOL, isolation: "process" }), ["narrows tools[0].isolation"]],
  [
    "a host instead of another",
    tools({ module: "tool-todo", permissions: { net: ["a.com"] } }),
    tools({ module: "tool-todo", permissions: { net: ["b.com"] } }),
    ["widens tools[0].permissions.net", "narrows tools[0].permissions.net"],
  ],
  [
    "one port of a host",
    tools({ module: "tool-todo", permissions: { net: ["a.com", "[::1]"] } }),
    tools({ module: "tool-todo", permissions: { net: ["a.com:443", "[::1]:80"] } }),
    ["narrows tools[0].permissions.net", "narrows tools[0].permissions.net"],
  ],
  [
    "a folder in a folder",
    tools({ module: "tool-todo", permissions: { read: ["./data/x/"], env: ["A_B"], ffi: false } }),
    tools({ module: "tool-todo", permissions: { read: ["./data"], env: ["A_*"], ffi: true } }),
    [
      "widens tools[0].permissions.read",
      "widens tools[0].permissions.env",
      "widens tools[0].permissions.ffi",
    ],
  ],
  ["the default grant", tools("tool-todo"), { ...tools("tool-todo"), permissions: { run: ["git"] } }, [
    "widens permissions.run",
  ]],
  [
    "a block that hid the default grant",
    { ...tools({ module: "tool-todo", permissions: {} }), permissions: { net: true } },
    { ...tools("tool-todo"), permissions: { net: true } },
    ["widens permissions.net"],
  ],
  ["a raised limit", { limits: { max_tool_calls: 3 } }, { limits: { max_tool_calls: 4 } }, [
    "widens limits.max_tool_calls",
  ]],
  ["money as money", { limits: { max_cost_usd: "0.50" } }, { limits: { max_cost_usd: "0.5" } }, []],
  ["less money", { limits: { max_cost_usd: "10" } }, { limits: { max_cost_usd: "9" } }, [
    "narrows limits.max_cost_usd",
  ]],
  [
    "limits of many digits",
    {
      limits: { max_total_tokens: 9_007_199_254_740_991, max_duration_s: 0.0012345678901234567 },
    },
    { limits: { max_total_tokens: 9_007_199_254_740_990, max_duration_s: 1e21 } },
    [
      "widens limits.max_duration_s",
      "narrows limits.max_total_tokens",
    ],
  ],
  ["a limit removed", { limits: { max_duration_s: 3 } }, {}, ["widens limits.max_duration_s"]],
  [
    "a variable",
    tools({ module: "tool-todo", config: {} }),
    tools({ module: "tool-todo", config: { token: "${TOKEN}" } }),
    ["widens tools[0].config.token", "other tools[0].config.token"],
  ],
  [
    "a variable for another module",
    tools({ module: "tool-todo", config: { t: "${T}" } }, { module: "tool-calculator", config: { t: "1" } }),
    tools({ module: "tool-todo", config: { t: "1" } }, { module: "tool-calculator", config: { t: "${T}" } }),
    [
      "widens tools[1].config.t",
      "narrows tools[0].config.t",
      "other tools[0].config.t",
      "other tools[1].config.t",
    ],
  ],
  [
    "an added ask beside the preset read-only",
    {
      hooks: [{ module: "hooks-approval", config: { preset: "read-only", rules: [deny("a")] } }],
    },
    { hooks: [{ module: "hooks-approval", config: { preset: "read-only", rules: [deny("a"), ask("b")] } }] },
    [
      "widens hooks[0].config.rules",
    ],
  ],
  ["rules made stricter", rules(ask("a")), rules(deny("b"), deny("a")), ["narrows hooks[0].config.rules"]],
  ["an added ask at the end", rules(deny("a")), rules(deny("a"), ask("b")), [
    "narrows hooks[0].config.rules",
  ]],
  ["rules made looser", rules(deny("a")), rules(ask("a")), ["widens hooks[0].config.rules"]],
  ["a rule removed", rules(ask("a")), rules(), ["widens hooks[0].config.rules"]],
  ["a rule that allows", rules(ask("a")), rules(ask("a"), allow("*")), ["widens hooks[0].config.rules"]],
  ["a rule that asks before one that denies", rules(deny("*")), rules(ask("a"), deny("*")), [
    "widens hooks[0].config.rules",
  ]],
  [
    "a rule for a command before another",
    rules(deny("bash")),
    rules({ tool: "bash", argv: ["rm", "*"], action: "deny" }, deny("bash")),
    ["widens hooks[0].config.rules"],
  ],
  [
    "paths that are allowed and denied",
    tools({ module: "tool-todo", config: { allowed_write_paths: ["a", "b"], denied_read_paths: ["x"] } }),
    tools({ module: "tool-todo", config: { allowed_write_paths: ["a"], denied_read_paths: [] } }),
    ["widens tools[0].config.denied_read_paths", "narrows tools[0].config.allowed_write_paths"],
  ],
  ["config in general", tools("tool-todo"), tools({ module: "tool-todo", config: { a: { b: 1 } } }), [
    "other tools[0].config.a.b",
  ]],
  ["the system instruction", {}, { system: "x" }, ["other system"]],
  ["the order", tools("tool-todo", "tool-calculator"), tools("tool-calculator", "tool-todo"), [
    "other tools",
  ]],
  [
    "agents",
    { agents: { a: { description: "x", tools: [] }, b: {} } },
    { agents: { a: { description: "y", tools: ["tool-todo"] }, c: {} } },
    ["widens agents.a.tools", "widens agents.c", "narrows agents.b", "other agents.a.description"],
  ],
  ["an injection budget gone", { session: { ...GOOD.session, injection_budget_per_turn: 5 } }, {}, [
    "widens session.injection_budget_per_turn",
  ]],
];

for (const [what, from, to, expected] of CASES) {
  Deno.test(`diffPlans() reports ${what}`, async () => {
    assertEquals(places(await diff(from, to)).sort(), [...expected].sort());
  });
}

Deno.test("diffPlans() reports old and new values", async () => {
  const { widens } = await diff({ limits: { max_tool_calls: 3 } }, { limits: { max_tool_calls: 4 } });
  assertEquals(widens, [{
    path: "limits.max_tool_calls",
    from: 3,
    to: 4,
    message: "The limit max_tool_calls was raised",
  }]);
});

/**
 * Returns whether Deno would allow an access under a grant. Implemented independently of the code under test.
 */
const PROBES = [
  { name: "net", probe: "a.com:80", by: ["a.com", "a.com:80", "A.com", "*.a.com"] },
  { name: "net", probe: "a.com:443", by: ["a.com", "a.com:443", "A.com", "*.a.com"] },
  { name: "net", probe: "x.a.com:80", by: ["x.a.com", "*.a.com", "*.x.a.com"] },
  { name: "net", probe: "y.x.a.com:80", by: ["*.a.com", "*.x.a.com"] },
  { name: "read", probe: "./d/e/f", by: ["./d", "d/e", "./d/e/f", "."] },
  { name: "read", probe: "/d/e", by: ["/", "/d", "/d/e"] },
  { name: "write", probe: "./d/ef", by: ["./d", "."] },
  { name: "env", probe: "AB", by: ["A*", "AB"] },
  { name: "env", probe: "A", by: ["A*"] },
  { name: "run", probe: "git", by: ["git"] },
  { name: "ffi", probe: "./lib.so", by: ["./lib.so"] },
  { name: "sys", probe: "hostname", by: ["hostname"] },
] as const;

const ENTRIES: Record<string, string[]> = {};
for (const { name, by } of PROBES) ENTRIES[name] = [...new Set([...ENTRIES[name] ?? [], ...by])];

const grant = fc.record(
  Object.fromEntries(
    Object.entries(ENTRIES).map(([name, entries]) => [name, fc.oneof(fc.boolean(), fc.subarray(entries))]),
  ),
  { requiredKeys: [] },
);

function allows(permissions: JsonObject, name: string, by: readonly string[]): boolean {
  const value = permissions[name];
  return value === true || Array.isArray(value) && value.some((entry) => by.includes(entry));
}

Deno.test("diffPlans() always reports a wider grant as widening, for every module", async () => {
  await fc.assert(
    fc.asyncProperty(grant, grant, fc.boolean(), async (before, after, standard) => {
      const from = standard
        ? { ...tools("tool-todo"), permissions: before }
        : tools({ module: "tool-todo", permissions: before });
      const { widens } = await diff(from, tools({ module: "tool-todo", permissions: after }));
      for (const { name, by } of PROBES) {
        if (!allows(after, name, by) || allows(before, name, by)) continue;
        assert(widens.some(({ path }) => path === `tools[0].permissions.${name}`), name);
      }
    }),
    { numRuns: 300 },
  );
});

Deno.test("diffPlans() in the other direction swaps widened and narrowed grants and limits", async () => {
  await fc.assert(
    fc.asyncProperty(grant, grant, fc.nat(9), fc.nat(9), async (before, after, less, more) => {
      const [a, b] = [before, after].map((permissions, index) => ({
        ...tools({ module: "tool-todo", permissions }),
        limits: { max_tool_calls: index === 0 ? less : more },
      }));
      const forth = await diff(a!, b!);
      const back = await diff(b!, a!);
      const paths = (changes: { path: string }[]) => changes.map(({ path }) => path).sort();
      assertEquals(paths(forth.widens), paths(back.narrows));
      assertEquals(paths(forth.narrows), paths(back.widens));
    }),
    { numRuns: 100 },
  );
});

const random = fc.array(
  fc.record({ tool: fc.constantFrom("a", "b", "*"), action: fc.constantFrom("allow", "ask", "deny") }),
  {
    maxLength: 4,
  },
);

Deno.test("diffPlans() never reports rules as stricter if they decide any call more loosely", async () => {
  const strict = { allow: 0, ask: 1, deny: 2 };
  // without a rule, the tool's own declaration decides whether to ask
  const decide = (list: { tool: string; action: string }[], tool: string, standard: number) => {
    const rule = list.find((one) => one.tool === "*" || one.tool === tool);
    return rule ? strict[rule.action as keyof typeof strict] : standard;
  };
  await fc.assert(
    fc.asyncProperty(random, random, async (before, after) => {
      const { widens } = await diff(rules(...before), rules(...after));
      const looser = ["a", "b", "c"].some((tool) =>
        [0, 1].some((standard) => decide(after, tool, standard) < decide(before, tool, standard))
      );
      if (looser) assert(widens.some(({ path }) => path === "hooks[0].config.rules"));
    }),
    { numRuns: 500 },
  );
});

Deno.test("diffPlans() reports many new entries of a permission as one change with both lists", async () => {
  const net = (count: number) =>
    tools({ ...URL_TOOL, permissions: { net: Array.from({ length: count }, (_, at) => `a${at}.example`) } });
  assertEquals((await diff(net(0), net(20))).widens.length, 20);
  const { widens } = await diff(net(0), net(200));
  assertEquals(widens.map(({ path, message }) => [path, message]), [
    ["tools[0].permissions.net", '"tool-x" is granted 200 entries of net'],
  ]);
  assertEquals((widens[0]?.to as unknown[]).length, 200);
});
