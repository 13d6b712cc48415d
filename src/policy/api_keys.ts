/**
 * API keys: kept as SHA-256 hashes, compared in constant time over all of them, made with 256 random bits (trust.md). Knows
 * nothing of HTTP.
 */
import { nodeCrypto } from "../sdk/digest.ts";
import type { ApiKeyEntry } from "./policy.ts";

/** Who a key belongs to. */
export interface KeyHolder {
  /** Shown as `key:NAME`. */
  readonly name: string;
  /** Everything the holder makes lives here. */
  readonly namespace: string;
  /** Name of the entry of `policies` that holds for it. */
  readonly policy?: string;
}

/** The namespace of a server that nobody configured keys for: the same after each start, whatever key it printed. */
export const LOCAL_NAMESPACE = "local";

/** Returns the lower-case hex SHA-256 of a key: what `auth.keys[].sha256` holds. */
export function hashKey(key: string): string {
  return nodeCrypto().createHash("sha256").update(key).digest("hex");
}

/** Returns a new key: `pk_` and 256 random bits in base64url. */
export function generateKey(): string {
  return `pk_${
    crypto.getRandomValues(new Uint8Array(32)).toBase64({ alphabet: "base64url", omitPadding: true })
  }`;
}

/** Returns the entries for `PREAMP_API_KEYS=a,b`. Each is named by its hash, so that order and number may change. */
export function entriesOfKeys(list: string): ApiKeyEntry[] {
  const keys = new Set(list.split(",").map((key) => key.trim()).filter((key) => key !== ""));
  return [...keys].map((key) => {
    const sha256 = hashKey(key);
    return { name: `env-${sha256.slice(0, 12)}`, sha256 };
  });
}

/** The keys a server takes. Hashing is loaded with the first key that is shown: a server starts without it. */
export class KeyRing {
  readonly #holders: { hash: () => Uint8Array; holder: KeyHolder }[] = [];

  /** Creates a ring of configured keys; `generated` is a key made for this start, in {@link LOCAL_NAMESPACE}. */
  constructor(entries: readonly ApiKeyEntry[], generated?: string) {
    for (const { name, sha256, policy } of entries) {
      const holder = { name, namespace: `key:${name}`, ...(policy === undefined ? {} : { policy }) };
      const hash = Uint8Array.fromHex(sha256);
      this.#holders.push({ hash: () => hash, holder });
    }
    if (generated !== undefined) {
      let hash: Uint8Array | undefined;
      const holder = { name: "generated", namespace: LOCAL_NAMESPACE };
      this.#holders.push({ hash: () => hash ??= digestOf(generated), holder });
    }
  }

  /** Number of keys. */
  get size(): number {
    return this.#holders.length;
  }

  /** Returns whose key this is, or undefined. Takes as long for a wrong key as for any right one. */
  find(key: string): KeyHolder | undefined {
    const { timingSafeEqual } = nodeCrypto();
    const given = digestOf(key);
    let found: KeyHolder | undefined;
    for (const { hash, holder } of this.#holders) {
      if (timingSafeEqual(hash(), given)) found = holder; // no early end: time must not tell which one
    }
    return found;
  }
}

function digestOf(key: string): Uint8Array {
  return nodeCrypto().createHash("sha256").update(key).digest();
}
