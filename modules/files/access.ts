/**
 * Files that a module may reach: the paths of its grant. Links are followed before a path is compared, so
 * that none leads out of a granted folder, and an opened file is compared with the checked one, so that a
 * path that is exchanged in between is noticed. The same rules hold in a sandbox, where Deno's own check
 * follows the path once more but does not stop links that already exist.
 */
import {
  errorMessage,
  type GrantedPermissions,
  isAbsolutePath,
  isWithinFolder,
  normalizePath,
  parentFolder,
} from "preamp/base";

/** What a module may do with files. */
export type FileGrant = Pick<GrantedPermissions, "read" | "write">;

/** A path that a tool cannot use, in words for the model. */
export class FileError extends Error {
  override readonly name = "FileError";
}

/** An existing file or folder that was checked. */
export interface CheckedFile {
  /** Absolute path without links. */
  readonly path: string;
  readonly info: Deno.FileInfo;
}

/**
 * How often an opened file is compared with its path. Deno cannot open a file relative to an open folder, so
 * a program that exchanges a folder for a link and back could pass one comparison, at the right microsecond.
 */
const EXCHANGE_CHECKS = 3;

/** One file of a set of changes. */
export interface AppliedChange {
  /** As it was asked for, for refusals. */
  readonly path: string;
  /** Real path, from {@link FileAccess.writable} or {@link FileAccess.entry}. */
  readonly real: string;
  /** Its bytes; null: it is deleted, if it is there. */
  readonly after: Uint8Array | null;
  /** Bytes of the file that is replaced or deleted; null: no file, or a link. Default: any. */
  readonly before?: Uint8Array | null;
  /** Real path of the file or link that is moved here, with its bytes. */
  readonly from?: string;
  /** Mode; default: the one of the file that is replaced. */
  readonly mode?: number;
}

/** Reaches the files of a grant. */
export class FileAccess {
  readonly #grant: FileGrant;
  /** Absolute path of the folder that relative paths start at; null: relative paths are refused. */
  readonly root: string | null;

  /**
   * @param root The folder that relative paths start at. Default: the first readable path of the grant.
   */
  constructor(grant: FileGrant, root?: string) {
    this.#grant = grant;
    this.root = root ?? (Array.isArray(grant.read) ? grant.read[0] ?? null : null);
  }

  /** Returns a path for display: relative to the root if it is inside of it. */
  display(path: string): string {
    if (this.root === null || !isWithinFolder(this.root, path)) return path;
    return path === this.root ? "." : path.slice(this.root === "/" ? 1 : this.root.length + 1);
  }

  /**
   * Resolves to an existing file or folder that may be read.
   *
   * @throws {FileError} when it is missing, or outside of the grant.
   */
  async readable(path: string): Promise<CheckedFile> {
    return await this.#existing(path, "read");
  }

  /**
   * Resolves to the real path of a file that may be written, existing or not; its folder may be missing too.
   * A link is followed: its target is what must be granted.
   *
   * @throws {FileError} when it is outside of the grant, a folder, or no regular file.
   */
  async writable(path: string): Promise<{ path: string; info: Deno.FileInfo | null }> {
    const { target, exists } = await this.#target("write", path);
    this.#require("write", target, path);
    const info = exists ? await Deno.lstat(target) : null;
    if (info && !info.isFile) throw new FileError(`${path} is ${kindOf(info)}, not a file`);
    return { path: target, info };
  }

  /**
   * Resolves to a path with its links followed, existing or not, inside of the grant or not.
   *
   * @throws {FileError} when it cannot be reached.
   */
  async realPath(path: string): Promise<string> {
    return (await this.#target("read", path)).target;
  }

  /**
   * Opens a file that may be read. The caller closes it.
   *
   * @throws {FileError} when it is no regular file, or was exchanged while it was opened.
   */
  async open(path: string): Promise<{ file: Deno.FsFile; checked: CheckedFile }> {
    const checked = await this.readable(path);
    if (!checked.info.isFile) throw new FileError(`${path} is ${kindOf(checked.info)}, not a file`);
    const file = await Deno.open(checked.path, { read: true }).catch((error) => {
      throw unreachable(error, path);
    });
    try {
      const opened = await file.stat();
      for (let check = 0; check < EXCHANGE_CHECKS; check++) {
        const again = await this.readable(path);
        if (again.path === checked.path && isSameFile(again.info, opened)) continue;
        throw new FileError(`${path} was exchanged while it was opened: try again`);
      }
      return { file, checked: { path: checked.path, info: opened } };
    } catch (error) {
      file.close();
      throw error;
    }
  }

  /**
   * Reads a whole file.
   *
   * @throws {FileError} also when it has more than `maxBytes`.
   */
  async read(path: string, maxBytes: number): Promise<{ bytes: Uint8Array; checked: CheckedFile }> {
    const { file, checked } = await this.open(path);
    try {
      if (checked.info.size > maxBytes) {
        throw new FileError(
          `${path} has ${checked.info.size} bytes; at most ${maxBytes} can be read at once`,
        );
      }
      return { bytes: await readAtMost(file, maxBytes, path), checked };
    } finally {
      file.close();
    }
  }

  /**
   * Resolves to a path of which the last part is not followed: to a link itself, else as {@link writable}.
   *
   * @throws {FileError} as {@link writable}.
   */
  async entry(path: string): Promise<{ path: string; info: Deno.FileInfo | null }> {
    const wanted = this.#absolute(path);
    const info = await Deno.lstat(wanted).catch(() => null);
    if (!info?.isSymlink) return await this.writable(path);
    const folder = await this.#followed("write", parentFolder(wanted), path) ?? parentFolder(wanted);
    const real = normalizePath(`${folder}/${wanted.slice(wanted.lastIndexOf("/") + 1)}`);
    this.#require("write", real, path);
    return { path: real, info };
  }

  /**
   * Replaces a file, or creates it with its folders, as {@link apply} does.
   *
   * @param mode Mode of a file that does not exist.
   * @returns the real path.
   * @throws {FileError} as {@link writable}.
   */
  async replace(path: string, bytes: Uint8Array, mode?: number): Promise<string> {
    const { path: real, info } = await this.writable(path);
    await this.apply([{ path, real, after: bytes, ...(info || mode === undefined ? {} : { mode }) }]);
    return real;
  }

  /**
   * Deletes a file, or a link itself.
   *
   * @returns the path of which the last part is not followed.
   * @throws {FileError} as {@link writable}, and when it is missing.
   */
  async remove(path: string): Promise<string> {
    const { path: real, info } = await this.entry(path);
    if (info === null) throw new FileError(`${path} does not exist`);
    await this.apply([{ path, real, after: null }]);
    return real;
  }

  /**
   * Makes all changes, or none: those that were made before one fails are taken back. Bytes are written
   * beside their file and renamed, so that a reader sees the old or the new file, and a hard link elsewhere
   * keeps its content. Missing folders are created.
   *
   * @throws {FileError} with the reason of the file system.
   */
  async apply(changes: readonly AppliedChange[]): Promise<void> {
    const work = new AppliedWork();
    let path = "";
    try {
      const staged: (string | undefined)[] = [];
      for (const change of changes) {
        path = change.path;
        const { real, after, from } = change;
        if (after !== null || from !== undefined) await this.#createFolder(parentFolder(real), path, work);
        staged.push(from ?? (after === null ? undefined : await work.stage(change, after)));
      }
      for (const [index, change] of changes.entries()) {
        path = change.path;
        await checkStill(change);
        await work.exchange(change.real, staged[index], change.from !== undefined);
      }
    } catch (error) {
      const lost = await work.takeBack();
      const reason = unreachable(error, path);
      if (lost.length === 0) throw reason;
      throw new FileError(`${errorMessage(reason)}; these could not be put back: ${lost.join(", ")}`);
    }
    await work.finish();
  }

  async #createFolder(folder: string, path: string, work: AppliedWork): Promise<void> {
    await work.createFolder(folder);
    // the folders may have been created, or exchanged for a link, meanwhile
    this.#require("write", await followed(folder, path) ?? folder, path);
  }

  async #existing(path: string, permission: keyof FileGrant): Promise<CheckedFile> {
    const wanted = this.#absolute(path);
    const real = await this.#followed(permission, wanted, path);
    if (real === null) {
      // a path outside of the grant does not tell whether it exists
      this.#require(permission, wanted, path);
      throw new FileError(`${path} does not exist`);
    }
    this.#require(permission, real, path);
    return { path: real, info: await Deno.lstat(real) };
  }

  /** Resolves to a path with the links in its existing parts followed. @throws {FileError} */
  async #target(permission: keyof FileGrant, path: string): Promise<{ target: string; exists: boolean }> {
    const missing: string[] = [];
    for (let at = this.#absolute(path);;) {
      const real = await this.#followed(permission, at, path);
      if (real !== null) {
        return { target: normalizePath([real, ...missing].join("/")), exists: missing.length === 0 };
      }
      const parent = parentFolder(at);
      if (parent === at) throw new FileError(`${path} cannot be reached`);
      missing.unshift(at.slice(parent === "/" ? 1 : parent.length + 1));
      at = parent;
    }
  }

  /** Resolves to a path with its links followed; null if it does not exist. @throws {FileError} */
  async #followed(permission: keyof FileGrant, path: string, asked: string): Promise<string | null> {
    try {
      return await followed(path, asked);
    } catch (error) {
      // a sandbox does not even follow the links of a path that is not granted
      if (error instanceof FileError && error.cause !== undefined) this.#require(permission, path, asked);
      throw error;
    }
  }

  #absolute(path: string): string {
    if (path.includes("\0")) throw new FileError("A path must not contain NUL");
    if (isAbsolutePath(path)) return normalizePath(path);
    if (this.root === null) throw new FileError(`${path} is relative: use an absolute path`);
    return normalizePath(`${this.root}/${path}`);
  }

  #require(permission: keyof FileGrant, real: string, path: string): void {
    const granted = this.#grant[permission];
    if (granted === true) return;
    const folders = Array.isArray(granted) ? granted : [];
    if (folders.some((folder) => isWithinFolder(folder, real))) return;
    const verb = permission === "read" ? "read" : "written";
    const may = folders.length === 0 ? "nothing may be" : `only files in ${folders.join(", ")} may be`;
    throw new FileError(`${path} cannot be ${verb}: ${may} ${verb}`);
  }
}

/** A set of changes while it is made: what it leaves beside the files, and how each step is taken back. */
class AppliedWork {
  /** New files before they have their place, and what was replaced. */
  readonly #staged: string[] = [];
  readonly #replaced: string[] = [];
  readonly #back: { readonly what: string; readonly run: () => Promise<unknown> }[] = [];

  /** Creates a folder with those above it. */
  async createFolder(folder: string): Promise<void> {
    if (await infoOf(folder) !== null) return;
    await this.createFolder(parentFolder(folder));
    await Deno.mkdir(folder);
    this.#back.push({ what: folder, run: () => Deno.remove(folder) });
  }

  /** Writes bytes beside their file, with its mode and owner; resolves to their path. */
  async stage({ real, mode }: AppliedChange, bytes: Uint8Array): Promise<string> {
    const temporary = pathBeside(real);
    this.#staged.push(temporary);
    const old = await infoOf(real);
    const kept = mode ?? old?.mode ?? null;
    const options = kept === null ? {} : { mode: kept & 0o7777 };
    await Deno.writeFile(temporary, bytes, { createNew: true, ...options });
    const { uid, gid } = await Deno.lstat(temporary);
    if (old && old.uid !== null && (old.uid !== uid || old.gid !== gid)) {
      await Deno.chown(temporary, old.uid, old.gid).catch(() => {}); // only some users may
      if (kept !== null) await Deno.chmod(temporary, kept & 0o7777); // it lost some bits
    }
    return temporary;
  }

  /** Puts a file in the place of another one, or only deletes that. */
  async exchange(real: string, file: string | undefined, isMoved: boolean): Promise<void> {
    const old = await infoOf(real);
    if (old !== null) {
      if (old.isDirectory) throw new Deno.errors.IsADirectory();
      const kept = pathBeside(real);
      this.#replaced.push(kept);
      this.#back.push({ what: `${real} (kept as ${kept})`, run: () => Deno.rename(kept, real) });
      // with a second name the file is never missing; not every file system has them, and links have none
      const isLinked = file !== undefined && old.isFile &&
        await Deno.link(real, kept).then(() => true, () => false);
      if (!isLinked) await Deno.rename(real, kept);
    }
    if (file === undefined) return;
    await Deno.rename(file, real);
    if (isMoved) this.#back.push({ what: real, run: () => Deno.rename(real, file) });
    else if (old === null) this.#back.push({ what: real, run: () => Deno.remove(real) });
  }

  /** Takes back all steps, the last one first; resolves to what could not be. */
  async takeBack(): Promise<string[]> {
    await removeAll(this.#staged);
    const lost: string[] = [];
    for (const { what, run } of this.#back.reverse()) {
      await run().catch(() => lost.push(what));
    }
    if (lost.length === 0) await removeAll(this.#replaced);
    return lost;
  }

  /** Deletes what was replaced. */
  async finish(): Promise<void> {
    await removeAll(this.#replaced);
  }
}

/** @throws {FileError} when another program has changed a file since its change was worked out. */
async function checkStill({ path, real, before }: AppliedChange): Promise<void> {
  const info = before === undefined ? null : await infoOf(real);
  if (!info?.isFile) return; // what is gone is not lost by the change
  const bytes = before && before.length === info.size ? await Deno.readFile(real) : null;
  if (before && bytes?.every((byte, at) => byte === before[at])) return;
  throw new FileError(`${path} was changed by another program just now: read it again`);
}

async function removeAll(paths: readonly string[]): Promise<void> {
  for (const path of paths) await Deno.remove(path).catch(() => {}); // it has another name by now
}

function pathBeside(real: string): string {
  return `${parentFolder(real)}/.${crypto.randomUUID()}.tmp`;
}

async function infoOf(path: string): Promise<Deno.FileInfo | null> {
  return await Deno.lstat(path).catch((error) => {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  });
}

/** Resolves to a path with its links followed; null if it does not exist. @throws {FileError} */
async function followed(path: string, asked: string): Promise<string | null> {
  try {
    return normalizePath(await Deno.realPath(path));
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw unreachable(error, asked);
  }
  // a broken link is not a missing file: writing to it would create its target
  const info = await Deno.lstat(path).catch(() => null);
  if (info?.isSymlink) throw new FileError(`${asked} is a link to a file that does not exist`);
  return null;
}

/** Returns the error of the file system in words for the model, without paths outside of the question. */
function unreachable(error: unknown, asked: string): unknown {
  const { errors } = Deno;
  if (error instanceof FileError) return error;
  if (error instanceof errors.NotCapable) {
    return new FileError(`${asked} cannot be reached: the plan does not permit it`, { cause: error });
  }
  if (error instanceof errors.PermissionDenied) {
    return new FileError(`${asked} cannot be reached: the operating system does not permit it`);
  }
  if (error instanceof errors.NotFound) return new FileError(`${asked} does not exist`);
  if (error instanceof errors.NotADirectory) return new FileError(`${asked} is below a file`);
  if (error instanceof errors.FilesystemLoop) return new FileError(`${asked} is a link that leads to itself`);
  if (error instanceof errors.IsADirectory) return new FileError(`${asked} is a folder`);
  return error;
}

async function readAtMost(file: Deno.FsFile, maxBytes: number, path: string): Promise<Uint8Array> {
  const { bytes, isWhole } = await readUpTo(file, maxBytes);
  // a file that grows, or states no size, such as one of /proc
  if (!isWhole) throw new FileError(`${path} has more than the ${maxBytes} bytes that can be read`);
  return bytes;
}

/** Reads an open file up to its end, or until there are more than `maxBytes`. */
export async function readUpTo(
  file: Deno.FsFile,
  maxBytes: number,
): Promise<{ bytes: Uint8Array; isWhole: boolean }> {
  const parts: Uint8Array[] = [];
  let [size, isWhole] = [0, false];
  while (size <= maxBytes) {
    const part = new Uint8Array(64 * 1024);
    const count = await file.read(part);
    isWhole = count === null;
    if (count === null) break;
    size += count;
    parts.push(part.subarray(0, count));
  }
  const bytes = new Uint8Array(size);
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return { bytes, isWhole };
}

/** Returns whether two states are those of one file. */
export function isSameFile(one: Deno.FileInfo, other: Deno.FileInfo): boolean {
  return one.dev === other.dev && one.ino === other.ino;
}

/** Returns what a path is, in words for the model. */
export function kindOf(info: Deno.FileInfo): string {
  if (info.isDirectory) return "a folder";
  if (info.isFile) return "a file";
  if (info.isCharDevice || info.isBlockDevice) return "a device";
  if (info.isFifo) return "a pipe";
  return info.isSocket ? "a socket" : "a special file";
}
