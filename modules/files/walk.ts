/**
 * Walks the files of a folder as programmers expect it: without what `.gitignore` names, without `.git`, and
 * without following links. Folders are read synchronously, which is several times faster than one promise
 * for each entry, in slices so short that other work of the program runs in between.
 */
import type { Ignore } from "ignore";

/** Milliseconds of one slice. */
const SLICE_MS = 8;

/** A file that was found. */
export interface FoundFile {
  /** Absolute path. */
  readonly path: string;
  /** Path from the folder of the walk, with `/`. */
  readonly relative: string;
}

/** Options of {@link walkFiles}. */
export interface WalkOptions {
  /** The folder above whose `.gitignore` files count too; contains `folder`. Default: `folder`. */
  readonly root?: string | null;
  readonly signal?: AbortSignal | undefined;
}

/** Rules of one `.gitignore`: paths are tested relative to its folder. */
interface IgnoreRules {
  readonly folder: string;
  readonly rules: Ignore;
}

/** Pauses when a slice is over, so that timers and other requests are served. */
export class Slices {
  #until = performance.now() + SLICE_MS;

  /** Returns a promise to await when the slice is over, else undefined. @throws the reason of an abort. */
  pause(signal?: AbortSignal): Promise<void> | undefined {
    if (performance.now() < this.#until) return undefined;
    signal?.throwIfAborted();
    return new Promise((resolve) =>
      setTimeout(() => {
        this.#until = performance.now() + SLICE_MS;
        resolve();
      })
    );
  }
}

/**
 * Calls `visit` for each file below a folder, depth first and sorted by name, until it returns false. A
 * folder that cannot be read is left out.
 */
export async function walkFiles(
  folder: string,
  visit: (file: FoundFile) => boolean | void | Promise<boolean | void>,
  { root, signal }: WalkOptions = {},
): Promise<void> {
  const { default: ignore } = await import("ignore");
  const slices = new Slices();

  const rulesIn = (path: string): IgnoreRules[] => {
    try {
      const text = Deno.readTextFileSync(`${path}/.gitignore`);
      return [{ folder: path, rules: ignore().add(text) }];
    } catch {
      return []; // it is missing, or cannot be read
    }
  };

  const enter = async (path: string, relative: string, above: readonly IgnoreRules[]): Promise<boolean> => {
    const entries = entriesOf(path);
    const rules = entries.some(({ name }) => name === ".gitignore") ? [...above, ...rulesIn(path)] : above;
    for (const { name, isFile, isDirectory } of entries) {
      if (!isFile && !isDirectory || name === ".git") continue;
      const at = `${path === "/" ? "" : path}/${name}`;
      if (isIgnored(at, isDirectory, rules)) continue;
      const below = relative === "" ? name : `${relative}/${name}`;
      const going = isDirectory ? enter(at, below, rules) : visit({ path: at, relative: below });
      if ((going instanceof Promise ? await going : going) === false) return false;
      const pause = slices.pause(signal);
      if (pause) await pause;
    }
    return true;
  };

  await enter(folder, "", foldersAbove(folder, root ?? folder).flatMap(rulesIn));
}

function entriesOf(path: string): Deno.DirEntry[] {
  try {
    return [...Deno.readDirSync(path)].sort((a, b) => a.name < b.name ? -1 : 1);
  } catch {
    return []; // it was removed, or the operating system or the sandbox does not permit it
  }
}

/** Returns the folders from `root` to the parent of `folder`; none when `root` does not contain it. */
function foldersAbove(folder: string, root: string): string[] {
  if (!folder.startsWith(`${root}/`)) return [];
  const parts = folder.slice(root.length + 1).split("/");
  return parts.map((_, index) => [root, ...parts.slice(0, index)].join("/"));
}

/** Returns whether the innermost rules that know a path leave it out. */
function isIgnored(path: string, isDirectory: boolean, rules: readonly IgnoreRules[]): boolean {
  for (let at = rules.length - 1; at >= 0; at--) {
    const { folder, rules: own } = rules[at]!;
    const { ignored, unignored } = own.test(path.slice(folder.length + 1) + (isDirectory ? "/" : ""));
    if (ignored || unignored) return ignored;
  }
  return false;
}
