/**
 * What the paths of a grant mean: from which folder, and where they really lead. A grant names real folders, because Deno
 * compares text and then follows links: a link that changes later must not move the grant.
 */
import { type FilePath, parsePath, pathFrom, pathText } from "../plan/permissions/file_path.ts";

/** Returns where a path leads, absolute; undefined when that cannot be told. */
export type Resolve = (path: FilePath) => FilePath | undefined;

/**
 * Returns the real path of what is at an absolute path, every link followed; undefined when nothing is there. Throws when it
 * cannot tell: a link to nothing, a circle of links, no permission to look.
 */
export type RealPath = (path: string) => string | undefined;

/** Returns a path as it stands. */
export function asWritten(path: FilePath): FilePath {
  return path;
}

/**
 * Returns what paths mean that are written beside `folder`, an absolute path. Of what is not there yet, the deepest folder
 * that is there is resolved.
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
      return undefined; // it cannot be told: nothing is granted
    }
    const folder = found === undefined ? undefined : parsePath(found);
    if (folder) return { ...folder, steps: [...folder.steps, ...path.steps.slice(length)] };
    if (found !== undefined) return undefined;
  }
  return undefined;
}
