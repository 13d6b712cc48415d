import fc from "fast-check";
import { assert, assertEquals } from "../assert.ts";
import { compareDecimal } from "../../src/sdk/money.ts";
import { combineLimits } from "../../src/policy/limits.ts";
import { defaultPolicy } from "../../src/policy/settings.ts";

const POLICY = defaultPolicy().limits;
const FIVE = {
  max_iterations: 50,
  max_tool_calls: 200,
  max_total_tokens: 1_000_000,
  max_cost_usd: "5",
  max_duration_s: 600,
};

Deno.test("combineLimits() returns the policy's limits, and no other setting, without plan and request limits", () => {
  assertEquals(combineLimits(POLICY, {}), { limits: FIVE, cost_limit: "policy", reasons: [] });
});

Deno.test("combineLimits() takes the smallest of plan, request and policy", () => {
  const { limits, cost_limit } = combineLimits(POLICY, {
    plan: { max_tool_calls: 5, max_iterations: 9, max_cost_usd: "0.50" },
    request: { max_tool_calls: 7, max_iterations: 3, max_cost_usd: "0.499999999999999999" },
  });
  assertEquals(limits, {
    ...FIVE,
    max_tool_calls: 5,
    max_iterations: 3,
    max_cost_usd: "0.499999999999999999",
  });
  assertEquals(cost_limit, "asked");
});

Deno.test("combineLimits() reports that plan or request set a dollar limit even when it equals the policy's", () => {
  assertEquals(combineLimits(POLICY, { request: { max_cost_usd: "5.00" } }).cost_limit, "asked");
  assertEquals(combineLimits(POLICY, { plan: { max_tool_calls: 1 } }).cost_limit, "policy");
});

Deno.test("combineLimits() lists every limit above the policy's, of plan and request", () => {
  const { reasons } = combineLimits(POLICY, {
    plan: { max_iterations: 51, max_cost_usd: "5.000000000000000001" },
    request: { max_duration_s: 601, max_tool_calls: 200 },
  });
  assertEquals(reasons.map(({ path }) => path), [
    "limits.max_iterations",
    "limits.max_cost_usd",
    "request.limits.max_duration_s",
  ]);
  assertEquals(reasons[0]?.message, "Cannot raise max_iterations: the policy's limit is 50: received 51");
});

Deno.test("combineLimits() compares money exactly, not as floats", () => {
  const policy = { ...POLICY, max_cost_usd: "0.3" };
  assertEquals(combineLimits(policy, { plan: { max_cost_usd: "0.30000000000000004" } }).reasons.length, 1);
  assertEquals(combineLimits(policy, { plan: { max_cost_usd: "0.300" } }).reasons.length, 0);
});

Deno.test("combineLimits() never exceeds any of its inputs", () => {
  const count = fc.integer({ min: 0, max: 300 });
  const money = fc.tuple(fc.nat(9), fc.nat(99)).map(([whole, cents]) => `${whole}.${cents}`);
  const asked = fc.record({ max_tool_calls: count, max_cost_usd: money }, { requiredKeys: [] });
  fc.assert(fc.property(asked, asked, (plan, request) => {
    const { limits, reasons } = combineLimits(POLICY, { plan, request });
    for (const given of [plan, request, POLICY]) {
      const above = given.max_tool_calls !== undefined && limits.max_tool_calls > given.max_tool_calls ||
        given.max_cost_usd !== undefined && compareDecimal(limits.max_cost_usd, given.max_cost_usd) > 0;
      assert(!above || reasons.length > 0);
    }
  }));
});
