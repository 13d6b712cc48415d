/**
 * Numbers the emissions that a guest has received. The session identifies an emission by object identity, so a loop that processes
 * a hook result must name the original emission.
 */
import { isObject, toPlainObject } from "../../sdk/json.ts";
import type { Emission } from "../../sdk/types.ts";

/** Number of emissions that are kept: more than a loop uses at once. */
const MAX_KEPT = 256;

/** An emission as it is sent to a guest. */
export interface NumberedEmission {
  readonly number: number;
  readonly emission: Emission;
}

/** Emissions that one guest has received. */
export class EmissionTable {
  readonly #kept = new Map<number, Emission>();
  #next = 1;

  /** Adds an emission and returns it with its number. */
  add(emission: Emission): NumberedEmission {
    const number = this.#next++;
    this.#kept.set(number, emission);
    if (this.#kept.size > MAX_KEPT) this.#kept.delete(this.#kept.keys().next().value!);
    return { number, emission };
  }

  /** Returns the emission with this number after assigning the guest's fields, or a new one if the number is unknown. */
  resolve(number: unknown, fields: unknown): Emission {
    const changed = isObject(fields) ? toPlainObject(fields) : {};
    const kept = typeof number === "number" ? this.#kept.get(number) : undefined;
    return kept ? Object.assign(kept, changed) : changed as unknown as Emission; // parsed leniently when it is processed
  }
}
