/** Policies with changed sections, and plans that are authorised under them. */
import type { JsonObject } from "../../src/sdk/json.ts";
import { type CompiledPlan, compilePlan } from "../../src/plan/compile.ts";
import { authorise, type AuthoriseOptions, type Grants } from "../../src/policy/authorise.ts";
import type { Policy } from "../../src/policy/policy.ts";
import { defaultPolicy } from "../../src/policy/settings.ts";

export const BUILTINS: ReadonlySet<string> = new Set([
  "loop-streaming",
  "context-simple",
  "provider-mock",
  "provider-openai",
  "tool-calculator",
  "tool-filesystem",
]);

/** Compiles a valid plan with further keys. */
export async function compiled(
  more: JsonObject = {},
  origin: "caller" | "operator" = "caller",
): Promise<CompiledPlan> {
  const session = { orchestrator: "loop-streaming", context: "context-simple" };
  return await compilePlan({ session, providers: ["provider-mock"], ...more }, { origin });
}

/** Returns the default policy with changed sections. */
export function policyWith(sections: { [key in keyof Policy]?: Partial<Policy[key]> }): Policy {
  const policy = defaultPolicy();
  for (const [key, value] of Object.entries(sections)) Object.assign(policy[key as keyof Policy], value);
  return policy;
}

/** Compiles and authorises as a caller under the default policy, by default. */
export async function judge(more: JsonObject, options: Partial<AuthoriseOptions> = {}): Promise<Grants> {
  const origin = options.origin ?? "caller";
  return authorise(await compiled(more, origin), {
    origin,
    policy: defaultPolicy(),
    builtins: BUILTINS,
    ...options,
  });
}
