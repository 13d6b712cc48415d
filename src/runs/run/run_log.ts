/**
 * The event log of one run: numbers, timestamps, redacts and stores entries, and wakes readers. Until the run
 * is accepted entries are only buffered. A reader never sees an entry before it is stored.
 */
import { setImmediate } from "node:timers";
import { type DraftEntry, type Entry, isBarrier } from "../../kernel/host.ts";
import { PreampError } from "../../sdk/errors.ts";
import { timestamp } from "../../sdk/timestamp.ts";
import type { Clock } from "../../sdk/types.ts";
import { estimateJsonBytes } from "../../sdk/json.ts";
import { type Awaitable, type Change, MAX_PAGE_BYTES } from "../../store/store.ts";
import { Waiters } from "../../store/waiters.ts";
import type { LogLimits } from "../ports.ts";
import { DELTA_FIELDS, DeltaBuffer } from "./delta_buffer.ts";
import type { RunFacts } from "./run_options.ts";
import type { RunRecords } from "./run_records.ts";
import { DeferredFlush } from "./deferred_flush.ts";

/** The run that a log belongs to. */
export interface LoggedRun extends RunFacts {
  readonly records: RunRecords;
  /** Receives entries after they are stored. */
  stored(entries: readonly Entry[]): void;
}

/** Estimated size of an entry without its data. */
const ENVELOPE_BYTES = 250;

/** Entries that wait for the store from which on deltas are joined. */
const MAX_WAITING = 256;
/** Durable entries between two readings of the clock: a run with fewer never pauses. */
const CLOCK_EVERY = 16;
/** Milliseconds of work after which a run pauses: half of the delay that a health check tolerates. */
const SLICE_MS = 10;

/**
 * Makes a run that never waits pause now and then. Without pauses, all its work would happen in one turn of
 * the event loop, and no request would be answered meanwhile.
 */
class Pauses {
  #count = 0;
  /** Real time, also where the run's clock is another; -1 before the first reading. */
  #since = -1;

  /** Counts a durable entry. Returns a promise when the run must wait for the next turn of the event loop. */
  next(): Promise<void> | void {
    if (++this.#count % CLOCK_EVERY !== 0) return;
    const now = performance.now();
    if (this.#since < 0) this.#since = now;
    if (now - this.#since < SLICE_MS) return;
    return new Promise((resolve) =>
      setImmediate(() => {
        this.#since = performance.now();
        resolve();
      })
    );
  }
}

/** An append-only event log. */
export class RunLog {
  readonly #run: LoggedRun;
  readonly #clock: Clock;
  readonly #deltas: DeltaBuffer;
  #readers: Waiters | null = null;
  #seq = 0;
  #stored = 0;
  /** Estimated JSON size of the stored entries. */
  #stored_bytes = 0;
  /** The entries of the last commit, for readers that follow the log as it grows. */
  #last_stored: readonly Entry[] = [];
  #pending: Entry[] = [];
  #pending_bytes = 0;
  /** Changes that belong to the pending entries. */
  #pending_changes: Change[] = [];
  #open = false;
  #closed = false;
  #is_stopped = false;
  #is_handed_over = false;
  /** Whether the pending entries may be stored already: a commit of them failed. */
  #has_failed = false;
  #flushing: Promise<void> | null = null;
  readonly #deferred: DeferredFlush;
  readonly #pauses = new Pauses();
  #counted = 0;
  #bytes = 0;
  #full = false;

  constructor(run: LoggedRun) {
    this.#run = run;
    this.#clock = run.options.deps.clock;
    this.#deltas = new DeltaBuffer(run.secrets, run.limits.max_log_entries);
    this.#deferred = new DeferredFlush(this);
  }

  /** Continues after stored entries. Readers see what follows at once. */
  continueAfter(entries: readonly Entry[]): void {
    this.#seq = this.#stored = entries.length;
    this.#open = true;
    for (const entry of entries) {
      const bytes = estimateJsonBytes(entry.data);
      this.#stored_bytes += bytes + ENVELOPE_BYTES;
      if (DELTA_FIELDS.has(entry.event)) this.#deltas.count(entry);
      else this.#measure(bytes);
    }
  }

  /**
   * Records an entry. Returns a promise when the entry must be durable before the next step. `change`: stored
   * in the commit of the entry, if the log takes it.
   */
  record(draft: DraftEntry, change?: Change): Promise<void> | void {
    if (this.#is_handed_over) return isBarrier(draft) ? Promise.reject(handedOverError()) : undefined;
    if (this.#is_stopped) return;
    if (DELTA_FIELDS.has(draft.event)) return this.#recordDelta(draft);
    for (const delta of this.#deltas.flushBefore(draft)) this.#enqueueDelta(delta);
    if (change) this.#pending_changes.push(change);
    this.#measure(this.#append(draft));
    if (!this.#open) return;
    if (!isBarrier(draft)) return this.#deferred.schedule();
    const pause = this.#pauses.next();
    const stored = this.flush();
    return stored && pause ? Promise.all([stored, pause]).then(() => {}) : stored ?? pause;
  }

  /** Adds a draft to the projection and to the next commit; returns the estimated size of its data. */
  #append(draft: DraftEntry): number {
    const bytes = this.#redact(draft);
    const entry = this.#number(draft);
    this.#enqueue(entry, bytes);
    this.#run.projection.add(entry);
    return bytes;
  }

  #recordDelta(draft: DraftEntry): void {
    if (this.#full) return; // the turn ends: a flood does not make the log larger meanwhile
    const delta = this.#deltas.add(draft, this.#pending.length >= MAX_WAITING);
    if (this.#deltas.chars > this.#run.limits.max_log_bytes) this.#reportFull("max_log_bytes");
    if (delta === null) return;
    this.#enqueueDelta(delta);
    if (this.#open) this.#deferred.schedule();
  }

  #enqueueDelta(draft: DraftEntry): void {
    const text = draft.data[DELTA_FIELDS.get(draft.event)!]; // it is a delta, and was redacted in the buffer
    this.#enqueue(
      this.#number(draft),
      typeof text === "string" ? text.length : estimateJsonBytes(draft.data),
    );
  }

  /** Adds an entry to the next commit. `bytes`: size of its data, estimated once for limits and store. */
  #enqueue(entry: Entry, bytes: number): void {
    this.#pending.push(entry);
    this.#pending_bytes += bytes + ENVELOPE_BYTES;
  }

  /** Turns the draft into the entry, without a copy: the log owns it from here on. */
  #number(draft: DraftEntry): Entry {
    // perf: the kernel creates drafts with these three properties, so the shape does not change
    const entry = draft as Entry;
    entry.seq = ++this.#seq;
    entry.ts = timestamp(this.#clock.now());
    entry.run_id = this.#run.id;
    if (entry.verdict !== undefined) {
      entry.verdict = this.#run.secrets.redactValues(entry.verdict);
    }
    return entry;
  }

  /** Redacts a draft's data; returns its estimated size. */
  #redact(draft: DraftEntry): number {
    const { secrets } = this.#run;
    const bytes = secrets.estimateEventBytes(draft.event, draft.data);
    if (!Number.isNaN(bytes)) return bytes;
    draft.data = secrets.redactEvent(draft.event, draft.data);
    return estimateJsonBytes(draft.data);
  }

  #measure(bytes: number): void {
    if (this.#full) return;
    const { limits } = this.#run;
    this.#counted++;
    this.#bytes += bytes;
    const limit = this.#counted > limits.max_log_entries
      ? "max_log_entries"
      : this.#bytes > limits.max_log_bytes
      ? "max_log_bytes"
      : null;
    if (limit !== null) this.#reportFull(limit);
  }

  /** Ends the turn. */
  #reportFull(limit: keyof LogLimits): void {
    this.#full = true;
    const unit = limit === "max_log_bytes" ? "bytes" : "entries";
    this.#run.limitGuard.stopFor(limit, `the log of the run has ${this.#run.limits[limit]} ${unit}`);
  }

  /**
   * Stores the buffered entries in one commit with `changes`, and opens the log: from then on entries are
   * stored as they come.
   */
  accept(changes: readonly Change[]): Promise<void> | void {
    this.#open = true;
    return this.#commit(changes, false)?.catch((error) => {
      this.#open = false;
      throw error;
    });
  }

  /** Appends the last entry, which {@link storeWith} stores. */
  end(draft: DraftEntry): void {
    for (const delta of this.#deltas.flush()) this.#enqueueDelta(delta);
    const bytes = this.#redact(draft);
    this.#enqueue(this.#number(draft), bytes);
  }

  /** Stores the buffered entries, also the last one, with `changes`. Can be called again when it fails. */
  storeWith(changes: () => readonly Change[]): Promise<void> | void {
    // the caller of that flush gets the error; its entries are stored again by this commit
    if (this.#flushing) return this.#flushing.catch(() => {}).then(() => this.storeWith(changes));
    return this.#commit(changes(), !this.#is_stopped);
  }

  /**
   * Leaves the log to another process: stores the buffered entries and drops all that follow. A step that
   * waits for its entry is rejected, so that nothing happens which the log does not say.
   */
  async handOver(): Promise<void> {
    this.#is_handed_over = true;
    for (const delta of this.#deltas.flush()) this.#enqueueDelta(delta);
    await this.flush();
  }

  /** Stores the buffered entries, except the last ones: {@link storeWith} does. */
  flush(): Promise<void> | void {
    if (this.#is_stopped) return;
    if (this.#flushing) return this.#flushing.then(() => this.flush());
    if (this.#pending.length + this.#pending_changes.length === 0) return;
    return this.#commit(this.#run.records.changesWith(this.#pending));
  }

  /** Stores a change with the buffered entries, unless the log takes no more. */
  store(change: Change): Promise<void> | void {
    if (this.#is_handed_over || this.#is_stopped) return;
    this.#pending_changes.push(change);
    return this.flush();
  }

  /**
   * Stores the buffered entries in one commit with `changes`. On failure they are buffered again, so that the
   * log never has a gap. `waits`: whether it waits for the store.
   */
  #commit(changes: readonly Change[], waits = true): Promise<void> | void {
    this.#deferred.cancel();
    const entries = this.#pending;
    const bytes = this.#pending_bytes;
    const own = this.#pending_changes;
    this.#pending = [];
    this.#pending_bytes = 0;
    if (own.length > 0) this.#pending_changes = [];
    let done: Awaitable<void>;
    try {
      const append = { append: this.#run.id, after: this.#stored, entries, bytes };
      const appended: Change[] = [
        this.#is_stopped ? { ...append, final_bytes: this.#stored_bytes + bytes } : append,
      ];
      const all = changes.length + own.length === 0 ? appended : appended.concat(changes, own);
      done = waits ? this.#run.store.commit(all) : this.#run.store.tryCommit(all, this.#has_failed);
    } catch (error) {
      this.#restore(entries, bytes, own);
      return Promise.reject(error);
    }
    if (!done) return this.#markStored(entries, bytes);
    return this.#flushing = this.#whenStored(done, entries, bytes, own);
  }

  #whenStored(
    done: Promise<void>,
    entries: readonly Entry[],
    bytes: number,
    own: readonly Change[],
  ): Promise<void> {
    return done.then(() => {
      this.#markStored(entries, bytes);
      // a step may follow: not in a process that stood still, and whose run another one continues
      return this.#run.store.wait(() => this.#run.lease?.confirm());
    }, (error) => {
      this.#restore(entries, bytes, own);
      throw error;
    }).finally(() => this.#flushing = null);
  }

  #restore(entries: readonly Entry[], bytes: number, own: readonly Change[]): void {
    this.#has_failed = true;
    this.#pending = [...entries, ...this.#pending];
    this.#pending_bytes += bytes;
    this.#pending_changes = [...own, ...this.#pending_changes];
  }

  #markStored(entries: readonly Entry[], bytes: number): void {
    this.#last_stored = bytes > MAX_PAGE_BYTES ? [] : entries; // a larger page is read from the store, in parts
    this.#stored += entries.length;
    this.#stored_bytes += bytes;
    this.#has_failed = false;
    const last = entries.at(-1);
    if (last?.event === "run:end") this.#run.projection.add(last); // a run has ended when its end is stored
    this.#run.stored(entries);
    this.wake();
  }

  /** Wakes every waiting reader. */
  wake(): void {
    this.#readers?.wakeAll();
  }

  /** Ignores all further entries but the last, such as those of a module's timer that fires after the end. */
  stop(): void {
    this.#is_stopped = true;
  }

  /** Closes the log: no entry follows. */
  close(): void {
    this.#closed = true;
    this.wake();
  }

  /** Sequence number of the last stored entry. */
  get last_seq(): number {
    return this.#stored;
  }

  get closed(): boolean {
    return this.#closed;
  }

  /**
   * Returns at most `limit` stored entries after `after` without a read of the store; null when the first of
   * them is older than the last commit.
   */
  recent(after: number, limit: number): Entry[] | null {
    if (after >= this.#stored) return [];
    const first = this.#last_stored[0];
    if (!first || first.seq > after + 1) return null;
    const from = after + 1 - first.seq;
    return this.#last_stored.slice(from, from + limit);
  }

  /** Resolves when an entry after `after` is stored, the log is closed, or `signal` aborts. */
  async changed(after: number, signal?: AbortSignal): Promise<void> {
    if (this.#stored > after || this.#closed || signal?.aborted) return;
    await (this.#readers ??= new Waiters()).wait(signal);
  }
}

function handedOverError(): PreampError {
  return new PreampError("draining", "Cannot continue the run here: the server is stopping");
}
