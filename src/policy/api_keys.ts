/**
 * Creates and verifies API keys: 256 random bits, stored as SHA-256 hashes, compared in constant time with
 * all of them. Independent of HTTP.
 */
import { nodeCrypto } from "../sdk/digest.ts";
import type { SettingType } from "./setting_types.ts";
import { object, text } from "../plan/check/field_checks.ts";
import { checkKeys, didYouMean, type Findings } from "../sdk/findings.ts";
import { isObject, type JsonObject } from "../sdk/json.ts";
import { describe, type Path } from "../sdk/value_path.ts";

/** A key that may call the API. */
export interface ApiKeyEntry {
  /** Displayed as `key:NAME`. */
  name: string;
  /** Lower-case hex SHA-256 of the key. */
  sha256: string;
  /** Name of an entry of `policies`. */
  policy?: string;
  /** Keys with the same one see each other's runs. Default: its name. */
  namespace?: string;
  /** ISO 8601: the key is refused after this time, or after this day (UTC). */
  retires_at?: string;
}

export interface KeyHolder {
  /** Displayed as `key:NAME`. */
  readonly name: string;
  /** Namespace of everything that the holder creates. */
  readonly namespace: string;
  /** Name of the holder's entry in `policies`. */
  readonly policy?: string;
  /** Whether it is the person who has started the server. */
  readonly owner?: boolean;
}

/**
 * Namespace of a server without configured keys. It stays the same when the generated key changes at a
 * restart.
 */
export const LOCAL_NAMESPACE = "local";

/** Returns the lower-case hex SHA-256 of a key, as in `auth.keys[].sha256`. */
export function hashKey(key: string): string {
  return digestOf(key).toHex();
}

/** Returns a new key: `pk_` and 256 random bits in base64url. */
export function generateKey(): string {
  const bits = crypto.getRandomValues(new Uint8Array(32));
  return `pk_${bits.toBase64({ alphabet: "base64url", omitPadding: true })}`;
}

/**
 * Returns the entries for the keys of `PREAMP_API_KEYS`. Each is named by its hash, so that order and number
 * may change.
 */
export function entriesOfKeys(keys: readonly string[]): ApiKeyEntry[] {
  return [...new Set(keys)].map((key) => {
    const sha256 = hashKey(key);
    return { name: `env-${sha256.slice(0, 12)}`, sha256 };
  });
}

/**
 * The keys that a server accepts. Hashing is loaded when the first key is presented, so that the server
 * starts without it.
 */
export class KeyRing {
  readonly #holders: { hash: () => Uint8Array; holder: KeyHolder; retires: number }[] = [];
  readonly #now: () => number;

  /**
   * Creates a ring of configured keys. `generated` is the key of the person who has started the server, in
   * {@link LOCAL_NAMESPACE}.
   */
  constructor(entries: readonly ApiKeyEntry[], generated?: string, now: () => number = Date.now) {
    this.#now = now;
    for (const { name, sha256, policy, namespace = name, retires_at } of entries) {
      const holder = { name, namespace: `key:${namespace}`, ...(policy === undefined ? {} : { policy }) };
      const hash = Uint8Array.fromHex(sha256);
      const retires = retires_at === undefined ? Infinity : retirement(retires_at);
      this.#holders.push({ hash: () => hash, holder, retires });
    }
    if (generated !== undefined) {
      let hash: Uint8Array | undefined;
      const holder = { name: "generated", namespace: LOCAL_NAMESPACE, owner: true };
      this.#holders.push({ hash: () => hash ??= digestOf(generated), holder, retires: Infinity });
    }
  }

  /**
   * Returns the holder of a key that has not retired, or undefined. Takes as long for a wrong key as for a
   * right one.
   */
  find(key: string): KeyHolder | undefined {
    const { timingSafeEqual } = nodeCrypto();
    const digest = digestOf(key);
    let found: KeyHolder | undefined;
    const now = this.#now();
    for (const { hash, holder, retires } of this.#holders) {
      if (timingSafeEqual(hash(), digest) && now < retires) found = holder; // no early exit: the duration must not depend on the key
    }
    return found;
  }
}

function digestOf(key: string): Uint8Array {
  return nodeCrypto().createHash("sha256").update(key).digest();
}

const DATE = /^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:\d{2}))?$/;

/** Returns the time of `retires_at` in milliseconds, that of a date at its end; NaN if it is not valid. */
function retirement(text: string): number {
  return DATE.test(text) ? Date.parse(text) + (text.includes("T") ? 0 : 24 * 60 * 60 * 1000) : NaN;
}

/**
 * Returns the type of the setting `auth.keys`: names and hashes are unique, and each policy is an entry of
 * `policies`.
 */
export function apiKeys(meaning: string): SettingType<ApiKeyEntry[]> {
  return {
    form: "data",
    default: [],
    meaning,
    range: "a list of {name, sha256}, and optional: policy (an entry of policies), namespace, retires_at",
    read: readKeys,
  };
}

function readKeys(value: unknown, path: Path, findings: Findings, document: JsonObject): ApiKeyEntry[] {
  const policies = Object.keys(isObject(document.policies) ? document.policies : {});
  const keys: ApiKeyEntry[] = [];
  if (!Array.isArray(value)) {
    const message = `Cannot read keys: must be a list: received ${describe(value)}`;
    findings.error(path, "type", message, "write [{name, sha256}]");
    return keys;
  }
  const names = new Set<string>();
  const hashes = new Set<string>();
  for (const [index, item] of value.entries()) {
    const key = readKey(item, [...path, index], findings, policies);
    if (!key) continue;
    for (const [field, seen] of [["name", names], ["sha256", hashes]] as const) {
      if (seen.has(key[field])) {
        const message = `Cannot use ${field}: another key has the same`;
        findings.error([...path, index, field], "value", message, "use a different one");
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
  const fields = object(item, at, findings, "write {name, sha256}");
  if (!fields) return undefined;
  checkKeys(fields, new Set(["name", "sha256", "policy", "namespace", "retires_at"]), at, findings, "error");
  const name = text(fields.name, [...at, "name"], findings);
  const { sha256 } = fields;
  if (typeof sha256 !== "string" || !/^[0-9a-f]{64}$/.test(sha256)) {
    // the value may be the key itself, so it is not displayed
    const message = "Cannot read sha256: must be the lower-case hex digest of the key, 64 characters";
    findings.error([...at, "sha256"], "value", message, "printf %s KEY | sha256sum");
    return undefined;
  }
  if (name === undefined) return undefined;
  const key: ApiKeyEntry = { name, sha256 };
  for (const field of ["namespace", "retires_at", "policy"] as const) {
    if (!Object.hasOwn(fields, field)) continue;
    const value = text(fields[field], [...at, field], findings);
    if (value === undefined) return undefined;
    key[field] = value;
  }
  const { retires_at, policy } = key;
  if (retires_at !== undefined && Number.isNaN(retirement(retires_at))) {
    const message = `Cannot read retires_at: must be an ISO date or time: received ${describe(retires_at)}`;
    findings.error([...at, "retires_at"], "value", message, "write 2027-01-31, or 2027-01-31T12:00:00Z");
    return undefined;
  }
  if (policy === undefined || policies.includes(policy)) return key;
  const meant = didYouMean(policy, policies);
  const hint = meant === undefined ? "add it to policies, or leave it out" : `did you mean "${meant}"?`;
  const message = `Cannot use policy ${describe(policy)}: policies has no such entry`;
  findings.error([...at, "policy"], "value", message, hint);
  return undefined;
}
