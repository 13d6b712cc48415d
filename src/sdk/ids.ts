/**
 * Ids. Those of the host are random: a prefix and 131 random bits, so that an id cannot be guessed. Sandboxed
 * modules create theirs from a seed: the host gives each guest one, and the guest numbers its ids.
 */
import type { Coordinator } from "./contracts.ts";

const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** Characters after the prefix: 22 of 62 make 131 bits. */
const LENGTH = 22;

/** Unused random bytes; perf: generating them for each id would cost more than the id. */
const random = new Uint8Array(4096);
let used = random.length;

/** Character codes of the current id; perf: reused. */
const codes = new Array<number>(LENGTH).fill(0);

/** Creates an id such as `run_k3…`: letters and digits only, so that a double click selects the whole id. */
export function newId(prefix: string): string {
  for (let length = 0; length < LENGTH;) {
    if (used === random.length) {
      crypto.getRandomValues(random);
      used = 0;
    }
    const value = random[used]! & 63;
    random[used++] = 0;
    if (value >= ALPHABET.length) continue; // rejected, so that all characters are equally likely
    codes[length++] = ALPHABET.charCodeAt(value);
  }
  return `${prefix}_${String.fromCharCode(...codes)}`; // perf: one string, not one per character
}

/** Returns an id for a message: at most 80 printable characters. */
export function printableId(id: string): string {
  return id.slice(0, 80).replace(/[^\x20-\x7e]/g, "?");
}

const SEED_CHARS = 8;

/** Returns a unique seed for the ids of a new guest. */
export function newIdSeed(coordinator: Pick<Coordinator, "newId">): string {
  return coordinator.newId("m").slice(-SEED_CHARS);
}

/** Returns the id with this number of a guest. */
export function guestId(prefix: string, seed: string, number: number): string {
  return `${prefix}_${seed}_${number.toString(36)}`;
}
