/**
 * The log of one run: numbers and stamps entries, stores them, and tells readers. Before the run is accepted entries wait;
 * no reader sees an entry before it is stored.
 */
import { type DraftEntry, type Entry, isBarrier, type Verdict } from "../../kernel/host.ts";
import { timestamp } from "../../sdk/timestamp.ts";
import type { Clock } from "../../sdk/types.ts";
import { estimateJsonBytes } from "../../sdk/json_size.ts";
import type { Awaitable, Change, Fence, Store } from "../../store/store.ts";
import type { LogLimits, SecretSink } from "../ports.ts";
import { DELTA, DeltaBuffer } from "./delta_buffer.ts";
import type { RunProjection } from "./run_projection.ts";
import { DeferredFlush } from "./deferred_flush.ts";
import { Pauses } from "../pauses.ts";

/** What a log is made with. */
export interface RunLogOptions {
  run_id: string;
  store: Store;
  clock: Clock;
  projection: RunProjection;
  limits: LogLimits;
  fence: () => Fence | undefined;
  /** Takes secrets out of an entry's data. */
  secrets: SecretSink;
  /** Told once when the log is full. */
  onFull: (limit: keyof LogLimits) => void;
}

/** The change that stores what waited. */
export type Appended = Extract<Change, { append: string }>;

/** About what an entry takes beside its data. */
const ENVELOPE_BYTES = 250;

/** A log that grows. */
export class RunLog {
  readonly #options: RunLogOptions;
  readonly #deltas: DeltaBuffer;
  readonly #readers = new Set<() => void>();
  #seq = 0;
  #stored = 0;
  #pending: Entry[] = [];
  #pending_bytes = 0;
  #open = false;
  #closed = false;
  #flushing: Promise<void> | null = null;
  readonly #deferred: DeferredFlush;
  readonly #pauses = new Pauses();
  #counted = 0;
  #bytes = 0;
  #full = false;

  constructor(options: RunLogOptions) {
    this.#options = options;
    this.#deltas = new DeltaBuffer(options.secrets, options.limits.max_log_entries);
    // the next barrier meets the same store, and throws where somebody waits
    this.#deferred = new DeferredFlush(() => void this.flush()?.catch(() => {}), options.store.buffer_ms);
  }

  /** Goes on behind entries that are stored already: readers may see what follows as it comes. */
  continueAfter(entries: readonly Entry[]): void {
    this.#seq = this.#stored = entries.length;
    this.#open = true;
    for (const entry of entries) {
      if (entry.event === DELTA) this.#deltas.count(entry);
      else this.#measure(estimateJsonBytes(entry.data));
    }
  }

  /** Numbers an entry and stores it; a promise means: wait until it is durable. */
  record(draft: DraftEntry): Promise<void> | void {
    if (draft.event === DELTA) return this.#recordDelta(draft);
    const released = this.#deltas.flushBefore(draft);
    if (released.length > 0) this.#enqueueDeltas(released);
    this.#measure(this.#append(draft));
    if (!this.#open) return;
    if (!isBarrier(draft)) return this.#defer();
    const pause = this.#pauses.next();
    const stored = this.flush();
    return stored && pause ? stored.then(() => pause) : stored ?? pause;
  }

  /** Makes a draft an entry that is folded and waits for the next commit; returns what its data weighs. */
  #append(draft: DraftEntry): number {
    const bytes = this.#redact(draft);
    const entry = this.#number(draft);
    this.#enqueue(entry, bytes);
    this.#options.projection.add(entry);
    return bytes;
  }

  #recordDelta(draft: DraftEntry): void {
    const delta = this.#deltas.add(draft);
    if (!this.#full && this.#deltas.chars > this.#options.limits.max_log_bytes) {
      this.#reportFull("max_log_bytes");
    }
    if (delta === null) return;
    this.#enqueueDelta(delta);
    this.#defer();
  }

  #enqueueDeltas(deltas: readonly DraftEntry[]): void {
    for (const delta of deltas) this.#enqueueDelta(delta);
  }

  #enqueueDelta(draft: DraftEntry): void {
    const { delta } = draft.data; // deltas were looked at together
    this.#enqueue(
      this.#number(draft),
      typeof delta === "string" ? delta.length : estimateJsonBytes(draft.data),
    );
  }

  /** Has an entry wait for the next commit; `bytes` is what its data weighs, counted once for limits and store. */
  #enqueue(entry: Entry, bytes: number): void {
    this.#pending.push(entry);
    this.#pending_bytes += bytes + ENVELOPE_BYTES;
  }

  /** Entries that nobody waits for go with the next barrier, or a little later together: a commit for each would cost more. */
  #defer(): void {
    if (this.#open) this.#deferred.schedule();
  }

  /** Makes the draft the entry: it is the log's from here on. */
  #number(draft: DraftEntry): Entry {
    const entry = draft as Entry; // the kernel made room for these three
    entry.seq = ++this.#seq;
    entry.ts = timestamp(this.#options.clock.now());
    entry.run_id = this.#options.run_id;
    if (entry.verdict !== undefined) {
      entry.verdict = this.#options.secrets.redactValues({ ...entry.verdict }) as unknown as Verdict;
    }
    return entry;
  }

  /** Takes secrets out of a draft's data; returns what that weighs. */
  #redact(draft: DraftEntry): number {
    const { secrets } = this.#options;
    const bytes = secrets.weighEvent(draft.event, draft.data);
    if (!Number.isNaN(bytes)) return bytes;
    draft.data = secrets.redactEvent(draft.event, draft.data);
    return estimateJsonBytes(draft.data);
  }

  #measure(bytes: number): void {
    if (this.#full) return;
    const { limits } = this.#options;
    this.#counted++;
    this.#bytes += bytes;
    const limit = this.#counted > limits.max_log_entries
      ? "max_log_entries"
      : this.#bytes > limits.max_log_bytes
      ? "max_log_bytes"
      : null;
    if (limit !== null) this.#reportFull(limit);
  }

  #reportFull(limit: keyof LogLimits): void {
    this.#full = true;
    this.#options.onFull(limit);
  }

  /** Stores what waited, by `commit`, then lets readers in: from here on entries are stored as they come. */
  accept(commit: (appended: Appended) => Awaitable<void>): Promise<void> | void {
    this.#open = true;
    return this.#commit(commit)?.catch((error) => {
      this.#open = false;
      throw error;
    });
  }

  /** Writes the last entry, in one commit with what `changes` returns once the entry is folded: all of it or nothing. */
  async end(draft: DraftEntry, changes: () => readonly Change[]): Promise<void> {
    const { store, fence } = this.#options;
    this.#enqueueDeltas(this.#deltas.flush());
    this.#append(draft);
    while (this.#flushing) await this.#flushing.catch(() => {}); // whoever waits for it is told; what it kept goes with this
    const stored = this.#commit((appended) => store.commit([appended, ...changes()], fence()));
    if (stored) await stored;
  }

  /** Stores what waits. */
  flush(): Promise<void> | void {
    if (this.#flushing) return this.#flushing.then(() => this.flush());
    if (this.#pending.length === 0) return;
    const { store, fence } = this.#options;
    return this.#commit((appended) => store.commit([appended], fence()));
  }

  /** Stores what waits; entries that cannot be stored wait again, so that the log never has a gap. */
  #commit(commit: (appended: Appended) => Awaitable<void>): Promise<void> | void {
    this.#deferred.cancel();
    const [entries, bytes] = [this.#pending, this.#pending_bytes];
    this.#pending = [];
    this.#pending_bytes = 0;
    const restore = (error: unknown) => {
      this.#pending = [...entries, ...this.#pending];
      this.#pending_bytes += bytes;
      throw error;
    };
    let done: Awaitable<void>;
    try {
      done = commit({ append: this.#options.run_id, after: this.#stored, entries, bytes });
    } catch (error) {
      this.#pending = entries; // nothing came between: the store answered at once
      this.#pending_bytes = bytes;
      return Promise.reject(error);
    }
    if (!done) return this.#markStored(entries);
    return this.#flushing = done.then(() => this.#markStored(entries), restore).finally(() =>
      this.#flushing = null
    );
  }

  #markStored(entries: readonly Entry[]): void {
    this.#stored += entries.length;
    this.wake();
  }

  /** Wakes every reader that waits. */
  wake(): void {
    if (this.#readers.size === 0) return;
    const readers = [...this.#readers];
    this.#readers.clear();
    for (const resolve of readers) resolve();
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
      const wake = () => {
        this.#readers.delete(wake);
        signal?.removeEventListener("abort", wake);
        resolve();
      };
      this.#readers.add(wake);
      signal?.addEventListener("abort", wake, { once: true });
    });
  }
}
