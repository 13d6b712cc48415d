/**
 * Entries of `read`, `write` and `ffi`: a file, or a folder and all that is below it. Compared step by step after `.`, `..`,
 * `//` and a slash at the end are gone, letters as they are. Deno goes by the text too, before it follows any link.
 */

/** A path in normal form. A relative one may begin with `..` steps, and has none elsewhere. */
export interface FilePath {
  kind: "path";
  absolute: boolean;
  steps: readonly string[];
}

/** Returns a path in normal form; undefined for what is none, and for those of Windows, which have other rules. */
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
    else if (!absolute) steps.push(part); // above the root is the root
  }
  return { kind: "path", absolute, steps };
}

/** Returns a path as seen from a folder. */
export function pathFrom(folder: FilePath, path: FilePath): FilePath {
  return path.absolute ? path : normalPath(folder.absolute, [...folder.steps, ...path.steps]);
}

/** Returns the deeper of two paths when the other one is above it, else undefined. */
export function meetPaths(one: FilePath, other: FilePath): FilePath | undefined {
  if (isAbove(one, other)) return other;
  return isAbove(other, one) ? one : undefined;
}

/** Of relative paths only what goes down from one is below it: `..` is not below `.`. */
function isAbove(above: FilePath, below: FilePath): boolean {
  return above.absolute === below.absolute && above.steps.every((step, at) => step === below.steps[at]) &&
    below.steps[above.steps.length] !== "..";
}

/** Returns a path as text. */
export function pathText({ absolute, steps }: FilePath): string {
  return absolute ? `/${steps.join("/")}` : steps.length === 0 ? "." : steps.join("/");
}
