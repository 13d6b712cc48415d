/**
 * Entries of `read`, `write` and `ffi`: a file, or a folder with everything below it. Paths are compared by
 * steps after removing `.`, `..`, `//` and a final slash; case matters. Like Deno, compares the text
 * without resolving links.
 */

/** A normalised path. A relative one may begin with `..` steps, and has none elsewhere. */
export interface FilePath {
  kind: "path";
  absolute: boolean;
  steps: readonly string[];
}

/** Returns a normalised path; undefined for text that is not a path, and for Windows paths. */
export function parsePath(text: string): FilePath | undefined {
  if (text === "" || text.includes("\0") || text.includes("\\") || /^[a-z]:/i.test(text)) return undefined;
  return normalPath(text.startsWith("/"), text.split("/"));
}

function normalPath(absolute: boolean, parts: readonly string[]): FilePath {
  const steps: string[] = [];
  for (const part of parts) {
    if (part === "" || part === ".") continue;
    if (part !== "..") steps.push(part);
    else if (steps.length > 0 && steps.at(-1) !== "..") steps.pop();
    else if (!absolute) steps.push(part); // the parent of the root is the root
  }
  return { kind: "path", absolute, steps };
}

/** Resolves a path against a folder. */
export function pathFrom(folder: FilePath, path: FilePath): FilePath {
  return path.absolute ? path : normalPath(folder.absolute, [...folder.steps, ...path.steps]);
}

/** Returns the deeper of two paths if the other contains it, else undefined. */
export function meetPaths(a: FilePath, b: FilePath): FilePath | undefined {
  if (isAbove(a, b)) return b;
  return isAbove(b, a) ? a : undefined;
}

/**
 * Returns true if `above` contains `below`. A relative path contains only paths that descend from it: `..`
 * is not below `.`.
 */
function isAbove(above: FilePath, below: FilePath): boolean {
  return above.absolute === below.absolute && above.steps.every((step, at) => step === below.steps[at]) &&
    below.steps[above.steps.length] !== "..";
}

/** Returns a path as text. */
export function pathText({ absolute, steps }: FilePath): string {
  return absolute ? `/${steps.join("/")}` : steps.length === 0 ? "." : steps.join("/");
}
