/**
 * SHA-256 digests. Uses `node:crypto`, because WebCrypto's `digest` is asynchronous and thirty times slower
 * here. Loads it on first use, because loading it takes as long as starting a server.
 */
import { canonicalJson } from "./json.ts";

type NodeCrypto = typeof import("node:crypto");

let loaded: NodeCrypto | undefined;

/** Returns `node:crypto`; loads it on the first call. */
export function nodeCrypto(): NodeCrypto {
  return loaded ??= (globalThis as { process?: { getBuiltinModule(name: string): unknown } }).process!
    .getBuiltinModule("node:crypto") as NodeCrypto; // every Deno 2 program has `process.getBuiltinModule`
}

/**
 * Returns the SHA-256 of UTF-8 text or bytes as `sha256-` and standard base64, the form of Subresource
 * Integrity.
 */
export function sha256(input: string | Uint8Array): string {
  return `sha256-${nodeCrypto().createHash("sha256").update(input).digest("base64")}`;
}

/** Returns the {@link sha256} of the canonical (RFC 8785) JSON of JSON-safe data. */
export function canonicalHash(value: unknown): string {
  return sha256(canonicalJson(value));
}

/**
 * Resolves to the {@link canonicalHash} without loading `node:crypto`: for what a server computes first, and
 * rarely.
 */
export async function canonicalDigest(value: unknown): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(canonicalJson(value)));
  return `sha256-${new Uint8Array(digest).toBase64()}`;
}
