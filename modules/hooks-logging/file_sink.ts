/** Appends text to a file that several sessions and processes may share, with one rotation. */
import type { Sink } from "./queue.ts";

/** Maximum attempts of a write when other writers rotate the file at the same time. */
const MAX_ATTEMPTS = 10;

/**
 * Returns a sink that appends to `path`, a file that only its owner can read. Before the file would exceed `max_bytes`, it is
 * renamed to `<path>.1`, which replaces the previous one. A file lock prevents that two writers rotate it twice.
 */
export function fileSink(path: string, max_bytes: number): Sink {
  return async (text) => {
    const bytes = new TextEncoder().encode(text);
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      if (await append(path, bytes, max_bytes)) return;
    }
    throw new Error(
      `Cannot write log file: another writer rotated it ${MAX_ATTEMPTS} times during the write`,
    );
  };
}

/** Appends bytes. Resolves to false when the file was rotated and must be opened again. */
async function append(path: string, bytes: Uint8Array, max_bytes: number): Promise<boolean> {
  await refuseLink(path);
  using file = await Deno.open(path, { append: true, create: true, mode: 0o600 });
  await file.lock(true); // released when the file is closed
  const opened = await file.stat();
  if (!await isSameFile(path, opened)) return false;
  if (opened.size > 0 && opened.size + bytes.length > max_bytes) {
    await Deno.rename(path, `${path}.1`);
    return false;
  }
  for (let written = 0; written < bytes.length;) written += await file.write(bytes.subarray(written));
  return true;
}

/** Throws for a symbolic link: it could lead to a place where the plan may not write. */
async function refuseLink(path: string): Promise<void> {
  if ((await statLink(path))?.isSymlink) throw new Error("Cannot write log file: it is a symbolic link");
}

async function isSameFile(path: string, opened: Deno.FileInfo): Promise<boolean> {
  const current = await statLink(path);
  return current !== null && current.dev === opened.dev && current.ino === opened.ino;
}

async function statLink(path: string): Promise<Deno.FileInfo | null> {
  try {
    return await Deno.lstat(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  }
}
