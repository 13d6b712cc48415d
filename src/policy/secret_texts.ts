/**
 * Lists the encodings in which a secret may appear, and finds where streamed text can be cut without
 * splitting one.
 */

/**
 * Minimum length of a secret that is searched for. Shorter values such as `true` or `8080` would redact
 * ordinary text.
 */
const MIN_SECRET_LENGTH = 6;

/**
 * Returns the encodings of a secret (plain, JSON, URL, form, base64, hex), longest first; empty if it is too
 * short. Without the space around it, which providers and HTTP remove.
 */
export function formsOf(value: string): string[] {
  const trimmed = value.trim();
  const secret = trimmed.length < MIN_SECRET_LENGTH ? value : trimmed;
  if (secret.length < MIN_SECRET_LENGTH) return [];
  const bytes = new TextEncoder().encode(secret);
  const url = encodeURIComponent(secret.toWellFormed());
  const hex = bytes.toHex();
  const forms = new Set([
    secret,
    secret.replaceAll(/\p{Cc}/gu, ""), // control characters are removed from texts for models and terminals
    ...jsonForms(secret),
    url,
    url.toLowerCase() === url ? url : lowerEscapes(url),
    new URLSearchParams({ "": secret }).toString().slice(1),
    hex,
    hex.toUpperCase(),
    ...base64Forms(bytes),
  ]);
  return [...forms].filter((form) => form.length >= MIN_SECRET_LENGTH).sort((a, b) => b.length - a.length);
}

/** Returns a secret in JSON texts of several languages, some of which escape slashes or all but ASCII. */
function jsonForms(secret: string): string[] {
  const json = JSON.stringify(secret).slice(1, -1);
  const ascii = json.replaceAll(
    /[^ -~]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
  return [json, json.replaceAll("/", "\\/"), ascii, ascii.replaceAll("/", "\\/")];
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

/**
 * Returns a function that counts the characters at the end of a text that may be the beginning of one of
 * `needles`. The count includes whole needles across that position, and is 0 if the whole text can be
 * emitted. The emitted part never ends within a needle.
 */
export function createPartialSecretFilter(needles: readonly string[]): (text: string) => number {
  const sorted = [...needles].sort();
  const firsts = new Set(sorted.map((needle) => needle[0]));
  const longest = sorted.reduce((most, { length }) => Math.max(most, length), 0);

  return function cut(text) {
    if (longest === 0) return 0;
    let start = Math.max(0, text.length - longest + 1);
    while (start < text.length && !(firsts.has(text[start]) && begins(sorted, text.slice(start)))) start++;
    return text.length - wholeBefore(needles, text, start, longest);
  };
}

/**
 * Returns true if one of the sorted needles begins with `part`. Binary search: such a needle is at the
 * position of `part` itself.
 */
function begins(sorted: readonly string[], part: string): boolean {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (sorted[middle]! < part) low = middle + 1;
    else high = middle;
  }
  for (let index = low; index < sorted.length && sorted[index]!.startsWith(part); index++) {
    if (sorted[index]!.length > part.length) return true; // a complete needle needs no more text
  }
  return false;
}

/**
 * Moves a cut before every needle that crosses it. Overlapping needles such as `aaaaaa` in a row of `a`
 * would move it forever, so it stops after four lengths of the longest needle. The text before the cut is
 * then redacted as far as the needles are known.
 */
function wholeBefore(needles: readonly string[], text: string, cut: number, longest: number): number {
  const least = text.length - 4 * longest;
  let start = cut;
  for (let moved = true; moved && start > least;) {
    moved = false;
    for (const needle of needles) {
      const at = text.indexOf(needle, Math.max(0, start - needle.length + 1));
      if (at === -1 || at >= start) continue;
      start = at;
      moved = true;
    }
  }
  return start;
}
