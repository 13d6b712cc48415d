import { compilePlan } from "../../src/plan/compile.ts";
import { denoFlags, explainPlan, type Explanation, type ModuleFacts } from "../../src/plan/explain.ts";
import { askedOf, grantPath } from "../../src/plan/permissions/permission_block.ts";
import { specsOf } from "../../src/policy/authorise.ts";
import type { Permissions } from "../../src/sdk/contracts.ts";
import type { JsonObject } from "../../src/sdk/json.ts";
import type { ModuleSpec } from "../../src/sdk/plan.ts";
import { assertEquals } from "../assert.ts";
import { GOOD } from "../support/plans.ts";

const LIMITS = {
  max_iterations: 1,
  max_tool_calls: 1,
  max_total_tokens: 1,
  max_cost_usd: "1",
  max_duration_s: 1,
};
const HTTPS = "https://m.example.com/x.ts";

type Facts = Partial<Omit<ModuleFacts, "spec">>;

/** Explains a plan with the given facts about each module. */
async function explain(
  more: JsonObject,
  facts: (spec: ModuleSpec) => Facts = () => ({}),
): Promise<Explanation> {
  const { plan, plan_hash, env } = await compilePlan({ ...GOOD, limits: LIMITS, ...more }, {
    origin: "operator",
    base_url: "file:///plans/a.yaml",
  });
  const modules = specsOf(plan).map((spec): ModuleFacts => ({
    spec,
    asked: askedOf(spec, plan) ?? {},
    grant_path: grantPath(spec, plan),
    granted: askedOf(spec, plan) ?? {},
    dropped: [],
    tier: spec.source.kind === "url" ? "process" : "inline",
    prompts_to: null,
    pinned: true,
    declared: {},
    stated: { version: "1.0.0", description: "Does it" },
    ...(spec.source.kind === "url"
      ? { graph: { url: spec.source.url, integrity: "sha256-x", files: [], imports_refused: [] } }
      : {}),
    ...facts(spec),
  }));
  return explainPlan({
    plan,
    plan_hash,
    lock_hash: null,
    texts: [],
    instructions: null,
    limits: LIMITS,
    env,
    warnings: [],
    modules,
    base_url: "file:///plans/a.yaml",
  });
}

const grant = (permissions: Permissions) => ({
  tools: [{ module: "tool-todo", permissions }],
  hooks: ["hooks-approval"],
});
const from = (source: string) => ({ tools: [{ module: "tool-x", source }] });

const FLAGS: readonly (readonly [string, JsonObject, readonly string[], Facts?])[] = [
  ["a plan without risks", {}, []],
  ["a pinned module in a sandbox", from(HTTPS), []],
  [
    "a narrow grant",
    grant({ net: ["a.com:443"], read: ["./data"], write: ["/srv/data"], env: ["A"], sys: ["hostname"] }),
    [],
  ],
  ["run", grant({ run: ["git"] }), ["permission_run tools[0].permissions.run"]],
  ["all of run", grant({ run: true }), ["permission_run tools[0].permissions.run"]],
  ["ffi", grant({ ffi: true }), ["permission_ffi tools[0].permissions.ffi"]],
  ["every host", grant({ net: true }), ["permission_all_net tools[0].permissions.net"]],
  ["every variable", grant({ env: true }), ["permission_all_env tools[0].permissions.env"]],
  ["a wildcard host", grant({ net: ["*.a.com"] }), ["permission_wildcard_net tools[0].permissions.net"]],
  ["a network", grant({ net: ["10.0.0.0/8"] }), ["permission_wildcard_net tools[0].permissions.net"]],
  ["wildcard variables", grant({ env: ["AWS_*"] }), ["permission_wildcard_env tools[0].permissions.env"]],
  ...["/", "/etc", "/home/me", "C:\\", "..", "./../x", "."].map((path) =>
    [`writing ${path}`, grant({ write: [path] }), [
      "permission_broad_write tools[0].permissions.write",
    ]] as const
  ),
  ["an unpinned module", from(HTTPS), ["source_unpinned tools[0].source"], { pinned: false }],
  ["a module over http", from("http://127.0.0.1:1/x.ts"), ["source_http tools[0].source"]],
  ["code in the plan", from("data:text/javascript,export{}"), ["source_inline tools[0].source"]],
  ["a module in this process", from(HTTPS), ["isolation_inline tools[0]"], { tier: "inline" }],
  ["the plan's default grant", { ...grant({}), tools: ["tool-todo"], permissions: { net: true } }, [
    "permission_all_net permissions.net",
  ]],
  ["writing without an approval", { tools: [{ module: "tool-todo", permissions: { write: ["./x"] } }] }, [
    "approval_missing hooks",
  ]],
  ["no limits", { limits: { max_tool_calls: 1 } }, ["limits_missing limits"]],
];

for (const [what, plan, expected, facts] of FLAGS) {
  Deno.test(`explainPlan() flags ${what}`, async () => {
    const { red_flags, modules } = await explain(plan, ({ path }) => path === "tools[0]" ? facts ?? {} : {});
    assertEquals(red_flags.map(({ code, path }) => `${code} ${path}`), [...expected]);
    const own = modules.flatMap(({ red_flags }) => red_flags);
    assertEquals(own, red_flags.slice(0, own.length));
  });
}

Deno.test("explainPlan() reports wanted permissions that are not granted, and imports that will throw", async () => {
  const graph = {
    url: HTTPS,
    integrity: "sha256-x",
    files: [],
    imports_refused: [{ specifier: null, url: `${HTTPS}?key=1`, line: 3 }],
  };
  const { warnings } = await explain(
    { tools: [{ module: "tool-x", source: HTTPS, permissions: { net: ["a.com"] } }] },
    ({ path }) => path === "tools[0]" ? { declared: { net: ["a.com:80", "b.com"], run: true }, graph } : {},
  );
  assertEquals(warnings, [
    {
      code: "permission_not_granted",
      path: "tools[0]",
      message: `"tool-x" wants net b.com, all of run, which the plan does not grant`,
    },
    {
      code: "import_refused",
      path: "tools[0]",
      message: `${HTTPS}?…:3 imports a computed URL: it will throw`,
    },
  ]);
});

Deno.test("explainPlan() reports dropped entries, and whether policy or process withholds them", async () => {
  const dropped = [
    { permission: "net", entry: true, by: "process" },
    { permission: "read", entry: "./link", by: "policy" },
    { permission: "read", entry: "./b", by: "process" },
  ] as const;
  const asked = { net: true, read: ["./link", "./b", "./c"] };
  const { modules: [, , , tool] } = await explain(
    { tools: [{ module: "tool-todo", permissions: asked }] },
    ({ path }) => path === "tools[0]" ? { granted: { read: ["./c"] }, dropped } : {},
  );
  const { wanted, ...permissions } = tool!.permissions; // the fourth, after orchestrator, context and provider
  assertEquals(wanted, {});
  assertEquals(permissions, {
    asked,
    granted: { read: ["./c"] },
    refused: { net: true, read: ["./link", "./b"] },
  });
  const result = tool!.red_flags.filter(({ code }) => code === "permission_refused");
  assertEquals(result.map(({ path, message }) => `${path} ${message}`), [
    `tools[0].permissions.net "tool-todo" is granted all of net, which this process does not have`,
    `tools[0].permissions.read "tool-todo" is granted read "./link", which the policy does not allow`,
    `tools[0].permissions.read "tool-todo" is granted read "./b", which this process does not have`,
  ]);
});

Deno.test("explainPlan() names files relative to the plan", async () => {
  const { modules, deno_flags } = await explain(
    from("./a b/x.ts"),
    ({ path, source }) =>
      path === "tools[0]" && source.kind === "url"
        ? {
          graph: {
            url: source.url,
            integrity: "sha256-x",
            files: [{ url: source.url, sha256: "0", bytes: 1 }],
            imports_refused: [],
          },
        }
        : {},
  );
  assertEquals(modules.at(-1)?.files[0]?.url, "./a%20b/x.ts");
  assertEquals(deno_flags, ["--allow-read=./a b/x.ts"]);
});

Deno.test("denoFlags() is the union, without entries that another includes", () => {
  assertEquals(
    denoFlags([
      { net: ["b.com", "a.com:80"], read: ["./data/x", "/a,b", "./c/d,e/f"], ffi: false, env: [] },
      { net: ["a.com"], read: ["data"], sys: true },
      { sys: ["hostname"], run: ["git", "git"], env: ["A"] },
    ]),
    ["--allow-net=a.com,b.com", "--allow-read=./c,/,data", "--allow-env=A", "--allow-run=git", "--allow-sys"],
  );
  assertEquals(denoFlags([]), []);
});

Deno.test("denoFlags() grants a process exactly the given grants", async () => {
  const flags = denoFlags([{ net: ["127.0.0.1:1"], read: ["./a b/c"], env: ["A_*"] }, {
    sys: ["hostname"],
    run: ["git"],
  }]);
  const asked = [
    { name: "net", host: "127.0.0.1:1" },
    { name: "net", host: "127.0.0.1:2" },
    { name: "read", path: "./a b/c/d" },
    { name: "read", path: "./a b" },
    { name: "env", variable: "A_B" },
    { name: "env", variable: "B" },
    { name: "sys", kind: "hostname" },
    { name: "sys", kind: "osRelease" },
    { name: "run", command: "git" },
    { name: "run", command: "sh" },
    { name: "write", path: "./a b/c" },
    { name: "ffi" },
  ];
  const code = `console.log(JSON.stringify(${
    JSON.stringify(asked)
  }.map((one) => Deno.permissions.querySync(one).state)))`;
  const { stdout } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "--no-prompt", "--no-config", ...flags, `data:text/javascript,${encodeURIComponent(code)}`],
  }).output();
  const states = JSON.parse(new TextDecoder().decode(stdout)).map((state: string) => state === "granted");
  assertEquals(states, [true, false, true, false, true, false, true, false, true, false, false, false]);
});

const APPROVAL = (...rules: JsonObject[]) => ({ module: "hooks-approval", config: { rules } });

const SENTENCES: readonly (readonly [string, JsonObject, string | null, string])[] = [
  ["nothing", {}, null, "May touch nothing outside; sends prompts nowhere; never asks"],
  [
    "files, programs, hosts and questions",
    {
      tools: [
        {
          module: "tool-todo",
          permissions: { read: ["/w/src", "/w/docs"], write: ["/w/src"], run: ["deno"] },
        },
        { module: "tool-x", source: HTTPS, permissions: { run: ["git"], net: ["api.example.com"] } },
      ],
      hooks: [APPROVAL(
        { tool: "write", action: "ask" },
        { tool: "bash", argv: ["git", "push", "**"], action: "ask" },
        { tool: "bash", action: "deny" },
      )],
    },
    "api.vendor.example",
    "May read and write in /w/src, read in /w/docs, run deno and git, reach api.example.com; " +
    "sends prompts to api.vendor.example; " +
    "asks before write, bash git push **, writes, commands and risky calls (5 kinds of calls)",
  ],
  [
    "everything",
    {
      ...grant({ read: true, write: true, run: true, net: true, env: true, sys: true, ffi: true }),
      hooks: ["hooks-approval"],
    },
    null,
    "May read and write every file, run any program, reach every host, read every variable, " +
    "read all facts about this machine, load native libraries; sends prompts nowhere; asks before writes, commands and risky calls (3 kinds of calls)",
  ],
  [
    "all other calls",
    {
      hooks: [{
        module: "hooks-approval",
        config: { preset: "ask-all", rules: [{ tool: "write", input: { path: "docs/*" }, action: "ask" }] },
      }],
    },
    null,
    "May touch nothing outside; sends prompts nowhere; " +
    "asks before write path=docs/* and every other call (2 kinds of calls)",
  ],
  [
    "what is denied",
    { hooks: [{ module: "hooks-approval", config: { preset: "read-only" } }] },
    null,
    "May touch nothing outside; sends prompts nowhere; denies instead of asking",
  ],
  [
    "all files to read, one folder to write",
    grant({ read: true, write: ["/tmp/out"], env: ["A", "B", "C"] }),
    null,
    "May read every file, write in /tmp/out, read the variables A, B and C; sends prompts nowhere; " +
    "asks before writes, commands and risky calls (3 kinds of calls)",
  ],
];

for (const [name, plan, host, sentence] of SENTENCES) {
  Deno.test(`explainPlan() says in a sentence what a plan may touch: ${name}`, async () => {
    const { summary } = await explain(plan, ({ type }) => type === "provider" ? { prompts_to: host } : {});
    assertEquals(summary.text, sentence);
  });
}

Deno.test("explainPlan() flags a shell as what can start anything", async () => {
  const { red_flags } = await explain(grant({ run: ["/bin/bash", "git", "sh", "fish", "ssh", "bashful"] }));
  const codes = red_flags.map(({ code }) => code);
  assertEquals(codes, [
    "permission_shell",
    "permission_run",
    "permission_shell",
    "permission_shell",
    "permission_run",
    "permission_run",
  ]);
});

Deno.test("explainPlan() does not warn of a folder that a module wants when the plan grants another", async () => {
  const declared = { read: ["${WORKSPACE}"], write: ["${WORKSPACE}"] };
  const facts = ({ type }: ModuleSpec) => type === "tool" ? { declared } : {};
  const { warnings } = await explain(grant({ read: ["/w/src"] }), facts);
  assertEquals(warnings.map(({ message }) => message), [
    '"tool-todo" wants write ${WORKSPACE}, which the plan does not grant',
  ]);
});
