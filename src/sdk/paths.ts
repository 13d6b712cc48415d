/** Compares absolute paths as text. It works in sandboxes, which have no Node modules. */
import { errorName } from "./errors.ts";

const IS_WINDOWS = globalThis.navigator?.platform === "Win32";
const SEPARATORS = IS_WINDOWS ? /[\\/]+/ : /\/+/;

/** Returns whether a path is absolute on this operating system. */
export function isAbsolutePath(path: string): boolean {
  return IS_WINDOWS ? /^(?:[A-Za-z]:)?[\\/]/.test(path) : path.startsWith("/");
}

/** Returns an absolute path with `/` as separator and without `.`, `..` and repeated separators. */
export function normalizePath(path: string): string {
  const parts: string[] = [];
  for (const part of path.split(SEPARATORS)) {
    if (part === "..") parts.pop();
    else if (part !== "" && part !== ".") parts.push(part);
  }
  const root = !IS_WINDOWS ? "/" : path.startsWith("\\\\") ? "//" : /^[\\/]/.test(path) ? "/" : "";
  return root + parts.join("/");
}

/** Returns whether an absolute path is the folder or inside of it. */
export function isWithinFolder(folder: string, path: string): boolean {
  const [above, below] = [normalizePath(folder), normalizePath(path)];
  return below === above || below.startsWith(above.endsWith("/") ? above : `${above}/`);
}

/** Returns the last part of an absolute path. */
export function baseName(path: string): string {
  return normalizePath(path).split("/").at(-1) ?? "";
}

/** Returns the folder that contains an absolute path; a root contains itself. */
export function parentFolder(path: string): string {
  const normal = normalizePath(path);
  const at = normal.lastIndexOf("/");
  return at > 0 ? normal.slice(0, at) : normal.slice(0, 1);
}

/**
 * Resolves to whether a permission of a plan covers a file: it is true, or a list with the file or a folder
 * that contains it. Links are followed first, so that none leads out of a granted folder. An entry that is
 * not absolute covers nothing: it is relative to the plan, whose place is unknown here.
 *
 * @param realPath Resolves to a path with its links followed, such as `Deno.realPath`.
 */
export async function isPathGranted(
  granted: unknown,
  file: string,
  realPath: (path: string) => Promise<string>,
): Promise<boolean> {
  if (granted === true) return true;
  const paths: unknown[] = Array.isArray(granted) ? granted : [];
  for (const path of paths) {
    if (typeof path !== "string" || !isAbsolutePath(path)) continue;
    if (isWithinFolder(await followed(path, realPath), await followed(file, realPath))) return true;
  }
  return false;
}

/** Resolves to a path with the links in its existing parts followed. */
async function followed(path: string, realPath: (path: string) => Promise<string>): Promise<string> {
  const missing: string[] = [];
  for (let at = normalizePath(path);;) {
    try {
      return normalizePath([await realPath(at), ...missing].join("/"));
    } catch (error) {
      const parent = parentFolder(at);
      if (errorName(error) !== "NotFound" || parent === at) throw error;
      missing.unshift(baseName(at));
      at = parent;
    }
  }
}
