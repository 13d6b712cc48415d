/** A small disk that can be filled: a file system in memory. */

/** A mounted disk. */
export interface SmallDisk extends AsyncDisposable {
  readonly path: string;
  /** Uses all of its space; resolves to a function that frees it. */
  fill(): Promise<() => Promise<void>>;
}

const MOUNT_BYTES = 128 * 1024 * 1024;

/** Mounts a disk; resolves to null where this process may not, such as one that is not root. */
export async function mountSmallDisk(): Promise<SmallDisk | null> {
  const path = await Deno.makeTempDir();
  const run = async (...[program, ...args]: [string, ...string[]]) =>
    (await new Deno.Command(program, { args, stdout: "null", stderr: "null" }).output()).success;
  if (!await run("mount", "-t", "tmpfs", "-o", `size=${MOUNT_BYTES}`, "tmpfs", path)) {
    await Deno.remove(path);
    return null;
  }
  return {
    path,
    async fill() {
      const filler = await Deno.open(`${path}/filler`, { create: true, append: true });
      try {
        for (const size of [65_536, 1]) {
          const block = new Uint8Array(size);
          try {
            while (true) await filler.write(block);
          } catch {
            // full
          }
        }
      } finally {
        filler.close();
      }
      return () => Deno.remove(`${path}/filler`);
    },
    async [Symbol.asyncDispose]() {
      await run("umount", "--lazy", path); // a thread that was just ended may still have a file open
      await Deno.remove(path);
    },
  };
}
