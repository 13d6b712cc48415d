/**
 * Every key of `preamp.yaml` and what its value must be, as one table: parse.ts reads documents with it, settings.ts flags
 * and variables. A key that is missing here does not exist.
 */
import type { Permissions } from "../sdk/contracts.ts";
import { MIN_DURATION_S } from "../plan/check_limits.ts";
import { checkPermissions } from "../plan/check_permissions.ts";
import { boolean, checkKeys, integer, money, number, object, oneOf, text, texts } from "../plan/fields.ts";
import type { Findings } from "../plan/findings.ts";
import { describe, type Path } from "../plan/path.ts";
import { type ApiKeyEntry, defaultPolicy, type FullPermissions } from "./policy.ts";

/** Reads the value of one key; undefined when it cannot be used, which is noted. */
export interface Rule {
  /** How a flag's or variable's text becomes the value. */
  form: "text" | "number" | "boolean" | "list" | "data";
  read(value: unknown, path: Path, findings: Findings): unknown;
}

/** Rules by key. */
export type Rules = Readonly<Record<string, Rule>>;

const TEXT: Rule = { form: "text", read: text };
const FLAG: Rule = { form: "boolean", read: boolean };
const TEXTS: Rule = { form: "list", read: texts };
const MONEY: Rule = { form: "text", read: money };

function whole(min: number, max?: number): Rule {
  return { form: "number", read: (value, path, findings) => integer(value, path, findings, min, max) };
}

function seconds(): Rule {
  return { form: "number", read: (value, path, findings) => number(value, path, findings, MIN_DURATION_S) };
}

function choice(...choices: string[]): Rule {
  return { form: "text", read: (value, path, findings) => oneOf(value, choices, path, findings) };
}

/** A ceiling; `max_tool_calls` and sub-agents may be none at all. */
function limitRule(name: string): Rule {
  if (name === "max_cost_usd") return MONEY;
  if (name.endsWith("_timeout_s") || name === "approval_timeout" || name === "max_duration_s") {
    return seconds();
  }
  if (name === "max_plan_depth") return whole(1, 100); // plans are walked by recursion
  const mayBeZero = ["max_tool_calls", "max_depth", "max_redirects", "max_plan_aliases"].includes(name);
  return whole(mayBeZero ? 0 : 1);
}

const DEFAULTS = defaultPolicy();

/** Sections whose keys are single values. */
export const SECTIONS: Readonly<Record<string, Rules>> = {
  listen: { host: TEXT, port: whole(0, 65_535) },
  retention: { log_days: whole(1), idempotency_hours: whole(1) },
  rates: { requests_per_minute: whole(0), runs_per_minute: whole(0) },
  modules: {
    allow: { form: "list", read: prefixes },
    inline: { form: "list", read: prefixes },
    frozen: FLAG,
    private_hosts: { form: "list", read: hosts },
  },
  env: { allow: TEXTS },
  permissions: { max: { form: "data", read: callerPermissions } },
  isolation: {
    urls_from_callers: choice("process"),
    urls_from_operator: choice("worker", "process"),
    memory_mb: whole(16),
    cpu_s: whole(1),
    load_timeout_s: seconds(),
    max_guests: whole(1),
    max_guests_per_session: whole(1),
  },
  limits: Object.fromEntries(Object.keys(DEFAULTS.limits).map((name) => [name, limitRule(name)])),
};

/** Keys at the top that are single values themselves. */
export const SINGLES: Rules = { plans: TEXT, store: { form: "text", read: storeUrl } };

/** Sections that one key's own policy may have. */
export const OVERLAY_SECTIONS = ["limits", "permissions", "modules", "env", "isolation", "rates"] as const;

/** Reads one section with its rules; keys that cannot be used are left out and noted. */
export function readSection(
  name: string,
  value: unknown,
  path: Path,
  findings: Findings,
): Record<string, unknown> {
  const rules = SECTIONS[name] ?? {};
  const fields = object(value, path, findings);
  const section: Record<string, unknown> = {};
  if (!fields) return section;
  checkKeys(fields, new Set(Object.keys(rules)), path, findings, "error");
  for (const [key, rule] of Object.entries(rules)) {
    if (!Object.hasOwn(fields, key)) continue;
    const read = rule.read(fields[key], [...path, key], findings);
    if (read !== undefined) section[key] = read;
  }
  return section;
}

/** `permissions.max`: what is not said is not granted. `run` and `ffi` are full escapes, callers never get them (trust.md). */
function callerPermissions(value: unknown, path: Path, findings: Findings): FullPermissions | undefined {
  const given: Permissions | undefined = checkPermissions(value, path, findings);
  for (const name of ["run", "ffi"] as const) {
    const asked = given?.[name];
    if (asked === undefined || asked === false || Array.isArray(asked) && asked.length === 0) continue;
    const message = `Cannot give callers ${name}: it escapes every other permission`;
    findings.error([...path, name], "value", message, "only an operator's plan may have it");
  }
  return given && { ...DEFAULTS.permissions.max, ...given };
}

function prefixes(value: unknown, path: Path, findings: Findings): string[] | undefined {
  const list = texts(
    value,
    path,
    findings,
    'write URL prefixes, such as ["https://modules.example.com/agents/"]',
  );
  list?.forEach((entry, index) => {
    const url = URL.canParse(entry) ? new URL(entry) : undefined;
    const web = url && (url.protocol === "https:" || url.protocol === "http:") && !url.username &&
      !url.password &&
      url.search === "" && url.hash === "";
    if (entry === "data:" || web || url?.protocol === "file:") return;
    const message =
      `Cannot read a prefix: must be an https:// or http:// URL without query, or "data:": received ${
        describe(entry)
      }`;
    findings.error([...path, index], "value", message);
  });
  return list;
}

function hosts(value: unknown, path: Path, findings: Findings): string[] | undefined {
  const list = texts(value, path, findings, 'write hosts, such as ["127.0.0.1:9000"]');
  list?.forEach((entry, index) => {
    if (!entry.includes("/") && !entry.includes("@") && URL.canParse(`http://${entry}/`)) return;
    const message = `Cannot read a host: must be host or host:port: received ${describe(entry)}`;
    findings.error([...path, index], "value", message);
  });
  return list;
}

function storeUrl(value: unknown, path: Path, findings: Findings): string | undefined {
  const store = text(value, path, findings);
  if (store === undefined || store === "memory" || store === "kv") return store;
  if (["sqlite:", "kv:", "postgres://", "postgresql://"].some((start) => store.startsWith(start))) {
    return store;
  }
  // a store's URL may hold a password: only its scheme is shown
  const scheme = store.includes(":")
    ? `"${store.slice(0, store.indexOf(":")).slice(0, 20)}:…"`
    : describe(store);
  const message =
    `Cannot read store: must be memory, sqlite:<path>, kv, kv:<url> or postgres://…: received ${scheme}`;
  findings.error(path, "value", message);
  return undefined;
}

/** Reads `auth.keys` (trust.md): names and hashes are each their own, and a key's policy is one of `policies`. */
export function readAuthKeys(
  value: unknown,
  path: Path,
  findings: Findings,
  policies: readonly string[],
): ApiKeyEntry[] {
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
    const key = readAuthKey(item, [...path, index], findings, policies);
    if (!key) continue;
    for (const [field, seen] of [["name", names], ["sha256", hashes]] as const) {
      if (seen.has(key[field])) {
        findings.error(
          [...path, index, field],
          "value",
          `Cannot use ${field}: another key has it`,
          "give each its own",
        );
      }
      seen.add(key[field]);
    }
    keys.push(key);
  }
  return keys;
}

function readAuthKey(
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
    // what stands here may be the key itself: never shown
    const message = "Cannot read sha256: must be the lower-case hex digest of the key, 64 characters";
    findings.error([...at, "sha256"], "value", message, "printf %s KEY | sha256sum");
    return undefined;
  }
  if (name === undefined) return undefined;
  if (!Object.hasOwn(fields, "policy")) return { name, sha256 };
  const policy = oneOf(fields.policy, policies, [...at, "policy"], findings);
  return policy === undefined ? undefined : { name, sha256, policy };
}
