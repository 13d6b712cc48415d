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

/** Collects changes. */
export class DiffReport {
  readonly diff: PlanDiff = { widens: [], narrows: [], other: [] };

  /** Notes a change. */
  add(kind: keyof PlanDiff, path: string, from: unknown, to: unknown, message: string): void {
    this.diff[kind].push({ path, from: toPlain(from ?? null), to: toPlain(to ?? null), message });
  }

  /** Notes a change when the two differ. */
  change(kind: keyof PlanDiff, path: string, from: unknown, to: unknown, message: string): void {
    if (!jsonEqual(from ?? null, to ?? null)) this.add(kind, path, from, to, message);
  }
}
