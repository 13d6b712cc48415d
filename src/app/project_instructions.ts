/**
 * Reads the instructions of a project for a plan with `instructions: project`: the files of agents from the
 * root of the repository to the workspace, and facts about the workspace. They are texts of the project's
 * authors: they steer the model and grant nothing (src/docs/security.md#the-folder). Starts no program.
 */
import { FileAccess, FileError } from "../../modules/files/access.ts";
import { nodeCrypto } from "../sdk/digest.ts";
import { parentFolder } from "../sdk/paths.ts";
import { escapeUnprintable } from "../text/escape.ts";

/** A file with instructions. */
export interface InstructionFile {
  /** Path from the root of the project. */
  readonly path: string;
  /** Lower-case hex. */
  readonly sha256: string;
  readonly bytes: number;
}

/** The instructions of a project. */
export interface ProjectInstructions {
  /** Part of the system message. */
  readonly text: string;
  /** The files in it, the one of the root first. */
  readonly files: readonly InstructionFile[];
  /** Why other files are left out, and which ones are cut. */
  readonly warnings: readonly string[];
}

/** Names of the files, the first that a folder has counts. */
const NAMES = ["AGENTS.md", "CLAUDE.md"] as const;

/** Folders between the root of a project and the workspace. */
const MAX_FOLDERS = 32;

/** Maximum size of a file, in bytes. */
const MAX_FILE_BYTES = 1024 * 1024;

/** Maximum characters of all texts; those nearest to the workspace are kept whole first. */
const MAX_CHARS = 64 * 1024;

const HEAD = "# Instructions of the project\n\n" +
  "The files below belong to the project that you work in, from its root to your folder; where they differ, " +
  "the later one counts. Follow them in your work. They give no permission, and what a person asks for comes first.";

/**
 * Resolves to the instructions of the project that a folder belongs to.
 *
 * @param folder Absolute path of the workspace.
 * @param now Time in milliseconds, for the date.
 */
export async function readProjectInstructions(folder: string, now: number): Promise<ProjectInstructions> {
  const workspace = await Deno.realPath(folder).catch(() => folder);
  const folders = await foldersTo(workspace);
  const root = folders[0]!; // it has the workspace at least
  const access = new FileAccess({ read: [root], write: false }, root);
  const found: { file: InstructionFile; text: string }[] = [];
  const warnings: string[] = [];
  const known = new Set<string>();
  for (const at of folders) {
    const path = await fileIn(at);
    if (path === undefined) continue;
    try {
      const { bytes, checked } = await access.read(path, MAX_FILE_BYTES);
      if (known.has(checked.path)) continue; // a link to a file that was read
      known.add(checked.path);
      const sha256 = nodeCrypto().createHash("sha256").update(bytes).digest("hex");
      const text = new TextDecoder().decode(bytes).replaceAll(/\r\n?/g, "\n").trim();
      found.push({ file: { path: access.display(path), sha256, bytes: bytes.length }, text });
    } catch (error) {
      if (!(error instanceof FileError)) throw error;
      warnings.push(`Cannot use the instructions of the project: ${error.message}`);
    }
  }
  const texts = withinLimit(found, root, warnings);
  const facts = await factsOf(workspace, root, now);
  const parts = [...texts.length > 0 ? [HEAD, ...texts] : [], facts];
  return { text: parts.join("\n\n"), files: found.map(({ file }) => file), warnings };
}

/**
 * Resolves to the folders from the root of a repository to a folder in it; only the folder where it is in no
 * repository. A repository of another user does not count, because that user would steer work in this folder.
 */
async function foldersTo(folder: string): Promise<string[]> {
  const owner = (await Deno.stat(folder).catch(() => null))?.uid;
  const folders: string[] = [];
  for (let at = folder; folders.length < MAX_FOLDERS; at = parentFolder(at)) {
    if ((await Deno.permissions.query({ name: "read", path: at })).state !== "granted") break; // without a question
    folders.unshift(at);
    const git = await Deno.lstat(`${at === "/" ? "" : at}/.git`).catch(() => null);
    if (git !== null && git.uid === owner) return folders;
    if (parentFolder(at) === at) break;
  }
  return [folder];
}

async function fileIn(folder: string): Promise<string | undefined> {
  for (const name of NAMES) {
    const path = `${folder === "/" ? "" : folder}/${name}`;
    if (await Deno.lstat(path).catch(() => null)) return path;
  }
  return undefined;
}

/** Returns the texts with their paths. Those of outer folders are cut when all are too long. */
function withinLimit(
  found: readonly { file: InstructionFile; text: string }[],
  root: string,
  warnings: string[],
): string[] {
  let left = MAX_CHARS;
  return found.toReversed().map(({ file: { path }, text }) => {
    const shown = text.slice(0, left).toWellFormed();
    left -= shown.length;
    const rest = text.length - shown.length;
    if (rest > 0) {
      warnings.push(`The instructions of the project are cut: ${rest} characters of ${path} are left out`);
    }
    const note = rest > 0 ? `\n[… ${rest} more characters in ${root}/${path}]` : "";
    // a text cannot end its own block
    const safe = (shown + note).replaceAll(/<(?=\/instructions)/gi, "<\\");
    return `<instructions file=${JSON.stringify(path)}>\n${safe}\n</instructions>`;
  }).reverse();
}

/**
 * Returns facts about the workspace. They change at most once a day, or with the branch, so that the cached
 * beginning of requests stays the same.
 */
async function factsOf(workspace: string, root: string, now: number): Promise<string> {
  const date = new Date(now);
  const day = [date.getFullYear(), date.getMonth() + 1, date.getDate()];
  const branch = await branchOf(root);
  const lines = [
    `Folder: ${escapeUnprintable(workspace)}`,
    ...root === workspace ? [] : [`Root of the project: ${escapeUnprintable(root)}`],
    `System: ${Deno.build.os} ${Deno.build.arch}`,
    `Date: ${day.map((part) => String(part).padStart(2, "0")).join("-")}`,
    ...branch === null ? [] : [`Git: ${branch}`],
  ];
  return `<environment>\n${lines.join("\n")}\n</environment>`;
}

/** Maximum bytes of the files of git that are read. */
const MAX_GIT_BYTES = 4_096;

/**
 * Returns the branch of a repository, or the commit of a detached HEAD; null without one. In a worktree or a
 * submodule `.git` is a file that names the folder with its `HEAD`.
 */
async function branchOf(root: string): Promise<string | null> {
  const git = `${root === "/" ? "" : root}/.git`;
  const link = /^gitdir: (.+)$/m.exec(await gitText(git) ?? "")?.[1]?.trim();
  const folder = link === undefined ? git : link.startsWith("/") ? link : `${root}/${link}`;
  const head = (await gitText(`${folder}/HEAD`))?.trim() ?? "";
  // only what git accepts as a name: the file may be anything
  const branch = /^ref: refs\/heads\/([^\s\p{C}~^:?*[\\<>]{1,250})$/u.exec(head)?.[1];
  if (branch !== undefined) return `branch ${branch}`;
  return /^[0-9a-f]{40,64}$/.test(head) ? `commit ${head.slice(0, 12)}` : null;
}

async function gitText(path: string): Promise<string | null> {
  try {
    const info = await Deno.stat(path);
    if (!info.isFile || info.size > MAX_GIT_BYTES) return null;
    return await Deno.readTextFile(path);
  } catch {
    return null; // no repository, or this process may not read it
  }
}
