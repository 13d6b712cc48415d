/**
 * The log of one run: numbers and stamps entries, stores them, and tells readers. Before the run is accepted entries wait;
 * no reader sees an entry before it is stored.
 */
import { type DraftEntry, type Entry, isBarrier } from "../kernel/host.ts";
import type { Clock, JsonObject } from "../sdk/types.ts";
import type { Fence, Store } from "../store/store.ts";
import type { RunFold } from "./fold.ts";

/** Limits of one log, deltas not counted (trust.md). */
export interface LogLimits {
  max_log_entries: number;
  max_log_bytes: number;
}

/** What a log is made with. */
export interface RunLogOptions {
  run_id: string;
  store: Store;
  clock: Clock;
  fold: RunFold;
  limits: LogLimits;
  fence: () => Fence | undefined;
  /** Takes secrets out of an entry's data; returns the same object when there are none. */
  redact: (data: JsonObject) => JsonObject;
  /** Told once when the log is full. */
  onFull: (limit: keyof LogLimits) => void;
}

/** A log that grows. */
export class RunLog {
  readonly #options: RunLogOptions;
  readonly #waiting = new Set<() => void>();
  #seq = 0;
  #stored = 0;
  #pending: Entry[] = [];
  #open = false;
  #closed = false;
  #flushing: Promise<void> | null = null;
  #timer: ReturnType<typeof setTimeout> | null = null;
  #counted = 0;
  #bytes = 0;
  #full = false;
  #stamp = { ms: 0, text: "" };

  constructor(options: RunLogOptions) {
    this.#options = options;
  }

  /** Numbers an entry and stores it; a promise means: wait until it is durable. */
  record(draft: DraftEntry): Promise<void> | void {
    const entry = this.#number(draft);
    this.#options.fold.add(entry);
    this.#pending.push(entry);
    this.#measure(entry);
    if (!this.#open) return;
    if (this.#options.store.buffer_ms === 0 || isBarrier(entry)) return this.flush();
    this.#timer ??= setTimeout(() => this.#flushLater(), this.#options.store.buffer_ms);
  }

  #number(draft: DraftEntry): Entry {
    const { parent_id, turn_id, iteration, verdict } = draft;
    const entry: Entry = {
      seq: ++this.#seq,
      event: draft.event,
      ts: this.#now(),
      run_id: this.#options.run_id,
      session_id: draft.session_id,
    } as Entry;
    if (parent_id !== undefined) entry.parent_id = parent_id;
    if (turn_id !== undefined) entry.turn_id = turn_id;
    if (iteration !== undefined) entry.iteration = iteration;
    entry.data = draft.event === DELTA ? draft.data : this.#options.redact(draft.data);
    if (verdict !== undefined) entry.verdict = verdict;
    return entry;
  }

  #now(): string {
    const ms = this.#options.clock.now();
    if (ms !== this.#stamp.ms) this.#stamp = { ms, text: new Date(ms).toISOString() };
    return this.#stamp.text;
  }

  #measure(entry: Entry): void {
    if (entry.event === DELTA || this.#full) return;
    const { limits } = this.#options;
    this.#counted++;
    this.#bytes += weigh(entry.data);
    const limit = this.#counted > limits.max_log_entries
      ? "max_log_entries"
      : this.#bytes > limits.max_log_bytes
      ? "max_log_bytes"
      : null;
    if (limit === null) return;
    this.#full = true;
    this.#options.onFull(limit);
  }

  /** Lets readers in: from here on entries are stored as they come. Returns those that waited, to be stored with the run. */
  open(): readonly Entry[] {
    this.#open = true;
    const waited = this.#pending;
    this.#pending = [];
    this.#stored = this.#seq;
    return waited;
  }

  /** Stores what waits. */
  flush(): Promise<void> | void {
    if (this.#flushing) return this.#flushing.then(() => this.flush());
    if (this.#pending.length === 0) return;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    const entries = this.#pending;
    this.#pending = [];
    const done = this.#options.store.commit(
      [{ append: this.#options.run_id, after: this.#stored, entries }],
      this.#options.fence(),
    );
    if (!done) return this.#tell(entries);
    return this.#flushing = done.then(() => this.#tell(entries)).finally(() => this.#flushing = null);
  }

  #flushLater(): void {
    this.#timer = null;
    const flushed = this.flush();
    flushed?.catch(() => {}); // the next barrier meets the same store and throws where somebody waits
  }

  #tell(entries: readonly Entry[]): void {
    this.#stored += entries.length;
    this.wake();
  }

  /** Wakes every reader that waits. */
  wake(): void {
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const resolve of waiting) resolve();
  }

  /** Says that no entry will follow. */
  close(): void {
    this.#closed = true;
    this.wake();
  }

  /** Sequence number of the last entry that readers may see. */
  get last_seq(): number {
    return this.#stored;
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** Resolves when there is an entry after `after`, when the log is closed, or when `signal` aborts. */
  async changed(after: number, signal?: AbortSignal): Promise<void> {
    if (this.#stored > after || this.#closed || signal?.aborted) return;
    await new Promise<void>((resolve) => {
      this.#waiting.add(resolve);
      signal?.addEventListener("abort", () => {
        this.#waiting.delete(resolve);
        resolve();
      }, { once: true });
    });
  }
}

const DELTA = "content_block:delta";

/** Returns about how many bytes of JSON a value is; exact enough for a ceiling, and cheaper than writing it. */
function weigh(value: unknown): number {
  if (typeof value === "string") return value.length + 2;
  if (typeof value !== "object" || value === null) return 8;
  let bytes = 2;
  for (const key in value) bytes += key.length + 4 + weigh((value as JsonObject)[key]);
  return bytes;
}
