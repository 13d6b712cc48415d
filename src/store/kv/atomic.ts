/** Commits atomic operations of Deno KV, and repeats them while others are in the way. */

/** Attempts while others change the same keys, or another process locks the file. */
const ATTEMPTS = 100;
/** Longest pause between two attempts in milliseconds. */
const MAX_PAUSE_MS = 50;

/** Commits; resolves to false if a check failed, or another process writes to the same file at this moment. */
export async function tryCommit(atomic: Deno.AtomicOperation): Promise<boolean> {
  try {
    return (await atomic.commit()).ok;
  } catch (error) {
    if (error instanceof Error && /database is locked/i.test(error.message)) return false; // nothing was written
    throw error;
  }
}

/**
 * Calls `attempt` until it resolves to a result; `false` asks for another attempt.
 *
 * @throws {Error} after too many attempts.
 */
export async function repeat<Result>(attempt: () => Promise<Result | false>): Promise<Result> {
  for (let count = 1; count <= ATTEMPTS; count++) {
    const result = await attempt();
    if (result !== false) return result;
    // at random, so that two commits do not meet again
    const ms = Math.random() * Math.min(MAX_PAUSE_MS, 2 ** count);
    await new Promise((resolve) => setTimeout(resolve, ms));
  }
  throw new Error("Cannot write to the store: others change the same keys all the time");
}

/** Commits an atomic operation without checks, which `build` makes for each attempt. */
export async function write(kv: Deno.Kv, build: (atomic: Deno.AtomicOperation) => void): Promise<void> {
  await repeat(async () => {
    const atomic = kv.atomic();
    build(atomic);
    return await tryCommit(atomic);
  });
}
