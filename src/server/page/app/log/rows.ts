/**
 * The rows of a log: its entries without those that a filter leaves out, and with consecutive deltas in one
 * row. Computed as the log grows, in slices, so that a search through a long log does not stop the page.
 */
import { effect, type Signal, signal } from "@preact/signals";
import type { Entry } from "preamp/client";
import type { RunView } from "../state/run_view.ts";

/** One row. */
export interface LogRow {
  /** The entry, or the first one of deltas. */
  readonly entry: Entry;
  /** Number of entries in the row. */
  count: number;
  /** The text of deltas, its first characters. */
  text: string;
  /** How many sessions are above the one that emitted it: 0 for the run's own. */
  readonly depth: number;
}

/** Kinds of entries that a filter leaves in. */
export const KINDS = ["all", "model", "tools", "questions", "context", "run"] as const;
export type Kind = typeof KINDS[number];

const KIND_OF: Readonly<Record<string, Kind>> = {
  provider: "model",
  llm: "model",
  content_block: "model",
  thinking: "model",
  tool: "tools",
  task: "tools",
  delegate: "tools",
  approval: "questions",
  context: "context",
};

/** Returns the kind of an event, by the first part of its name. */
function kindOf(event: string): Kind {
  return KIND_OF[event.slice(0, event.indexOf(":"))] ?? "run";
}

/** Milliseconds after which the rest waits for the next slice. */
const SLICE_MS = 8;
const MAX_TEXT = 200;
/** Events of which consecutive ones are one row, and the field of their text. */
const PARTS: Readonly<Record<string, string>> = { "content_block:delta": "delta", "tool:output": "text" };

/** The rows of one run under one filter. */
export class LogRows {
  /** In order; grows in place, and `version` says when. */
  readonly rows: LogRow[] = [];
  readonly version: Signal<number> = signal(0);
  /** Whether a search has not seen all entries. */
  readonly searching: Signal<boolean> = signal(false);
  readonly #view: RunView;
  readonly #kind: Kind;
  readonly #query: string;
  readonly #depths = new Map<string, number>();
  #seen = 0;

  constructor(view: RunView, kind: Kind = "all", query = "") {
    this.#view = view;
    this.#kind = kind;
    this.#query = query.trim().toLowerCase();
  }

  /** Takes entries as they come, until the returned function is called. */
  follow(): () => void {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let is_stopped = false;
    const slice = () => {
      if (is_stopped) return;
      this.#take(performance.now() + SLICE_MS);
      const rest = this.#seen < this.#view.entries.length;
      timer = rest ? setTimeout(slice) : undefined;
      this.searching.value = rest;
      this.version.value++;
    };
    let seen = -1;
    const stop = effect(() => {
      const count = this.#view.count.value;
      if (count === seen || timer !== undefined) return;
      seen = count;
      queueMicrotask(slice);
    });
    return () => {
      is_stopped = true;
      stop();
      clearTimeout(timer);
    };
  }

  #take(until: number): void {
    const { entries } = this.#view;
    while (this.#seen < entries.length) {
      const entry = entries[this.#seen++]!;
      const depth = this.#depthOf(entry);
      if (this.#matches(entry)) this.#push(entry, depth);
      if (performance.now() > until) return;
    }
  }

  #depthOf({ session_id, parent_id }: Entry): number {
    let depth = this.#depths.get(session_id);
    if (depth === undefined) {
      depth = typeof parent_id === "string" ? (this.#depths.get(parent_id) ?? 0) + 1 : 0;
      this.#depths.set(session_id, depth);
    }
    return depth;
  }

  #matches(entry: Entry): boolean {
    if (this.#kind !== "all" && kindOf(entry.event) !== this.#kind) return false;
    return this.#query === "" || JSON.stringify(entry).toLowerCase().includes(this.#query);
  }

  #push(entry: Entry, depth: number): void {
    const last = this.rows.at(-1);
    const field = PARTS[entry.event];
    const text = field === undefined ? "" : String(entry.data?.[field] ?? "").slice(0, MAX_TEXT);
    if (
      last && field !== undefined && last.entry.event === entry.event &&
      last.entry.session_id === entry.session_id && last.entry.seq + last.count === entry.seq
    ) {
      last.count++;
      if (last.text.length < MAX_TEXT) last.text += text;
    } else {
      this.rows.push({ entry, count: 1, text, depth });
    }
  }

  /** Returns the position of the row that has an entry, or of the last row before it; -1: no such row. */
  indexOf(seq: number): number {
    let [low, high] = [0, this.rows.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.rows[middle]!.entry.seq <= seq) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }

  /** Returns whether the row at a position has an entry. */
  has(index: number, seq: number): boolean {
    const row = this.rows[index];
    return row !== undefined && seq >= row.entry.seq && seq < row.entry.seq + row.count;
  }
}

/** Rows that are drawn above and below what is visible. */
const OVERSCAN = 6;

/** Returns which rows to draw: from `first` until before `end`. */
export function windowOf(
  top: number,
  height: number,
  row: number,
  count: number,
): [first: number, end: number] {
  const first = Math.min(Math.floor(top / row), Math.max(0, count - Math.floor(height / row)));
  return [Math.max(0, first - OVERSCAN), Math.min(count, first + Math.ceil(height / row) + 1 + OVERSCAN)];
}
