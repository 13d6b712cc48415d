import { DOCUMENT_LIMITS } from "../../src/plan/parse/document_limits.ts";
import { parsePolicy, policyFromData } from "../../src/policy/parse_policy.ts";
import { documentLimits } from "../../src/policy/limits.ts";
import { policyFor } from "../../src/policy/policy.ts";
import { defaultPolicy, OUTSIDE_SETTINGS, settingsToData } from "../../src/policy/settings.ts";
import { assert, assertEquals, assertMatch, assertStringIncludes } from "../assert.ts";
import { detailAt, refusal } from "../support/plans.ts";

/** A policy that sets every documented key. */
const DOCUMENT = `
listen: {host: 127.0.0.1, port: 8484}
cors: {origins: ["https://app.example.com", "http://localhost:5173"]}
plans: plans/
store: memory
retention: {days: 30, idempotency_hours: 24}
rates: {requests_per_minute: 600, runs_per_minute: 120}
auth: {keys: [{name: ci, sha256: "${"0".repeat(64)}", policy: small, namespace: app, retires_at: 2027-01-31}]}
modules: {allow: ["https://modules.example.com/agents/", "data:"], inline: [], frozen: false, private_hosts: ["127.0.0.1:9000"]}
policies: {small: {limits: {max_total_tokens: 50000}, permissions: {max: {net: []}}}}
env: {allow: []}
permissions: {max: {net: ["api.example.com"], read: [], write: [], env: [], run: [], sys: [], ffi: false, import: []}}
isolation: {urls_from_callers: process, urls_from_operator: process, memory_mb: 256, cpu_s: 30, load_timeout_s: 10}
limits: {max_iterations: 50, max_tool_calls: 200, max_total_tokens: 1000000, max_cost_usd: "5", max_duration_s: 600,
         max_concurrent_runs: 64, max_runs_per_key: 16, max_body_bytes: 1048576, tool_timeout_s: 60, max_tool_result_bytes: 131072}
`;

Deno.test("parsePolicy() reads every key of the documented policy", async () => {
  const policy = await parsePolicy(DOCUMENT);
  const expected = defaultPolicy();
  expected.store = "memory";
  expected.cors.origins = ["https://app.example.com", "http://localhost:5173"];
  expected.auth.keys = [{
    name: "ci",
    sha256: "0".repeat(64),
    namespace: "app",
    retires_at: "2027-01-31",
    policy: "small",
  }];
  expected.modules.allow = ["https://modules.example.com/agents/", "data:"];
  expected.modules.private_hosts = ["127.0.0.1:9000"];
  expected.permissions.max.net = ["api.example.com"];
  expected.policies = { small: { limits: { max_total_tokens: 50_000 }, permissions: { max: { net: [] } } } };
  assertEquals(policy, expected);
});

Deno.test("defaultPolicy() is safe: loopback, nothing granted, nothing loaded, no variables", () => {
  const policy = defaultPolicy();
  assertEquals(policy.listen.host, "127.0.0.1");
  assertEquals([policy.modules.allow, policy.modules.inline, policy.env.allow], [[], [], []]);
  assertEquals(policy.permissions.max, {
    net: [],
    read: [],
    write: [],
    env: [],
    run: [],
    sys: [],
    ffi: false,
    import: [],
  });
});

Deno.test("documentLimits() of the default policy are the parser's own", () => {
  assertEquals(documentLimits(defaultPolicy()), { ...DOCUMENT_LIMITS });
});

Deno.test("defaultPolicy() returns a fresh copy each time", () => {
  defaultPolicy().permissions.max.net = true;
  defaultPolicy().modules.allow.push("data:");
  assertEquals(defaultPolicy().permissions.max.net, []);
  assertEquals(defaultPolicy().modules.allow, []);
});

Deno.test("parsePolicy() reads an empty object as all defaults", async () => {
  assertEquals(await parsePolicy("{}"), defaultPolicy());
});

Deno.test("parsePolicy() lists every finding with its place and a suggestion", async () => {
  const text = `limit: {}
limits:
  max_iteration: 5
  max_cost_usd: 5
  max_body_bytes: 1MB
listen: {port: 70000}
modules: {alow: []}
`;
  const error = await refusal(() => parsePolicy(text));
  assertEquals(error.code, "plan_invalid");
  assertStringIncludes(error.message, 'the settings file "preamp.yaml"');
  const found = error.details.map((
    { path, line, hint },
  ) => [path, line, hint?.startsWith("did you mean") ? hint : ""]);
  assertEquals(found.sort((a, b) => Number(a[1]) - Number(b[1])), [
    ["limit", 1, 'did you mean "limits"?'],
    ["limits.max_iteration", 3, 'did you mean "max_iterations"?'],
    ["limits.max_cost_usd", 4, ""],
    ["limits.max_body_bytes", 5, ""],
    ["listen.port", 6, ""],
    ["modules.alow", 7, 'did you mean "allow"?'],
  ]);
});

const BAD: Record<string, [path: string, text: string]> = {
  "an unknown section": ["colour", "colour: blue"],
  "a section that is not an object": ["env", "env: []"],
  "callers that may run programs": ["permissions.max.run", "permissions: {max: {run: [git]}}"],
  "callers that may load native code": ["permissions.max.ffi", "permissions: {max: {ffi: true}}"],
  "the former tier worker": ["isolation.urls_from_operator", "isolation: {urls_from_operator: worker}"],
  "a key that is not a hash": ["auth.keys[0].sha256", "auth: {keys: [{name: a, sha256: my-plain-key}]}"],
  "a hash in capitals": ["auth.keys[0].sha256", `auth: {keys: [{name: a, sha256: "${"A".repeat(64)}"}]}`],
  "a key that retires on a day that does not exist": [
    "auth.keys[0].retires_at",
    `auth: {keys: [{name: a, sha256: "${"0".repeat(64)}", retires_at: 2027-13-01}]}`,
  ],
  "a key that retires at a time without a zone": [
    "auth.keys[0].retires_at",
    `auth: {keys: [{name: a, sha256: "${"0".repeat(64)}", retires_at: "2027-01-01T10:00"}]}`,
  ],
  "a key without a name": ["auth.keys[0].name", `auth: {keys: [{sha256: "${"0".repeat(64)}"}]}`],
  "a policy that does not exist": [
    "auth.keys[0].policy",
    `auth: {keys: [{name: a, sha256: "${"0".repeat(64)}", policy: b}]}`,
  ],
  "two keys of one name": [
    "auth.keys[1].name",
    `auth: {keys: [{name: a, sha256: "${"0".repeat(64)}"}, {name: a, sha256: "${"1".repeat(64)}"}]}`,
  ],
  "one key twice": [
    "auth.keys[1].sha256",
    `auth: {keys: [{name: a, sha256: "${"0".repeat(64)}"}, {name: b, sha256: "${"0".repeat(64)}"}]}`,
  ],
  "a prefix that is not a URL": ["modules.allow[0]", "modules: {allow: [modules.example.com]}"],
  "a prefix with a query": ["modules.allow[0]", 'modules: {allow: ["https://a.example/?x=1"]}'],
  "a private host that is a URL": [
    "modules.private_hosts[0]",
    'modules: {private_hosts: ["http://127.0.0.1/"]}',
  ],
  "any origin": ["cors.origins[0]", 'cors: {origins: ["*"]}'],
  "an origin with a path": ["cors.origins[0]", 'cors: {origins: ["https://app.example.com/"]}'],
  "an unknown store": ["store", "store: redis://user:hunter22@host"],
  "a store whose URL is not valid": ["store", "store: postgres://user:hunter22@host:99999/runs"],
  "variables by a pattern": ["env.allow[0]", 'env: {allow: ["ORDERS_*"]}'],
  "a rate below zero": ["rates.runs_per_minute", "rates: {runs_per_minute: -1}"],
  "a key's policy with a section of the server": ["policies.a.listen", "policies: {a: {listen: {port: 1}}}"],
  "a key's policy with a limit of the server": [
    "policies.a.limits.max_concurrent_runs",
    "policies: {a: {limits: {max_concurrent_runs: 2}}}",
  ],
  "a key's policy with the guests of the server": [
    "policies.a.isolation.max_guests",
    "policies: {a: {isolation: {max_guests: 2}}}",
  ],
  "a key's policy with a bad limit": [
    "policies.a.limits.max_iterations",
    "policies: {a: {limits: {max_iterations: 0}}}",
  ],
};
for (const [what, [path, text]] of Object.entries(BAD)) {
  Deno.test(`parsePolicy() refuses ${what}`, async () => {
    const error = await refusal(() => parsePolicy(text));
    assert(detailAt(error, path).line === 1);
    assertEquals(/my-plain-key|hunter22/.test(JSON.stringify(error.details) + error.message), false);
  });
}

Deno.test("parsePolicy() refuses Deno KV, which was a store once, and names the others", async () => {
  const detail = detailAt(await refusal(() => parsePolicy("store: kv:runs.kv")), "store");
  assertMatch(detail.hint ?? "", /^Deno KV is no store any more: choose sqlite:PATH .* postgres:/);
});

Deno.test("policyFor() applies a key's policy over the server's; limits only become smaller", async () => {
  const policy = await parsePolicy(`
limits: {max_total_tokens: 1000, max_cost_usd: "2"}
permissions: {max: {net: [a.example, b.example], read: [./data]}}
env: {allow: [A]}
policies:
  small: {limits: {max_total_tokens: 500, max_cost_usd: "10", tool_timeout_s: 2, hook_timeout_s: 90}, permissions: {max: {net: []}}, env: {allow: []}}
  large: {limits: {max_total_tokens: 5000, max_cost_usd: "0.10"}, rates: {runs_per_minute: 1}}
`);
  const small = policyFor(policy, "small");
  assertEquals([small.limits.max_total_tokens, small.limits.max_cost_usd], [500, "2"]);
  assertEquals([small.limits.tool_timeout_s, small.limits.hook_timeout_s], [2, 30]);
  assertEquals([small.permissions.max.net, small.permissions.max.read, small.env.allow], [
    [],
    ["./data"],
    [],
  ]);
  const large = policyFor(policy, "large");
  assertEquals([large.limits.max_total_tokens, large.limits.max_cost_usd], [1000, "0.10"]);
  assertEquals([large.rates.runs_per_minute, large.rates.requests_per_minute], [1, 600]);
  assertEquals(policy.limits.max_total_tokens, 1000);
  assertEquals(policyFor(policy), policy);
});

Deno.test("policyFor() refuses a key whose policy does not exist", async () => {
  for (const name of ["gone", "constructor"]) {
    assertEquals((await refusal(() => policyFor(defaultPolicy(), name))).code, "forbidden");
  }
});

Deno.test("OUTSIDE_SETTINGS names every single key as a flag and as a variable of its own", () => {
  const settings = OUTSIDE_SETTINGS;
  const cost = settings.find(({ path }) => path === "limits.max_cost_usd");
  assertEquals(cost, {
    path: "limits.max_cost_usd",
    form: "text",
    variable: "PREAMP_LIMITS_MAX_COST_USD",
    default: "5",
    meaning: "What the model calls of one run may cost; calls without a known price do not count",
    range: 'a decimal number in quotes, such as "0.50"',
    unit: "US dollars",
  });
  assertEquals(new Set(settings.map(({ variable }) => variable)).size, settings.length);
  for (const [section, keys] of Object.entries(defaultPolicy())) {
    if (["auth", "mcp", "policies", "permissions"].includes(section)) continue;
    const paths = typeof keys === "object" ? Object.keys(keys).map((key) => `${section}.${key}`) : [section];
    for (const path of paths) assert(settings.some((setting) => setting.path === path), path);
  }
});

Deno.test("settingsToData() reads text by the form of each key", () => {
  const given: Record<string, string> = {
    "limits.max_cost_usd": "1",
    "limits.max_iterations": "7",
    "modules.frozen": "true",
    "env.allow": "A, B,",
    store: "memory",
  };
  const policy = policyFromData(settingsToData(({ path }) => given[path]));
  assertEquals([policy.limits.max_cost_usd, policy.limits.max_iterations, policy.modules.frozen], [
    "1",
    7,
    true,
  ]);
  assertEquals([policy.env.allow, policy.store], [["A", "B"], "memory"]);
});

Deno.test("settingsToData() keeps text of a wrong form for the check to report", async () => {
  const data = settingsToData(({ variable }) => variable === "PREAMP_LISTEN_PORT" ? "eighty" : undefined);
  const error = await refusal(() => policyFromData(data));
  assertMatch(detailAt(error, "listen.port").message, /received "eighty"/);
});
