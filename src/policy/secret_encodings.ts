/** The spellings in which a secret leaves a program: as it is, in JSON, in a URL, in a form, in base64, in hex. */

/** Shorter values are not looked for: `true`, `8080` or `eu-1` would blot out ordinary text. Our choice. */
export const MIN_SECRET_LENGTH = 6;

/** Returns the spellings of a secret, longest first; empty when it is too short to be told from other text. */
export function formsOf(secret: string): string[] {
  if (secret.length < MIN_SECRET_LENGTH) return [];
  const bytes = new TextEncoder().encode(secret);
  const url = encodeURIComponent(secret.toWellFormed());
  const hex = bytes.toHex();
  const forms = new Set([
    secret,
    secret.replaceAll(/\p{Cc}/gu, ""), // texts for models and terminals lose control characters
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
 * Base64 of a secret inside other bytes (`user:secret` of Basic auth) depends on where it starts: three alignments, each cut
 * to the characters that its neighbours cannot change; both alphabets.
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

/** `%2F` may also be written `%2f` (RFC 3986 §2.1). */
function lowerEscapes(url: string): string {
  return url.split("%").map((part, index) =>
    index === 0 ? part : part.slice(0, 2).toLowerCase() + part.slice(2)
  ).join("%");
}
