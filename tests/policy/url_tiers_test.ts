import { compilePlan } from "../../src/plan/compile.ts";
import { authorise, type TierAnswer } from "../../src/policy/authorise.ts";
import type { Tier } from "../../src/plan/check/check_spec.ts";
import type { Origin } from "../../src/policy/policy.ts";
import { defaultPolicy } from "../../src/policy/settings.ts";
import { assertEquals, assertMatch } from "../assert.ts";
import { refusal } from "../support/plans.ts";

const BUILTINS = new Set(["loop-streaming", "context-simple", "provider-mock"]);
const URL_SOURCE = "https://own.example/modules/mod.ts";

async function tierOf(
  origin: Origin,
  options: { inline?: boolean; isolation?: Tier; processes?: boolean; source?: string; integrity?: string } =
    {},
): Promise<Tier | undefined> {
  const { inline = false, isolation, processes = false, source = URL_SOURCE, integrity } = options;
  const policy = defaultPolicy();
  policy.modules.allow = ["https://own.example/"];
  if (inline) policy.modules.inline = ["https://own.example/modules/"];
  const tool = {
    module: "tool-x",
    source,
    ...(isolation ? { isolation } : {}),
    ...(integrity ? { integrity } : {}),
  };
  const compiled = await compilePlan({
    session: { orchestrator: "loop-streaming", context: "context-simple" },
    providers: ["provider-mock"],
    tools: [tool],
  }, { origin });
  const processTier = (): TierAnswer =>
    processes ? { available: true } : { available: false, reason: "this host has no process" };
  return authorise(compiled, { origin, policy, builtins: BUILTINS, processTier }).tiers["tools[0]"];
}

Deno.test("authorise() gives a caller's URL module inline from an origin in modules.inline alone", async () => {
  assertEquals(await tierOf("caller", { inline: true }), "inline");
  const error = await refusal(() => tierOf("caller"));
  assertEquals(error.code, "isolation_unavailable");
  assertEquals(error.details, [{
    path: "tools[0].isolation",
    message: 'Cannot run module "tool-x" in tier "process": this host has no process',
    hint:
      "use built-in modules; the operator can add what is missing, or offer the module in a plan of the server",
  }]);
});

Deno.test("authorise() gives an operator's URL module a process, and never a weaker tier", async () => {
  assertEquals((await refusal(() => tierOf("operator"))).code, "isolation_unavailable");
  assertEquals(await tierOf("operator", { processes: true }), "process");
});

Deno.test("authorise() refuses inline for a source that is not trusted, and a process that is unavailable", async () => {
  const processes = true;
  for (const origin of ["caller", "operator"] as const) {
    const error = await refusal(() => tierOf(origin, { isolation: "inline", processes }));
    assertEquals(error.code, "policy_refused");
  }
  assertEquals(await tierOf("caller", { inline: true, isolation: "process", processes }), "process");
  assertEquals(
    (await refusal(() => tierOf("operator", { isolation: "process" }))).code,
    "isolation_unavailable",
  );
});

Deno.test("authorise() runs bytes inline that an operator's plan trusts by their digest, and no others", async () => {
  const integrity = `sha256-${"A".repeat(43)}=`;
  const source = "file:///srv/agents/modules/tool-x.js";
  assertEquals(await tierOf("operator", { source, integrity, isolation: "inline" }), "inline");
  const refused = [
    ["operator", { source, isolation: "inline", processes: true }, "policy_refused"], // no digest
    ["operator", { source, integrity }, "isolation_unavailable"], // a digest alone pins, and trusts nothing
    ["caller", { integrity, isolation: "inline", processes: true }, "policy_refused"],
  ] as const;
  for (const [origin, options, code] of refused) {
    assertEquals((await refusal(() => tierOf(origin, options))).code, code);
  }
  const { details } = await refusal(() => tierOf("operator", { source }));
  assertMatch(details[0]!.hint ?? "", /vendor it with preamp plan vendor --inline/);
});

Deno.test("authorise() refuses a URL that the policy does not allow, before anything is fetched", async () => {
  for (const source of ["https://evil.example/mod.ts", "./mod.ts", "data:text/javascript,1"]) {
    const error = await refusal(() => tierOf("caller", { inline: true, source }));
    assertEquals([source, error.code, error.details[0]?.path], [
      source,
      "module_source_denied",
      "tools[0].source",
    ]);
  }
});

Deno.test("authorise() without the tiers of a host loads built-in modules only", async () => {
  const compiled = await compilePlan({
    session: { orchestrator: "loop-streaming", context: "context-simple" },
    providers: ["provider-mock"],
    tools: [{ module: "tool-x", source: URL_SOURCE }],
  }, { origin: "operator" });
  const error = await refusal(() =>
    authorise(compiled, { origin: "operator", policy: defaultPolicy(), builtins: BUILTINS })
  );
  assertMatch(error.message, /built-in modules only/);
});

Deno.test("authorise() does not ask for the tiers of the host when all modules are built in", async () => {
  const compiled = await compilePlan({
    session: { orchestrator: "loop-streaming", context: "context-simple" },
    providers: ["provider-mock"],
  }, { origin: "caller" });
  const processTier = () => {
    throw new Error("not expected to be called");
  };
  const policy = defaultPolicy();
  const { tiers } = authorise(compiled, { origin: "caller", policy, builtins: BUILTINS, processTier });
  assertEquals(tiers["providers[0]"], "inline");
});

Deno.test("authorise() refuses a plan with more sandboxes than a session may have, before anything else", async () => {
  const policy = defaultPolicy();
  policy.modules.allow = ["https://own.example/"];
  policy.modules.inline = ["https://own.example/modules/"];
  const authoriseTools = async (count: number, source: (index: number) => string) => {
    const tools = Array.from({ length: count }, (_, index) => ({ module: "tool-x", source: source(index) }));
    const compiled = await compilePlan({
      session: { orchestrator: "loop-streaming", context: "context-simple" },
      providers: ["provider-mock"],
      tools: tools.map((tool, index) => ({ ...tool, config: { index } })),
    }, { origin: "caller" });
    const processTier = (): TierAnswer => ({ available: true });
    return authorise(compiled, { origin: "caller", policy, builtins: BUILTINS, processTier });
  };
  const max = policy.isolation.max_guests_per_session;
  await authoriseTools(max, (index) => `https://own.example/${index}.ts`);
  await authoriseTools(max + 1, (index) => `https://own.example/modules/${index}.ts`);
  const error = await refusal(() => authoriseTools(max + 2, (index) => `https://other.example/${index}.ts`));
  assertEquals([error.code, error.details], ["policy_refused", [{
    path: `tools[${max}]`,
    message: `Cannot start ${max + 2} modules from URLs: a session has at most ${max} sandboxes`,
    hint: "use fewer modules; the operator sets isolation.max_guests_per_session",
  }]]);
});

Deno.test("authorise() does not list the operator's own sources, hosts and folders to a caller", async () => {
  const policy = defaultPolicy();
  policy.modules.allow = ["https://internal.example/"];
  policy.permissions.max.net = ["db.internal.example"];
  policy.permissions.max.read = ["/srv/internal"];
  policy.env.allow = ["INTERNAL_TOKEN"];
  const compiled = await compilePlan({
    session: { orchestrator: "loop-streaming", context: "context-simple" },
    providers: [{
      module: "provider-mock",
      config: { base_url: "https://asked.example", api_key: "${ASKED}" },
    }],
    tools: [
      { module: "tool-x", source: "https://asked.example/x.ts" },
      { module: "tool-x", permissions: { net: ["asked.example"], read: ["/asked"] } },
    ],
  }, { origin: "caller" });
  const processTier = (): TierAnswer => ({ available: true });
  const error = await refusal(() =>
    authorise(compiled, { origin: "caller", policy, builtins: BUILTINS, processTier })
  );
  const text = JSON.stringify([error.message, error.details]).toLowerCase();
  assertEquals(text.includes("internal"), false);
  for (const asked of ["https://asked.example/x.ts", "/asked", "${asked}"]) {
    assertMatch(text, new RegExp(RegExp.escape(asked)));
  }
});
