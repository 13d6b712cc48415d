/** Digests on the request path. `node:crypto` because WebCrypto's `digest` is asynchronous and thirty times slower here. */
import { createHash } from "node:crypto";
import { canonicalJson } from "./json.ts";

/** Returns the SHA-256 of UTF-8 text or bytes as `sha256-` and standard base64, the form of Subresource Integrity. */
export function sha256(input: string | Uint8Array): string {
  return `sha256-${createHash("sha256").update(input).digest("base64")}`;
}

/** Returns {@link sha256} of the canonical (RFC 8785) JSON of JSON-safe data. */
export function canonicalHash(value: unknown): string {
  return sha256(canonicalJson(value));
}
