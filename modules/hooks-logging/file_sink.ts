/** Appends text to a file that several sessions and processes share, with one rotation. Knows nothing of lines or events. */
import type { Sink } from "./queue.ts";

/** Times the file may be found rotated away by someone else before a write gives up. */
const MAX_ATTEMPTS = 10;

/**
 * Returns a sink that appends to `path`, readable by its owner only. A file that would grow beyond `max_bytes` becomes
 * `<path>.1` (replacing the one before) and a new one begins. Writers hold a lock on the file while they look and write, so
 * that two of them never rotate it twice.
 */
export function fileSink(path: string, max_bytes: number): Sink {
  return async (text) => {
    const bytes = new TextEncoder().encode(text);
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      if (await append(path, bytes, max_bytes)) return;
    }
    throw new Error(`Cannot write log file: it was rotated away ${MAX_ATTEMPTS} times while being opened`);
  };
}

/** Resolves to false when the file has to be opened again: this or another writer rotated it. */
async function append(path: string, bytes: Uint8Array, max_bytes: number): Promise<boolean> {
  await refuseLink(path);
  using file = await Deno.open(path, { append: true, create: true, mode: 0o600 });
  await file.lock(true); // released when the file is closed
  const opened = await file.stat();
  if (!await isStill(path, opened)) return false;
  if (opened.size > 0 && opened.size + bytes.length > max_bytes) {
    await Deno.rename(path, `${path}.1`);
    return false;
  }
  for (let written = 0; written < bytes.length;) written += await file.write(bytes.subarray(written));
  return true;
}

/** A link would take the log, and the file that opening creates, to where the plan may not write. */
async function refuseLink(path: string): Promise<void> {
  if ((await lookAt(path))?.isSymlink) throw new Error("Cannot write log file: it is a symbolic link");
}

async function isStill(path: string, opened: Deno.FileInfo): Promise<boolean> {
  const there = await lookAt(path);
  return there !== null && there.dev === opened.dev && there.ino === opened.ino;
}

async function lookAt(path: string): Promise<Deno.FileInfo | null> {
  try {
    return await Deno.lstat(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  }
}
