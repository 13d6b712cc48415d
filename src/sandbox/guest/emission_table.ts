/**
 * Emissions that a guest was told of, by number: the session knows one by itself, not by what it looks like, and a loop that has one
 * processed must have that very one processed (architecture.md, Guards). Pure.
 */
import { isObject, toPlainObject } from "../../sdk/json.ts";
import type { Emission } from "../../sdk/types.ts";

/** Emissions that are kept: more than a loop has under way. */
const MAX_KEPT = 256;

/** An emission on its way to a guest. */
export interface NumberedEmission {
  readonly number: number;
  readonly emission: Emission;
}

/** What one guest was told. */
export class EmissionTable {
  readonly #kept = new Map<number, Emission>();
  #next = 1;

  /** Gives an emission its number. */
  add(emission: Emission): NumberedEmission {
    const number = this.#next++;
    this.#kept.set(number, emission);
    if (this.#kept.size > MAX_KEPT) this.#kept.delete(this.#kept.keys().next().value!);
    return { number, emission };
  }

  /** Returns the emission that a guest means, with what it made of its fields; one of its own making when it has no number. */
  resolve(number: unknown, fields: unknown): Emission {
    const given = isObject(fields) ? toPlainObject(fields) : {};
    const kept = typeof number === "number" ? this.#kept.get(number) : undefined;
    return kept ? Object.assign(kept, given) : given as unknown as Emission; // read leniently by whoever processes it
  }
}
