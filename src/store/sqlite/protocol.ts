/** Messages between a SQLite store and its worker. JSON is sent as text: it is written and read once. */
import type { CursorPosition } from "../cursor.ts";
import type { EncodedChange } from "../rows.ts";
import type { StoredLease } from "../observed_leases.ts";
import type { Fence } from "../store.ts";

/** A page of a list. */
export interface ListQuery {
  readonly kind: string;
  readonly namespace: string;
  readonly where: Readonly<Record<string, string>>;
  readonly limit: number;
  readonly after: CursorPosition | null;
}

/** One call of the store. */
export type Operation =
  | { readonly kind: "commit"; readonly changes: readonly EncodedChange[]; readonly fence: Fence | undefined }
  | { readonly kind: "entries"; readonly log: string; readonly after: number; readonly limit: number }
  | { readonly kind: "get"; readonly record_kind: string; readonly key: string }
  | { readonly kind: "list"; readonly query: ListQuery }
  /** `expired`: a state in which the lease counts as expired. */
  | {
    readonly kind: "acquire";
    readonly lease: string;
    readonly owner: string;
    readonly ttl_ms: number;
    readonly expired: StoredLease | null;
  }
  | { readonly kind: "renew"; readonly lease: string; readonly owner: string; readonly ttl_ms: number }
  | { readonly kind: "release"; readonly lease: string; readonly owner: string }
  | { readonly kind: "ready" };

/** Result of an operation: its value, or the comparison that failed. */
export type Outcome = { readonly value: unknown } | { readonly conflict: string };

/** Message to the worker. */
export type ToWorker =
  | { readonly open: string }
  | { readonly run: readonly Operation[]; readonly now_ms: number }
  /** Whether the worker looks for changes of other processes. */
  | { readonly watch: boolean }
  | { readonly close: true };

/** Message from the worker. Batches are answered in order. */
export type FromWorker =
  | { readonly opened: true }
  | { readonly outcomes: readonly Outcome[] }
  /** The whole batch failed, or the file cannot be opened. `full`: there is no space left. */
  | { readonly failed: string; readonly full: boolean }
  /** Another process has changed the file. */
  | { readonly changed: true }
  | { readonly closed: true };
