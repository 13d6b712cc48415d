/**
 * Locks that show which owners of leases have died. Each owner holds a lock of the operating system on a file
 * of its own beside the SQLite file, which processes of one machine share. The system releases the lock when
 * the process ends, however it ends; a process that stands still keeps it. So an owner is gone when its file
 * is there and is not locked. Anything else proves nothing: its leases expire as those of any other owner.
 */

/** Milliseconds after which the time of a file in use is set again. */
const TOUCH_MS = 3_600_000;
/** Age in milliseconds of a file that is deleted when its owner is gone: its leases have expired by then. */
const KEPT_MS = 24 * TOUCH_MS;

/** The locks of the owners in one folder. */
export class OwnerLocks {
  readonly #folder: string;
  /** Owner of this process → its locked file; null: the file system has no locks. */
  readonly #held = new Map<string, Promise<Deno.FsFile | null>>();
  #touched_ms = Date.now();

  /** @param folder Folder of the files; created with the first one. */
  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Locks the file of an owner of this process. Must be called before the owner acquires a lease. */
  async hold(owner: string): Promise<void> {
    let lock = this.#held.get(owner);
    if (!lock) this.#held.set(owner, lock = this.#lock(owner));
    const file = await lock;
    if (file === null || Date.now() - this.#touched_ms < TOUCH_MS) return;
    this.#touched_ms = Date.now();
    await file.utime(new Date(), new Date());
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

  async #lock(owner: string): Promise<Deno.FsFile | null> {
    try {
      await Deno.mkdir(this.#folder, { recursive: true, mode: 0o700 });
      const file = await Deno.open(this.#pathOf(owner), { createNew: true, write: true, mode: 0o600 });
      await file.lock(true);
      await this.#sweep().catch(() => {}); // another process deletes the same files
      return file;
    } catch {
      return null; // others wait until its leases expire
    }
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
    using file = await Deno.open(path, { read: true, write: true });
    return await file.tryLock(false); // shared: another process may ask at the same time
  } catch {
    return false; // there is no such file, or it cannot be locked
  }
}
