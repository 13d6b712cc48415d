/** Memory of this process after garbage collection. Needs `--v8-flags=--expose-gc`. */

/** Memory of a process in MB. */
export interface Memory {
  /** Live JavaScript objects. */
  readonly heap_mb: number;
  readonly resident_mb: number;
}

/** Collects garbage and returns the memory in use. @throws {Error} without `--expose-gc`. */
export function memoryNow(): Memory {
  const { gc } = globalThis as { gc?: () => void }; // present with the flag
  if (!gc) throw new Error("Cannot measure memory: run with --v8-flags=--expose-gc");
  gc();
  const { heapUsed, rss } = Deno.memoryUsage();
  return { heap_mb: heapUsed / 1e6, resident_mb: rss / 1e6 };
}
