/**
 * API keys: kept as SHA-256 hashes, compared in constant time over all of them, made with 256 random bits (trust.md). Knows
 * nothing of HTTP.
 */
import { Buffer } from "node:buffer";
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
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
  return createHash("sha256").update(key).digest("hex");
}

/** Returns a new key: `pk_` and 256 random bits in base64url. */
export function generateKey(): string {
  return `pk_${randomBytes(32).toString("base64url")}`;
}

/** Returns the entries for `PREAMP_API_KEYS=a,b`. Each is named by its hash, so that order and number may change. */
export function entriesOfKeys(list: string): ApiKeyEntry[] {
  const keys = new Set(list.split(",").map((key) => key.trim()).filter((key) => key !== ""));
  return [...keys].map((key) => {
    const sha256 = hashKey(key);
    return { name: `env-${sha256.slice(0, 12)}`, sha256 };
  });
}

/** The keys a server takes. */
export class KeyRing {
  readonly #entries: { hash: Buffer; holder: KeyHolder }[] = [];

  /** Creates a ring of configured keys; `generated` is a key made for this start, in {@link LOCAL_NAMESPACE}. */
  constructor(entries: readonly ApiKeyEntry[], generated?: string) {
    for (const { name, sha256, policy } of entries) {
      const holder = { name, namespace: `key:${name}`, ...(policy === undefined ? {} : { policy }) };
      this.#entries.push({ hash: Buffer.from(sha256, "hex"), holder });
    }
    if (generated !== undefined) {
      const hash = Buffer.from(hashKey(generated), "hex");
      this.#entries.push({ hash, holder: { name: "generated", namespace: LOCAL_NAMESPACE } });
    }
  }

  /** Number of keys. */
  get size(): number {
    return this.#entries.length;
  }

  /** Returns whose key this is, or undefined. Takes as long for a wrong key as for any right one. */
  find(key: string): KeyHolder | undefined {
    const hash = createHash("sha256").update(key).digest();
    let found: KeyHolder | undefined;
    for (const entry of this.#entries) {
      if (timingSafeEqual(entry.hash, hash)) found = entry.holder; // no early end: time must not tell which one
    }
    return found;
  }
}
