/** Paths as URLs, without `node:url`: loading that takes as long as starting a server. */

/** Returns whether a path starts at a root: `/`, or on Windows a drive or a share. */
export function isAbsolute(path: string): boolean {
  return path.startsWith("/") || Deno.build.os === "windows" && /^([A-Za-z]:)?[\\/]/.test(path);
}

/** Returns the `file:` URL of an absolute path; a slash at its end stays. */
export function fileUrl(path: string): URL {
  const slashes = Deno.build.os === "windows" ? path.replaceAll("\\", "/") : path;
  const encoded = slashes.split("/").map(encodeURIComponent).join("/").replace(/^([A-Za-z])%3A/, "/$1:");
  return new URL(encoded.startsWith("//") ? `file:${encoded}` : `file://${encoded}`);
}
