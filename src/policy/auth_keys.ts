/** `auth.keys`: names and hashes, each used once, and the policy of each is one of `policies`. */
import { isObject, type JsonObject } from "../sdk/json.ts";
import { fitting, object, text } from "../plan/check/field_checks.ts";
import { checkKeys, type Findings } from "../sdk/findings.ts";
import { describe, type Path } from "../sdk/value_path.ts";
import type { ApiKeyEntry } from "./policy.ts";
import type { Rule } from "./rules.ts";

/**
 * Returns the rule of `auth.keys`: names and hashes are unique, and each policy is an entry of `policies`.
 */
export function apiKeys(meaning: string): Rule<ApiKeyEntry[]> {
  return {
    form: "data",
    default: [],
    meaning,
    range: "a list of {name, sha256, policy}; policy names an entry of policies and is optional",
    read: readKeys,
  };
}

function readKeys(value: unknown, path: Path, findings: Findings, document: JsonObject): ApiKeyEntry[] {
  const policies = Object.keys(isObject(document.policies) ? document.policies : {});
  const keys: ApiKeyEntry[] = [];
  if (!Array.isArray(value)) {
    findings.error(
      path,
      "type",
      `Cannot read keys: must be a list: received ${describe(value)}`,
      "write [{name, sha256}]",
    );
    return keys;
  }
  const names = new Set<string>();
  const hashes = new Set<string>();
  for (const [index, item] of value.entries()) {
    const key = readKey(item, [...path, index], findings, policies);
    if (!key) continue;
    for (const [field, seen] of [["name", names], ["sha256", hashes]] as const) {
      if (seen.has(key[field])) {
        findings.error(
          [...path, index, field],
          "value",
          `Cannot use ${field}: another key has the same`,
          "use a different one",
        );
      }
      seen.add(key[field]);
    }
    keys.push(key);
  }
  return keys;
}

function readKey(
  item: unknown,
  at: Path,
  findings: Findings,
  policies: readonly string[],
): ApiKeyEntry | undefined {
  const fields = object(item, at, findings, "write {name, sha256, policy}");
  if (!fields) return undefined;
  checkKeys(fields, new Set(["name", "sha256", "policy"]), at, findings, "error");
  const name = text(fields.name, [...at, "name"], findings);
  const { sha256 } = fields;
  if (typeof sha256 !== "string" || !/^[0-9a-f]{64}$/.test(sha256)) {
    // the value may be the key itself, so it is not displayed
    const message = "Cannot read sha256: must be the lower-case hex digest of the key, 64 characters";
    findings.error([...at, "sha256"], "value", message, "printf %s KEY | sha256sum");
    return undefined;
  }
  if (name === undefined) return undefined;
  if (!Object.hasOwn(fields, "policy")) return { name, sha256 };
  const policy = fitting<string>(fields.policy, { enum: policies }, [...at, "policy"], findings);
  return policy === undefined ? undefined : { name, sha256, policy };
}
