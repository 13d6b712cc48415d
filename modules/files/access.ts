/**
 * Files that a module may reach: the paths of its grant. Links are followed before a path is compared, so
 * that none leads out of a granted folder, and an opened file is compared with the checked one, so that a
 * path that is exchanged in between is noticed. The same rules hold in a sandbox, where Deno's own check
 * follows the path once more but does not stop links that already exist.
 */
import {
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
    const wanted = this.#absolute(path);
    const missing: string[] = [];
    for (let at = wanted;;) {
      const real = await this.#followed("write", at, path);
      if (real !== null) {
        const target = missing.length === 0 ? real : normalizePath([real, ...missing].join("/"));
        this.#require("write", target, path);
        const info = missing.length === 0 ? await Deno.lstat(target) : null;
        if (info && !info.isFile) throw new FileError(`${path} is ${kindOf(info)}, not a file`);
        return { path: target, info };
      }
      const parent = parentFolder(at);
      if (parent === at) throw new FileError(`${path} cannot be reached`);
      missing.unshift(at.slice(parent === "/" ? 1 : parent.length + 1));
      at = parent;
    }
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
        if (again.path === checked.path && isSame(again.info, opened)) continue;
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
   * Replaces a file, or creates it with its folders: the bytes are written beside it and renamed, so that a
   * reader sees the old or the new file, and a hard link elsewhere keeps its content. The mode is kept.
   *
   * @param mode Mode of a file that does not exist.
   * @returns the real path.
   * @throws {FileError} as {@link writable}.
   */
  async replace(path: string, bytes: Uint8Array, mode?: number): Promise<string> {
    const target = await this.writable(path);
    const folder = parentFolder(target.path);
    await Deno.mkdir(folder, { recursive: true });
    // the folders may have been created, or exchanged for a link, meanwhile
    this.#require("write", await followed(folder, path) ?? folder, path);
    const temporary = `${folder}/.${crypto.randomUUID()}.tmp`;
    try {
      await Deno.writeFile(temporary, bytes, {
        createNew: true,
        ...(target.info?.mode == null
          ? mode === undefined ? {} : { mode }
          : { mode: target.info.mode & 0o7777 }),
      });
      await Deno.rename(temporary, target.path);
    } catch (error) {
      await Deno.remove(temporary).catch(() => {}); // it was not created
      throw unreachable(error, path);
    }
    return target.path;
  }

  /**
   * Deletes a file.
   *
   * @returns the real path.
   * @throws {FileError} as {@link writable}, and when it is missing.
   */
  async remove(path: string): Promise<string> {
    const target = await this.writable(path);
    if (target.info === null) throw new FileError(`${path} does not exist`);
    await Deno.remove(target.path).catch((error) => {
      throw unreachable(error, path);
    });
    return target.path;
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
  return error;
}

async function readAtMost(file: Deno.FsFile, maxBytes: number, path: string): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  let size = 0;
  for (;;) {
    const part = new Uint8Array(64 * 1024);
    const count = await file.read(part);
    if (count === null) break;
    size += count;
    // a file that grows, or states no size, such as one of /proc
    if (size > maxBytes) throw new FileError(`${path} has more than the ${maxBytes} bytes that can be read`);
    parts.push(part.subarray(0, count));
  }
  const bytes = new Uint8Array(size);
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

function isSame(one: Deno.FileInfo, other: Deno.FileInfo): boolean {
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
