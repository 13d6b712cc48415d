/** Which providers play the role that an agent's overlay asks for: a module knows, through `model_role_resolver` (behaviour.md §9.5). */
import type { Session } from "../../kernel/session/session.ts";
import { preferenceProblem } from "../../plan/provider_preferences.ts";
import { PreampError } from "../../sdk/errors.ts";
import { toPlain } from "../../sdk/json.ts";
import type { ModelRoleResolver, ProviderPreference } from "../../sdk/types.ts";

/**
 * Resolves to the providers for the first of these roles that the session's resolver knows; none when there is no resolver, or it
 * knows none of them: then the agent's plan decides alone.
 *
 * @throws {PreampError} `module_invalid` when the resolver answers something else; what it throws.
 */
export async function preferencesOfRoles(
  session: Session,
  roles: readonly string[],
): Promise<readonly ProviderPreference[]> {
  const resolver = session.getCapability("model_role_resolver");
  if (typeof resolver !== "function") return [];
  for (const role of roles) {
    const answer: unknown = await (resolver as ModelRoleResolver)(role); // what is published under this name
    if (answer === null || answer === undefined) continue;
    const preferences = toPlain(answer);
    const problem = preferenceProblem(preferences, `model_role "${role}"`);
    if (problem !== null) throw new PreampError("module_invalid", `Cannot resolve ${problem}`);
    return preferences as unknown as ProviderPreference[]; // without a problem it is that
  }
  return [];
}
