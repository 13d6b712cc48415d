/** The text of bytes, in the encoding that a server or a page declares. */

/** Returns the encoding that a page declares in its first kilobyte (WHATWG HTML §4.2.5.4). */
export function declaredCharset(bytes: Uint8Array): string | undefined {
  const start = new TextDecoder("latin1").decode(bytes.subarray(0, 1_024));
  return /<meta[^>]{0,200}charset\s*=\s*["']?([\w.:-]+)/i.exec(start)?.[1];
}

/** Returns bytes as text; as UTF-8 where the encoding does not exist. */
export function decoded(bytes: Uint8Array, charset = "utf-8"): string {
  try {
    return new TextDecoder(charset).decode(bytes);
  } catch {
    return new TextDecoder().decode(bytes);
  }
}
