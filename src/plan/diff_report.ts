/** What a comparison of plans found, in three lists. */
import { jsonEqual, type JsonValue, toPlain } from "../sdk/json.ts";

/** One change. */
export interface PlanChange {
  /** Place in the second plan; for what was removed, in the first. */
  path: string;
  /** What was there; null: nothing. */
  from: JsonValue;
  /** What is there now; null: nothing. */
  to: JsonValue;
  message: string;
}

/** How a plan differs from another one. */
export interface PlanDiff {
  /** What it may do that the other may not, or that nothing shows it may not. */
  widens: PlanChange[];
  /** What it may no longer do. */
  narrows: PlanChange[];
  /** What changes neither. */
  other: PlanChange[];
}

/** Returns a value as it may be shown; `key` is the field it stands in, empty when it has none. */
export type Redact = (key: string, value: unknown) => unknown;

/** Collects changes. */
export class DiffReport {
  readonly diff: PlanDiff = { widens: [], narrows: [], other: [] };
  readonly #redact: Redact;

  constructor(redact: Redact) {
    this.#redact = redact;
  }

  /** Notes a change. */
  add(
    kind: keyof PlanDiff,
    path: string,
    from: unknown,
    to: unknown,
    message: string,
    key: string = "",
  ): void {
    const shown = (value: unknown) => toPlain(this.#redact(key, value ?? null));
    this.diff[kind].push({ path, from: shown(from), to: shown(to), message });
  }

  /** Notes a change when the two differ. */
  change(kind: keyof PlanDiff, path: string, from: unknown, to: unknown, message: string): void {
    if (!jsonEqual(from ?? null, to ?? null)) this.add(kind, path, from, to, message);
  }
}
