/**
 * Digests on the request path. `node:crypto` because WebCrypto's `digest` is asynchronous and thirty times slower here; got
 * when first needed, because loading it takes as long as starting a server.
 */
import { canonicalJson } from "./json.ts";

type NodeCrypto = typeof import("node:crypto");

let loaded: NodeCrypto | undefined;

/** Returns `node:crypto`, loaded at the first call. */
export function nodeCrypto(): NodeCrypto {
  return loaded ??= (globalThis as { process?: { getBuiltinModule(name: string): unknown } }).process!
    .getBuiltinModule("node:crypto") as NodeCrypto; // Deno 2 has both, in every program
}

/** Returns the SHA-256 of UTF-8 text or bytes as `sha256-` and standard base64, the form of Subresource Integrity. */
export function sha256(input: string | Uint8Array): string {
  return `sha256-${nodeCrypto().createHash("sha256").update(input).digest("base64")}`;
}

/** Returns {@link sha256} of the canonical (RFC 8785) JSON of JSON-safe data. */
export function canonicalHash(value: unknown): string {
  return sha256(canonicalJson(value));
}
