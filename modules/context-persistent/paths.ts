/**
 * Absolute paths as texts. Not Node's functions: a module that runs in a sandbox has none of Node's, and this one gives the same
 * answers there.
 */

const IS_WINDOWS = Deno.build.os === "windows";
const SEPARATORS = IS_WINDOWS ? /[\\/]+/ : /\/+/;

/** Returns whether a path names the same file wherever it is read. */
export function isAbsolute(path: string): boolean {
  return IS_WINDOWS ? /^(?:[A-Za-z]:)?[\\/]/.test(path) : path.startsWith("/");
}

/** Returns an absolute path without `.`, `..` and repeated separators. */
export function normalize(path: string): string {
  const parts: string[] = [];
  for (const part of path.split(SEPARATORS)) {
    if (part === "..") parts.pop();
    else if (part !== "" && part !== ".") parts.push(part);
  }
  const root = !IS_WINDOWS ? "/" : path.startsWith("\\\\") ? "//" : /^[\\/]/.test(path) ? "/" : "";
  return root + parts.join("/");
}

/** Returns whether an absolute path is a folder, or is below it. */
export function isWithin(folder: string, path: string): boolean {
  const [above, below] = [normalize(folder), normalize(path)];
  return below === above || below.startsWith(above.endsWith("/") ? above : `${above}/`);
}

/** Returns the last part of an absolute path. */
export function basename(path: string): string {
  return normalize(path).split("/").at(-1) ?? "";
}
