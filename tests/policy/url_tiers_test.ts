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
  options: { inline?: boolean; isolation?: Tier; tiers?: readonly Tier[]; source?: string } = {},
): Promise<Tier | undefined> {
  const { inline = false, isolation, tiers = [], source = URL_SOURCE } = options;
  const policy = defaultPolicy();
  policy.modules.allow = ["https://own.example/"];
  if (inline) policy.modules.inline = ["https://own.example/modules/"];
  const tool = { module: "tool-x", source, ...(isolation ? { isolation } : {}) };
  const compiled = await compilePlan({
    session: { orchestrator: "loop-streaming", context: "context-simple" },
    providers: ["provider-mock"],
    tools: [tool],
  }, { origin });
  const answerOf = (tier: Tier): TierAnswer =>
    tiers.includes(tier) ? { available: true } : { available: false, reason: `this host has no ${tier}` };
  const hostTiers = () => ({ worker: answerOf("worker"), process: answerOf("process") });
  return authorise(compiled, { origin, policy, builtins: BUILTINS, hostTiers }).tiers["tools[0]"];
}

Deno.test("authorise() gives a caller's URL module inline from an origin in modules.inline alone", async () => {
  assertEquals(await tierOf("caller", { inline: true }), "inline");
  const error = await refusal(() => tierOf("caller"));
  assertEquals(error.code, "isolation_unavailable");
  assertEquals(error.details, [{
    path: "tools[0].isolation",
    message: 'Cannot run module "tool-x" in tier "process": this host has no process',
    hint: "the operator can add what is missing (GET /readyz lists it); built-in modules need no tier",
  }]);
});

Deno.test("authorise() gives an operator's URL module the policy's tier, and never a weaker one", async () => {
  assertEquals((await refusal(() => tierOf("operator"))).code, "isolation_unavailable");
  assertEquals(
    (await refusal(() => tierOf("operator", { tiers: ["worker"] }))).code,
    "isolation_unavailable",
  );
  assertEquals(await tierOf("operator", { tiers: ["worker", "process"] }), "process");
});

Deno.test("authorise() refuses a tier that is weaker than the policy's, or unavailable", async () => {
  const tiers = ["worker", "process"] as const;
  assertEquals(
    (await refusal(() => tierOf("caller", { isolation: "inline", tiers }))).code,
    "policy_refused",
  );
  assertEquals(await tierOf("caller", { inline: true, isolation: "process", tiers }), "process");
  assertEquals(
    (await refusal(() => tierOf("operator", { isolation: "process" }))).code,
    "isolation_unavailable",
  );
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
  const hostTiers = () => {
    throw new Error("not expected to be called");
  };
  const policy = defaultPolicy();
  const { tiers } = authorise(compiled, { origin: "caller", policy, builtins: BUILTINS, hostTiers });
  assertEquals(tiers["providers[0]"], "inline");
});
