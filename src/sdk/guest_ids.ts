/**
 * Ids that modules make elsewhere: a guest numbers its own from a seed that the host gives it. The seed can be read from the ids, so
 * that a replay gives a loop the one it had.
 */
import type { Coordinator } from "./contracts.ts";
import type { ModuleType } from "./types.ts";

/** Prefix of the id that a loop's seed is taken from; of other modules nothing in the log needs theirs. */
export const LOOP_SEED = "loop";

const SEED_CHARS = 8;

/** Returns the seed of a new guest's ids: two guests never make the same one. */
export function newIdSeed(coordinator: Pick<Coordinator, "newId">, type: ModuleType): string {
  return coordinator.newId(type === "orchestrator" ? LOOP_SEED : "m").slice(-SEED_CHARS);
}

/** Returns the id that a guest makes with its seed. */
export function guestId(prefix: string, seed: string, number: number): string {
  return `${prefix}_${seed}_${number.toString(36)}`;
}

/** Returns the seed of an id, or null when no guest made it. */
export function seedOf(id: string): string | null {
  return /_(.{8})_[0-9a-z]+$/.exec(id)?.[1] ?? null;
}
