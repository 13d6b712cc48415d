/**
 * Resolves the paths of a grant to real folders. Deno compares the text of a path and then follows links,
 * so a link that changes later must not change the grant.
 */
import { type FilePath, parsePath, pathFrom, pathText } from "../plan/permissions/file_path.ts";

/** Returns the absolute real path; undefined if it cannot be determined. */
export type Resolve = (path: FilePath) => FilePath | undefined;

/**
 * Returns the real path of an absolute path with all links followed; undefined if nothing exists there.
 * Throws for a broken link, a cycle of links, or without permission to read.
 */
export type RealPath = (path: string) => string | undefined;

/** Returns a path unchanged. */
export function asWritten(path: FilePath): FilePath {
  return path;
}

/**
 * Returns a function that resolves paths relative to `folder`, an absolute path. For a path that does not
 * exist yet, it resolves the deepest existing ancestor.
 */
export function pathsBeside(folder: () => string | undefined, realPath: RealPath): Resolve {
  return (written) => {
    const path = written.absolute ? written : from(folder(), written);
    return path && real(path, realPath);
  };
}

function from(folder: string | undefined, path: FilePath): FilePath | undefined {
  const base = folder === undefined ? undefined : parsePath(folder);
  return base?.absolute ? pathFrom(base, path) : undefined;
}

function real(path: FilePath, realPath: RealPath): FilePath | undefined {
  for (let length = path.steps.length; length >= 0; length--) {
    const above: FilePath = { ...path, steps: path.steps.slice(0, length) };
    let found: string | undefined;
    try {
      found = realPath(pathText(above));
    } catch {
      return undefined; // cannot be determined: grants nothing
    }
    const folder = found === undefined ? undefined : parsePath(found);
    if (folder) return { ...folder, steps: [...folder.steps, ...path.steps.slice(length)] };
    if (found !== undefined) return undefined;
  }
  return undefined;
}
