/** Finds the files that a folder and a pattern name, and says what was left out. */
import { type CheckedFile, type FileAccess, FileError } from "./access.ts";
import { type Glob, readGlob } from "./glob.ts";
import { type FoundFile, type LeftOut, walkFiles } from "./walk.ts";
import { baseName } from "preamp/base";

/** What is looked for. */
export interface FileQuery {
  /** Folder or file. Default: the working folder. */
  readonly path?: string | undefined;
  /** Pattern of the files, relative to the folder or absolute. Default: all files. */
  readonly pattern?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** What was found. */
export interface FileSearch {
  /** The folder or file of the query. */
  readonly start: CheckedFile;
  /** Number of files that were visited. */
  readonly count: number;
  /** What was left out, and why nothing was found, in words for the model. */
  readonly notes: readonly string[];
}

/** Most names in one note. */
const MAX_NAMES = 3;

/**
 * Calls `visit` for each file that a query names, sorted by path, until it returns false. What a query names
 * is found, also where `.gitignore` leaves it out: its folder, names in its pattern, and all files that a
 * pattern matches if there are no others.
 *
 * @throws {FileError} when the folder or the pattern cannot be read.
 */
export async function findFiles(
  access: FileAccess,
  { path, pattern, signal }: FileQuery,
  visit: (file: FoundFile) => boolean | void | Promise<boolean | void>,
): Promise<FileSearch> {
  const start = await access.readable(path ?? ".");
  if (start.info.isFile) {
    await visit({ path: start.path, relative: baseName(start.path) });
    return { start, count: 1, notes: [] };
  }
  if (!start.info.isDirectory) throw new FileError(`${path} is neither a file nor a folder`);
  const place = pattern === undefined ? null : await placeOf(access, start, pattern);
  if (place !== null && "missing" in place) return { start, count: 0, notes: [place.missing] };
  const { folder, prefix, glob } = place ?? { folder: start, prefix: "", glob: null };

  let count = 0;
  const visitCounted = (file: FoundFile) => {
    count++;
    return visit(file);
  };
  if (folder.info.isFile) {
    await visitCounted({ path: folder.path, relative: prefix });
    return { start, count, notes: [] };
  }
  const matches = ({ relative }: FoundFile) =>
    glob === null || glob.test(prefix === "" ? relative : `${prefix}/${relative}`);
  const walk = (rules_above: boolean) =>
    walkFiles(folder.path, (file) => matches(file) ? visitCounted(file) : undefined, {
      root: access.root,
      signal,
      named: glob?.names,
      rules_above,
    });

  let left_out = await walk(true);
  let are_ignored = false;
  const is_named = folder.path !== access.root;
  if (count === 0 && is_named && left_out.files.length + left_out.folders.length > 0) {
    left_out = await walk(false);
    are_ignored = count > 0;
  }
  let files = left_out.files.filter(matches);
  if (count === 0 && glob !== null && files.length > 0) {
    for (const file of files) if (await visitCounted(file) === false) break;
    files = [];
    are_ignored = true;
  }
  const notes = are_ignored ? ["these files are ignored (.gitignore, .ignore)"] : [];
  if (count === 0 && glob !== null) notes.push(...await hintFor(access, start, pattern!));
  return { start, count, notes: [...notes, ...notesOf(access, { ...left_out, files })] };
}

/** Where the files of a pattern begin. */
interface Place {
  readonly glob: Glob;
  /** The last folder that the pattern names in full, or the file. */
  readonly folder: CheckedFile;
  /** What the pattern has before the paths below this folder. */
  readonly prefix: string;
}

/** @throws {FileError} when the pattern cannot be read, or begins outside of the grant. */
async function placeOf(
  access: FileAccess,
  start: CheckedFile,
  pattern: string,
): Promise<Place | { missing: string }> {
  const sign = pattern.startsWith("!") ? "!" : "";
  const text = pattern.slice(sign.length);
  const inside = `${start.path === "/" ? "" : start.path}/`;
  const isInside = text.startsWith(inside);
  const glob = readGlob(isInside ? `${sign}/${text.slice(inside.length)}` : pattern);
  const { base } = glob;
  if (base === "") return { glob, folder: start, prefix: "" };
  const below = { glob, prefix: base };
  try {
    return { ...below, folder: await access.readable(`${inside}${base}`) };
  } catch (error) {
    if (!(error instanceof FileError)) throw error;
    if (isInside || !text.startsWith("/")) {
      if (base.split("/").includes("..")) throw error; // perhaps outside of the grant
      return { missing: `${access.display(`${inside}${base}`)} does not exist` };
    }
  }
  return { ...below, folder: await access.readable(`/${base}`) };
}

/** Returns why a pattern may match nothing. */
async function hintFor(access: FileAccess, start: CheckedFile, pattern: string): Promise<string[]> {
  if (/[,\s]/.test(pattern) && !/[{!]/.test(pattern)) return ["for one of several patterns write {a,b}"];
  if (/[*?[{/!]/.test(pattern)) return [];
  const folder = await access.readable(`${start.path}/${pattern}`).catch(() => null);
  return folder?.info.isDirectory ? [`${pattern} is a folder: ${pattern}/** matches its files`] : [];
}

function notesOf(access: FileAccess, { folders, files, links, unreadable }: LeftOut): string[] {
  const notes: string[] = [];
  const ignored = [
    ...folders.map(({ path }) => `${access.display(path)}/`),
    ...files.map(({ path }) => access.display(path)),
  ];
  if (ignored.length > 0) {
    const more = ignored.length > MAX_NAMES ? ` and ${ignored.length - MAX_NAMES} more` : "";
    notes.push(
      `ignored (.gitignore, .ignore), so not searched: ${ignored.slice(0, MAX_NAMES).join(", ")}${more}`,
    );
  }
  if (links > 0) notes.push(`${counted(links, "link")} not followed`);
  if (unreadable > 0) notes.push(`${counted(unreadable, "folder")} cannot be read`);
  return notes;
}

/** Returns a number with its noun. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}
