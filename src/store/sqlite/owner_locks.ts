/**
 * Locks that show which owners of leases have died. Each owner has a file of its own beside the SQLite file,
 * an empty database that it keeps locked: processes of one machine see that lock wherever they can share the
 * store itself. The system releases it when the process ends, however it ends; a process that stands still
 * keeps it. So an owner is gone when its file is there and is not locked. Anything else proves nothing: its
 * leases expire as those of any other owner.
 */
import type { DatabaseSync } from "node:sqlite";

/** Milliseconds after which the time of a file in use is set again. */
const TOUCH_MS = 3_600_000;
/** Age in milliseconds of a file that is deleted when its owner is gone: its leases have expired by then. */
const KEPT_MS = 24 * TOUCH_MS;

/** Before each use: a lock is not waited for, and there is no second file beside the database. */
const AT_ONCE = "PRAGMA busy_timeout = 0; PRAGMA journal_mode = MEMORY;";

/** The locks of the owners in one folder. */
export class OwnerLocks {
  readonly #folder: string;
  /** Owner of this process → its locked file; null: the file system has no locks. */
  readonly #held = new Map<string, Promise<DatabaseSync | null>>();
  #touched_ms = Date.now();

  /** @param folder Folder of the files; created with the first one. */
  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Locks the file of an owner of this process. Must be called before the owner acquires a lease. */
  async hold(owner: string): Promise<void> {
    let lock = this.#held.get(owner);
    if (!lock) this.#held.set(owner, lock = this.#lock(owner));
    if (await lock === null || Date.now() - this.#touched_ms < TOUCH_MS) return;
    this.#touched_ms = Date.now();
    await Deno.utime(this.#pathOf(owner), new Date(), new Date()).catch(() => {}); // deleted: see isGone
  }

  /** Resolves to whether the process of an owner has ended; to false also when that is not known. */
  async isGone(owner: string): Promise<boolean> {
    if (this.#held.has(owner)) return false;
    return await isUnlocked(this.#pathOf(owner));
  }

  /** Releases the locks of this process. */
  async close(): Promise<void> {
    for (const [owner, lock] of this.#held) {
      const file = await lock;
      if (file === null) continue;
      await Deno.remove(this.#pathOf(owner)).catch(() => {}); // Windows does not delete a locked file
      file.close();
    }
    this.#held.clear();
  }

  async #lock(owner: string): Promise<DatabaseSync | null> {
    const path = this.#pathOf(owner);
    let file: DatabaseSync | null = null;
    try {
      await Deno.mkdir(this.#folder, { recursive: true, mode: 0o700 });
      await Deno.writeFile(path, new Uint8Array(), { createNew: true, mode: 0o600 });
      file = await openDatabase(path, false);
      file.exec(`${AT_ONCE} BEGIN EXCLUSIVE`);
    } catch {
      file?.close();
      await Deno.remove(path).catch(() => {}); // an unlocked file says that its owner has died
      return null; // others wait until its leases expire
    }
    await this.#sweep().catch(() => {}); // another process deletes the same files
    return file;
  }

  /** Deletes the files of owners that are gone for long. */
  async #sweep(): Promise<void> {
    for await (const { name } of Deno.readDir(this.#folder)) {
      const path = `${this.#folder}/${name}`;
      const { mtime } = await Deno.stat(path);
      if (Date.now() - (mtime?.getTime() ?? 0) > KEPT_MS && await isUnlocked(path)) await Deno.remove(path);
    }
  }

  #pathOf(owner: string): string {
    return `${this.#folder}/${encodeURIComponent(owner)}`;
  }
}

/** Resolves to whether a file is there and not locked. */
async function isUnlocked(path: string): Promise<boolean> {
  try {
    await Deno.stat(path); // SQLite would create it
    const file = await openDatabase(path, true);
    try {
      file.exec(`${AT_ONCE} SELECT 1 FROM sqlite_schema`);
      return true;
    } finally {
      file.close();
    }
  } catch {
    return false; // there is no such file, or it is locked, or it cannot be
  }
}

/** Opens a database; only the store's worker needs the module at start. */
async function openDatabase(path: string, readOnly: boolean): Promise<DatabaseSync> {
  const { DatabaseSync } = await import("node:sqlite");
  return new DatabaseSync(path, { readOnly });
}
