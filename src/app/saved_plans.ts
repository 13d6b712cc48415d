/** Saves plans of the person who has started the server, beside those that are in `$PREAMP_HOME/plans/`. */
import { isPlanName, type NamedPlans } from "./named_plans.ts";
import { type Caller, mayOperate } from "../runs/types.ts";
import { REDACTED } from "../policy/redact.ts";
import { printableId } from "../sdk/ids.ts";
import { errorMessage, PreampError } from "../sdk/errors.ts";
import type { JsonObject } from "../sdk/json.ts";

/** Collaborators of {@link savePlan}. */
export interface SavePlanDeps {
  readonly named: NamedPlans;
  /** Folder of saved plans, ending in a slash; null: plans cannot be saved. */
  readonly folder: URL | null;
  /** Checks a plan of a file. @throws {PreampError} `plan_invalid`, `plan_limit_exceeded`. */
  check(input: JsonObject | string, base_url: string): Promise<unknown>;
}

/**
 * Saves a plan under a name, in place of an earlier one. A text is saved as it is. From then on the plan has
 * the operator's rights.
 *
 * @throws {PreampError} `forbidden` for a caller that may not, and where plans cannot be saved;
 * `request_invalid` for a name that no plan can have, or that a plan has that comes first; `plan_invalid`,
 * `plan_limit_exceeded`.
 */
export async function savePlan(
  name: string,
  plan: JsonObject | string,
  caller: Caller,
  { named, folder, check }: SavePlanDeps,
): Promise<void> {
  const refuse = (code: "forbidden" | "request_invalid", why: string) =>
    new PreampError(code, `Cannot save the plan "${printableId(name)}": ${why}`);
  if (!mayOperate(caller)) {
    throw refuse("forbidden", "only the person who has started the server saves plans");
  }
  if (folder === null || !named.has(folder)) {
    throw refuse("forbidden", "this server does not take plans from a home folder");
  }
  if (!isPlanName(name)) {
    throw refuse("request_invalid", "a name has letters, digits, dots, underscores and hyphens, at most 100");
  }
  const url = new URL(`${name}.yaml`, folder);
  if (await named.findBefore(folder, name)) {
    throw refuse("request_invalid", "a folder that comes first has a plan of this name; choose another name");
  }
  const written = typeof plan === "string" ? plan : JSON.stringify(plan);
  if (written.includes(REDACTED)) {
    throw refuse(
      "request_invalid",
      `it has ${REDACTED} in place of a secret; write a variable such as \${API_KEY}`,
    );
  }
  await check(plan, url.href);
  const { planText } = await import("../plan/plan_text.ts");
  const text = typeof plan === "string" ? `${plan.trimEnd()}\n` : await planText(plan);
  const temporary = new URL(`${url.href}.${crypto.randomUUID()}`);
  try {
    await Deno.mkdir(folder, { recursive: true });
    await Deno.writeTextFile(temporary, text, { createNew: true });
    await Deno.rename(temporary, url);
  } catch (error) {
    await Deno.remove(temporary).catch(() => {}); // it may not exist
    throw new PreampError("internal", `Cannot save the plan "${name}": ${errorMessage(error)}`, {
      cause: error,
    });
  }
}
