/** Memory of this process after garbage collection. Needs `--v8-flags=--expose-gc`. */

/** What a process takes, in MB. */
export interface Memory {
  /** JavaScript objects that are alive. */
  readonly heap_mb: number;
  readonly resident_mb: number;
}

/** Collects garbage and returns what is left. @throws {Error} when collection cannot be asked for. */
export function memoryNow(): Memory {
  const { gc } = globalThis as { gc?: () => void }; // there with the flag
  if (!gc) throw new Error("Cannot measure memory: run with --v8-flags=--expose-gc");
  gc();
  const { heapUsed, rss } = Deno.memoryUsage();
  return { heap_mb: heapUsed / 1e6, resident_mb: rss / 1e6 };
}
