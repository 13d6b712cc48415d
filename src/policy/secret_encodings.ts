/** Lists the encodings in which a secret may appear: plain, JSON, URL, form, base64, hex. */

/**
 * Minimum length of a secret that is searched for. Shorter values such as `true` or `8080` would redact
 * ordinary text.
 */
export const MIN_SECRET_LENGTH = 6;

/** Returns the encodings of a secret, longest first; empty if it is too short. */
export function formsOf(secret: string): string[] {
  if (secret.length < MIN_SECRET_LENGTH) return [];
  const bytes = new TextEncoder().encode(secret);
  const url = encodeURIComponent(secret.toWellFormed());
  const hex = bytes.toHex();
  const forms = new Set([
    secret,
    secret.replaceAll(/\p{Cc}/gu, ""), // control characters are removed from texts for models and terminals
    JSON.stringify(secret).slice(1, -1),
    url,
    url.toLowerCase() === url ? url : lowerEscapes(url),
    new URLSearchParams({ "": secret }).toString().slice(1),
    hex,
    hex.toUpperCase(),
    ...base64Forms(bytes),
  ]);
  return [...forms].filter((form) => form.length >= MIN_SECRET_LENGTH).sort((a, b) => b.length - a.length);
}

/**
 * Returns the base64 encodings of a secret inside other bytes, such as `user:secret` of Basic auth. They
 * depend on the offset: three alignments, each without the characters that neighbours affect, in both
 * alphabets.
 */
function base64Forms(secret: Uint8Array): string[] {
  const forms: string[] = [secret.toBase64(), secret.toBase64({ alphabet: "base64url", omitPadding: true })];
  for (let before = 0; before < 3; before++) {
    const padded = new Uint8Array(before + secret.length);
    padded.set(secret, before);
    const shifted = padded.toBase64({ omitPadding: true });
    const start = Math.ceil(before * 8 / 6);
    const whole = Math.floor((before + secret.length) * 8 / 6);
    const stable = shifted.slice(start, whole);
    forms.push(stable, stable.replaceAll("+", "-").replaceAll("/", "_"));
  }
  return forms;
}

/** Returns a URL with lower-case escapes: `%2F` may also be written `%2f` (RFC 3986 §2.1). */
function lowerEscapes(url: string): string {
  return url.split("%").map((part, index) =>
    index === 0 ? part : part.slice(0, 2).toLowerCase() + part.slice(2)
  ).join("%");
}
