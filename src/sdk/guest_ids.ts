/**
 * Ids that sandboxed modules create. The host gives each guest a seed, and the guest numbers its ids from
 * that seed. The seed can be read from an id, so that a replay gives the loop the same seed.
 */
import type { Coordinator } from "./contracts.ts";
import type { ModuleType } from "./types.ts";

/** Prefix of the id that a loop's seed is taken from. Replay needs only the seed of the loop. */
export const LOOP_SEED = "loop";

const SEED_CHARS = 8;

/** Returns a unique seed for the ids of a new guest. */
export function newIdSeed(coordinator: Pick<Coordinator, "newId">, type: ModuleType): string {
  return coordinator.newId(type === "orchestrator" ? LOOP_SEED : "m").slice(-SEED_CHARS);
}

/** Returns the id with this number of a guest. */
export function guestId(prefix: string, seed: string, number: number): string {
  return `${prefix}_${seed}_${number.toString(36)}`;
}

/** Returns the seed of an id, or null for an id of the host. */
export function seedOf(id: string): string | null {
  return /_(.{8})_[0-9a-z]+$/.exec(id)?.[1] ?? null;
}
