/**
 * Creates and verifies API keys: 256 random bits, stored as SHA-256 hashes, compared in constant time with
 * all of them. Independent of HTTP.
 */
import { nodeCrypto } from "../sdk/digest.ts";
import type { ApiKeyEntry } from "./policy.ts";

/** The holder of a key. */
export interface KeyHolder {
  /** Displayed as `key:NAME`. */
  readonly name: string;
  /** Namespace of everything that the holder creates. */
  readonly namespace: string;
  /** Name of the holder's entry in `policies`. */
  readonly policy?: string;
}

/**
 * Namespace of a server without configured keys. It stays the same when the generated key changes at a
 * restart.
 */
export const LOCAL_NAMESPACE = "local";

/** Returns the lower-case hex SHA-256 of a key, as in `auth.keys[].sha256`. */
export function hashKey(key: string): string {
  return nodeCrypto().createHash("sha256").update(key).digest("hex");
}

/** Returns a new key: `pk_` and 256 random bits in base64url. */
export function generateKey(): string {
  return `pk_${
    crypto.getRandomValues(new Uint8Array(32)).toBase64({ alphabet: "base64url", omitPadding: true })
  }`;
}

/**
 * Returns the entries for `PREAMP_API_KEYS=a,b`. Each is named by its hash, so that order and number may
 * change.
 */
export function entriesOfKeys(list: string): ApiKeyEntry[] {
  const keys = new Set(list.split(",").map((key) => key.trim()).filter((key) => key !== ""));
  return [...keys].map((key) => {
    const sha256 = hashKey(key);
    return { name: `env-${sha256.slice(0, 12)}`, sha256 };
  });
}

/**
 * The keys that a server accepts. Hashing is loaded when the first key is presented, so that the server
 * starts without it.
 */
export class KeyRing {
  readonly #holders: { hash: () => Uint8Array; holder: KeyHolder }[] = [];

  /**
   * Creates a ring of configured keys. `generated` is a key created for this start, in {@link
   * LOCAL_NAMESPACE}.
   */
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

  /** Returns the holder of a key, or undefined. Takes as long for a wrong key as for a right one. */
  find(key: string): KeyHolder | undefined {
    const { timingSafeEqual } = nodeCrypto();
    const digest = digestOf(key);
    let found: KeyHolder | undefined;
    for (const { hash, holder } of this.#holders) {
      if (timingSafeEqual(hash(), digest)) found = holder; // no early exit: the duration must not depend on the key
    }
    return found;
  }
}

function digestOf(key: string): Uint8Array {
  return nodeCrypto().createHash("sha256").update(key).digest();
}
