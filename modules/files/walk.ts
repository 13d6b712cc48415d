/**
 * Walks the files of a folder as programmers expect it from git and ripgrep: without what `.gitignore`,
 * `.ignore` and `.git/info/exclude` name, without the folders of version control, and without following
 * links. Folders are read synchronously, which is several times faster than one promise for each entry, in
 * slices so short that other work of the program runs in between.
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
  /** The folder above whose rules count too; contains `folder`. Default: `folder`. */
  readonly root?: string | null;
  readonly signal?: AbortSignal | undefined;
  /** Returns whether the caller names a file or folder, so that no rule leaves it out. Default: none. */
  readonly named?: ((name: string) => boolean) | undefined;
  /** Whether rules of the folders above count; default true. */
  readonly rules_above?: boolean;
}

/** What a walk left out. */
export interface LeftOut {
  /** Folders that a rule names. */
  readonly folders: FoundFile[];
  /** Files that a rule names, outside of these folders. */
  readonly files: FoundFile[];
  /** Number of links. */
  links: number;
  /** Number of folders that cannot be read. */
  unreadable: number;
}

/** Rules of one file: paths are tested relative to its folder. */
interface IgnoreRules {
  readonly folder: string;
  readonly rules: Ignore;
  /** Returns whether some rule ends like this name: most names need no test of their path. */
  readonly mayKnow: (name: string) => boolean;
}

/** Rules that hold in a folder, outermost first. Those of `.ignore` precede those of git. */
interface Rules {
  readonly git: readonly IgnoreRules[];
  readonly other: readonly IgnoreRules[];
}

const NO_RULES: Rules = { git: [], other: [] };

/** Folders of version control. */
const VERSION_CONTROL: ReadonlySet<string> = new Set([".git", ".hg", ".jj", ".svn"]);

/** Maximum characters of a file with rules. */
const MAX_RULES_CHARS = 1_000_000;

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
 * Calls `visit` for each file below a folder, depth first and sorted by name, until it returns false. The
 * folder itself is named by the caller: if a rule above leaves it out, the rules above do not count.
 * Resolves to what was left out.
 */
export async function walkFiles(
  folder: string,
  visit: (file: FoundFile) => boolean | void | Promise<boolean | void>,
  { root, signal, named = () => false, rules_above = true }: WalkOptions = {},
): Promise<LeftOut> {
  const { default: ignore } = await import("ignore");
  const slices = new Slices();
  const left_out: LeftOut = { folders: [], files: [], links: 0, unreadable: 0 };

  const readRules = (folder: string, name: string): IgnoreRules[] => {
    try {
      const text = Deno.readTextFileSync(`${folder === "/" ? "" : folder}/${name}`);
      const lines = text.slice(0, MAX_RULES_CHARS);
      const [rules, ends] = [ignore({ ignorecase: false }), ignore({ ignorecase: false })];
      ends.add(lines.split(/\r?\n/).map(endOf));
      const known = new Map<string, boolean>();
      const mayKnow = (name: string): boolean => {
        let may = known.get(name);
        if (may === undefined) known.set(name, may = ends.ignores(name));
        return may;
      };
      return [{ folder, rules: rules.add(lines), mayKnow }];
    } catch {
      return []; // it is missing, or cannot be read
    }
  };

  /** Returns the rules in a folder, `has` of which says what it contains. */
  const rulesIn = (folder: string, { git, other }: Rules, has: (name: string) => boolean): Rules => ({
    git: [
      ...has(".git") ? readRules(folder, ".git/info/exclude") : git, // another repository
      ...has(".gitignore") ? readRules(folder, ".gitignore") : [],
    ],
    other: [
      ...other,
      ...[".ignore", ".rgignore"].flatMap((name) => has(name) ? readRules(folder, name) : []),
    ],
  });

  const enter = async (path: string, relative: string, above: Rules): Promise<boolean> => {
    const entries = entriesOf(path, left_out);
    const special = new Set(entries.map(({ name }) => name).filter((name) => name.startsWith(".")));
    const rules = special.size === 0 ? above : rulesIn(path, above, (name) => special.has(name));
    for (const { name, isFile, isDirectory, isSymlink } of entries) {
      if (isSymlink) left_out.links++;
      if (!isFile && !isDirectory) continue;
      const is_named = named(name);
      if (VERSION_CONTROL.has(name) && !is_named) continue;
      const file = {
        path: `${path === "/" ? "" : path}/${name}`,
        relative: relative === "" ? name : `${relative}/${name}`,
      };
      const is_ignored = isIgnored(file.path, isDirectory, rules);
      if (is_ignored && !is_named) {
        (isDirectory ? left_out.folders : left_out.files).push(file);
        continue;
      }
      const going = isDirectory
        ? enter(file.path, file.relative, is_ignored ? NO_RULES : rules)
        : visit(file);
      if ((going instanceof Promise ? await going : going) === false) return false;
      const pause = slices.pause(signal);
      if (pause) await pause;
    }
    return true;
  };

  let rules = NO_RULES;
  for (const above of rules_above ? foldersTo(folder, root ?? folder) : []) {
    if (isIgnored(above, true, rules)) {
      rules = NO_RULES;
      break;
    }
    if (above !== folder) rules = rulesIn(above, rules, (name) => exists(`${above}/${name}`));
  }
  await enter(folder, "", rules);
  return left_out;
}

function entriesOf(path: string, left_out: LeftOut): Deno.DirEntry[] {
  try {
    return [...Deno.readDirSync(path)].sort((a, b) => a.name < b.name ? -1 : 1);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) left_out.unreadable++; // else it was removed
    return [];
  }
}

function exists(path: string): boolean {
  try {
    Deno.lstatSync(path);
    return true;
  } catch {
    return false; // it is missing, or cannot be reached
  }
}

/** Returns the folders from `root` to `folder`; only the latter when `root` does not contain it. */
function foldersTo(folder: string, root: string): string[] {
  const top = root === "/" ? "" : root;
  if (folder === root || !folder.startsWith(`${top}/`)) return [folder];
  const parts = folder.slice(top.length + 1).split("/");
  return [root, ...parts.map((_, index) => [top, ...parts.slice(0, index + 1)].join("/"))];
}

/** Returns whether the innermost rules that know a path leave it out. */
function isIgnored(path: string, isDirectory: boolean, { git, other }: Rules): boolean {
  return decisionOf(path, isDirectory, other) ?? decisionOf(path, isDirectory, git) ?? false;
}

/** Returns a rule for the last part of the paths that a rule is about. */
function endOf(rule: string): string {
  const parts = rule.replace(/^!/, "").replace(/(?<!\\) +$/, "").split("/").filter((part) => part !== "");
  const last = parts.at(-1) ?? "";
  if (last === "**") return "*";
  return parts.length > 1 ? last.replace(/^[#!]/, "\\$&") : last;
}

function decisionOf(path: string, isDirectory: boolean, rules: readonly IgnoreRules[]): boolean | null {
  if (rules.length === 0) return null;
  const name = path.slice(path.lastIndexOf("/") + 1);
  for (let at = rules.length - 1; at >= 0; at--) {
    const { folder, rules: own, mayKnow } = rules[at]!;
    if (path === folder || !mayKnow(name)) continue;
    const inside = path.slice(folder === "/" ? 1 : folder.length + 1);
    const { ignored, unignored } = own.test(inside + (isDirectory ? "/" : ""));
    if (ignored || unignored) return ignored;
  }
  return null;
}
