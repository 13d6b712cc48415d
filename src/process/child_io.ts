/**
 * The child's side of `child_process.ts`: frames on stdin and stdout, a console that does not disturb them,
 * no permissions.
 */
import { PERMISSION_KINDS, type PermissionKind } from "../sdk/plan.ts";
import { encodeFrame, FrameReader } from "./frames.ts";

/** Most bytes that are written synchronously: they fit into the buffer of a pipe. */
const SMALL = 16 * 1024;

/** Returns a reader of the parent's frames of at most `max_bytes`. */
export function parentFrames(max_bytes: number): FrameReader {
  return new FrameReader(async (buffer) => {
    const count = await Deno.stdin.read(buffer);
    return count === null ? null : buffer.subarray(0, count);
  }, () => max_bytes);
}

/** Writes frames to the parent in order. The process exits when the parent no longer reads. */
export class FrameWriter {
  #last: Promise<void> | null = null;

  /**
   * Writes a frame. A small one is written synchronously, which is twice as fast, if no other is being
   * written.
   */
  write(text: string, body?: Uint8Array): Promise<void> {
    const bytes = encodeFrame(text, body ? [body] : []);
    if (this.#last === null && bytes.length <= SMALL) {
      writeAllSync(Deno.stdout, bytes);
      return DONE;
    }
    const written = (this.#last ?? DONE).then(() => writeAll(bytes));
    this.#last = written;
    void written.then(() => {
      if (this.#last === written) this.#last = null;
    });
    return written;
  }
}

const DONE = Promise.resolve();

async function writeAll(bytes: Uint8Array): Promise<void> {
  try {
    for (let at = 0; at < bytes.length;) at += await Deno.stdout.write(bytes.subarray(at));
  } catch {
    Deno.exit(0); // the parent no longer reads
  }
}

/** Writes bytes to stdout or stderr. */
export function writeAllSync(stream: typeof Deno.stdout | typeof Deno.stderr, bytes: Uint8Array): void {
  for (let at = 0; at < bytes.length;) at += stream.writeSync(bytes.subarray(at));
}

/** Replaces the methods of the console, because stdout carries frames. */
export function replaceConsole(method: (...values: unknown[]) => void): void {
  for (const key of Object.keys(console)) {
    if (typeof Reflect.get(console, key) === "function") Reflect.set(console, key, method);
  }
}

/** Revokes all permissions of this process except these. */
export function revokePermissions(keep: readonly PermissionKind[] = []): void {
  for (const name of PERMISSION_KINDS) if (!keep.includes(name)) Deno.permissions.revokeSync({ name });
}
