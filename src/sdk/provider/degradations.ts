/** What a request cannot express. */
import type { Degradation } from "../messages.ts";

/** Collects what a request leaves out or replaces, and returns it as one degradation. */
export class Degradations {
  readonly #list: Degradation[] = [];

  /**
   * Adds one.
   *
   * @param requested What was requested.
   * @param reason Why it is not in the request.
   * @param actual What is in its place.
   */
  add(requested: string, reason: string, actual = "left out"): void {
    this.#list.push({ requested, actual, reason });
  }

  /** Returns all of them as one, with `; ` between their texts; undefined without any. */
  merged(): Degradation | undefined {
    if (this.#list.length === 0) return undefined;
    const join = (field: keyof Degradation) => [...new Set(this.#list.map((one) => one[field]))].join("; ");
    return { requested: join("requested"), actual: join("actual"), reason: join("reason") };
  }
}
