/** What the tools of this module share: settings, the files that were read, and writing with its diff. */
import { type FileAccess, FileError } from "../files/access.ts";
import { type Coordinator, type JsonObject, toolFailure } from "preamp/base";

/** Settings of the module, with defaults filled in. */
export interface FileSettings {
  /** Folder that relative paths start at. */
  root?: string;
  dialect: "auto" | "plain" | "patch";
  max_read_lines: number;
  max_read_bytes: number;
  max_line_chars: number;
}

/** Bytes of a file that can be edited or replaced. */
export const MAX_EDITED_BYTES = 32 * 1024 * 1024;

/** The identities of files as the model last saw them. */
export class SeenFiles {
  readonly #seen = new Map<string, string>();

  /** Notes that the model has seen, or written, this state of a file. */
  note(path: string, info: Deno.FileInfo): void {
    this.#seen.set(path, identityOf(info));
  }

  /** @throws {FileError} when the model read the file, and it has changed since. */
  check(path: string, info: Deno.FileInfo, shown: string): void {
    const known = this.#seen.get(path);
    if (known === undefined || known === identityOf(info)) return;
    throw new FileError(`${shown} has changed since it was read: read it again`);
  }

  forget(path: string): void {
    this.#seen.delete(path);
  }
}

function identityOf({ ino, size, mtime }: Deno.FileInfo): string {
  return `${ino} ${size} ${mtime?.getTime()}`;
}

/** Runs one change of a file at a time. */
export class FileLocks {
  readonly #last = new Map<string, Promise<unknown>>();

  async run<T>(paths: readonly string[], body: () => Promise<T>): Promise<T> {
    const before = paths.map((path) => this.#last.get(path));
    const turn = Promise.allSettled(before).then(body);
    for (const path of paths) this.#last.set(path, turn);
    try {
      return await turn;
    } finally {
      for (const path of paths) if (this.#last.get(path) === turn) this.#last.delete(path);
    }
  }
}

/** Returns the path of an input. @throws {FileError} when it is missing. */
export function pathOf({ path, file_path }: { path?: string; file_path?: string }): string {
  const given = path ?? file_path;
  if (given === undefined || given === "") throw new FileError("path is required");
  return given;
}

/** Returns a failure that the model can act on. @throws an error of another kind. */
export function fileFailure(error: unknown): unknown {
  if (error instanceof FileError) return toolFailure(error.message, { type: "file_error" });
  throw error;
}

/** Reads a text file to change it. @throws {FileError} also when it is not UTF-8. */
export async function readText(
  access: FileAccess,
  path: string,
): Promise<{ text: string; bytes: Uint8Array; info: Deno.FileInfo; real: string }> {
  const { bytes, checked } = await access.read(path, MAX_EDITED_BYTES);
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    return { text, bytes, info: checked.info, real: checked.path };
  } catch {
    throw new FileError(`${path} is not UTF-8 text`);
  }
}

/** A file as it will be; null: it is deleted. */
export interface FileChange {
  /** As the model named it. */
  readonly path: string;
  /** Real path. */
  readonly real: string;
  readonly before: Uint8Array | null;
  readonly after: string | null;
}

/** Writes changes, each after its undo is stored; resolves to a note for the result, usually empty. */
export async function applyChanges(
  coordinator: Coordinator,
  access: FileAccess,
  changes: readonly FileChange[],
  seen: SeenFiles,
): Promise<string> {
  const notes: string[] = [];
  for (const { path, real, before, after } of changes) {
    const bytes = after === null ? null : new TextEncoder().encode(after);
    const refused = await storeUndo(coordinator, real, before, bytes);
    if (refused !== null) notes.push(`${path} cannot be undone: ${refused}`);
    if (bytes === null) {
      await access.remove(path);
      seen.forget(real);
    } else {
      const written = await access.replace(path, bytes);
      seen.note(written, await Deno.lstat(written));
    }
  }
  return notes.length === 0 ? "" : `\n(${notes.join("; ")})`;
}

/** Stores a file's bytes from before a change with the run. Resolves to why not, or null. */
async function storeUndo(
  coordinator: Coordinator,
  path: string,
  before: Uint8Array | null,
  after: Uint8Array | null,
): Promise<string | null> {
  const keep = coordinator.getCapability("session.keep_before");
  if (typeof keep !== "function") return null;
  const answer: unknown = await keep(
    {
      path,
      before: before?.toBase64() ?? null,
      after_sha256: after === null ? null : await sha256(after),
    } satisfies JsonObject,
  );
  return typeof answer === "string" ? answer : null;
}

async function sha256(bytes: Uint8Array): Promise<string> {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", bytes.slice())).toHex();
}

const CONTEXT_LINES = 3;
const MAX_DIFF_CHARS = 20_000;

/**
 * Returns the difference of two texts as a unified diff without file names. Only the part between the common
 * beginning and end is compared, so that a small change of a large file costs little.
 */
export async function diffOf(before: string, after: string): Promise<string> {
  const [old, now] = [before.split("\n"), after.split("\n")];
  let start = 0;
  while (start < old.length && start < now.length && old[start] === now[start]) start++;
  let end = 0;
  while (
    end < old.length - start && end < now.length - start &&
    old[old.length - 1 - end] === now[now.length - 1 - end]
  ) end++;
  const from = Math.max(0, start - CONTEXT_LINES);
  const rest = Math.max(0, end - CONTEXT_LINES);
  const { structuredPatch } = await import("diff");
  const middle = (lines: string[]) => lines.slice(from, lines.length - rest).join("\n");
  const patch = structuredPatch("", "", middle(old), middle(now), "", "", {
    context: CONTEXT_LINES,
    timeout: 200, // milliseconds, in which nothing else runs
  });
  if (!patch) return `(${now.length - old.length} lines more, too different to show)`;
  const text = patch.hunks.map(({ oldStart, oldLines, newStart, newLines, lines }) => {
    const shown = lines.filter((line) => !line.startsWith("\\"));
    return [`@@ -${oldStart + from},${oldLines} +${newStart + from},${newLines} @@`, ...shown].join("\n");
  }).join("\n");
  return text.length <= MAX_DIFF_CHARS ? text : `${text.slice(0, MAX_DIFF_CHARS)}\n[… diff cut]`;
}
