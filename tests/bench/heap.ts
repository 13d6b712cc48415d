/** Memory of this process after garbage collection. Needs `--v8-flags=--expose-gc`. */

/** Returns the bytes of JavaScript objects that are alive, in MB. @throws {Error} when collection cannot be asked for. */
export function liveMb(): number {
  collect();
  return Deno.memoryUsage().heapUsed / 1e6;
}

/** Returns the resident memory of the process, in MB. */
export function residentNowMb(): number {
  collect();
  return Deno.memoryUsage().rss / 1e6;
}

function collect(): void {
  const { gc } = globalThis as { gc?: () => void }; // there with the flag
  if (!gc) throw new Error("Cannot measure memory: run with --v8-flags=--expose-gc");
  gc();
  gc(); // what the first one's finalizers let go
}
