/** The text of `preamp.yaml` → policy. Apart from parse.ts, which a server needs that has no such file. */
import { parseDocument } from "../plan/parse/parse.ts";
import { policyFromData } from "./parse_policy.ts";
import type { Policy } from "./policy.ts";

/**
 * Parses a policy document. Settings that it lacks have their defaults.
 *
 * @param options `name`: name of the document in errors; default `preamp.yaml`.
 * @throws {PreampError} `plan_invalid`, `plan_limit_exceeded`: a policy is parsed like a plan.
 */
export async function parsePolicy(text: string, options: { name?: string } = {}): Promise<Policy> {
  const what = `the policy "${options.name ?? "preamp.yaml"}"`;
  const { data, locate } = await parseDocument(text, { what });
  return policyFromData(data, { what, locate });
}
