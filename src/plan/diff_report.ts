/** What a comparison of plans found, in three lists. */
import { jsonEqual, type JsonValue, toPlain } from "../sdk/json.ts";

/** One change. */
export interface PlanChange {
  /** Path in the second plan; for something removed, in the first. */
  path: string;
  /** Value in the first plan; null if absent. */
  from: JsonValue;
  /** Value in the second plan; null if absent. */
  to: JsonValue;
  message: string;
}

/** Differences between two plans. */
export interface PlanDiff {
  /** Changes that allow more, or that are not known to be harmless. */
  widens: PlanChange[];
  /** Changes that allow less. */
  narrows: PlanChange[];
  /** Changes that do neither. */
  other: PlanChange[];
}

/** Redacts a value for display. `key` is the name of the value's field, or empty. */
export type Redact = (key: string, value: unknown) => unknown;

/** Collects changes. */
export class DiffReport {
  readonly diff: PlanDiff = { widens: [], narrows: [], other: [] };
  readonly #redact: Redact;

  constructor(redact: Redact) {
    this.#redact = redact;
  }

  /** Adds a change. */
  add(
    kind: keyof PlanDiff,
    path: string,
    from: unknown,
    to: unknown,
    message: string,
    key: string = "",
  ): void {
    const display = (value: unknown) => toPlain(this.#redact(key, value ?? null));
    this.diff[kind].push({ path, from: display(from), to: display(to), message });
  }

  /** Adds a change if the two values differ. */
  change(kind: keyof PlanDiff, path: string, from: unknown, to: unknown, message: string): void {
    if (!jsonEqual(from ?? null, to ?? null)) this.add(kind, path, from, to, message);
  }
}
