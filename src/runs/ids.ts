/** Ids: a prefix and 128 random bits, so that nobody guesses another's (threats T23). */
import { randomBytes } from "node:crypto";

/** Returns a fresh id such as `run_k3…`: 22 characters of base64url without `-` and `_`, which double clicks select whole. */
export function newId(prefix: string): string {
  return `${prefix}_${encode(randomBytes(16))}`;
}

const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** Base 62 of 128 bits: 22 digits. */
function encode(bytes: Uint8Array): string {
  let value = 0n;
  for (const byte of bytes) value = (value << 8n) | BigInt(byte);
  let text = "";
  for (let digit = 0; digit < 22; digit++) {
    text = ALPHABET[Number(value % 62n)]! + text;
    value /= 62n;
  }
  return text;
}
