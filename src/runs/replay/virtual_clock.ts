/**
 * The clock of a replay. The time is that of the recorded entries, and a wait ends when the log shows that
 * its time has passed. Waits end in macrotasks, so the number of microtask turns that other work takes does
 * not matter.
 */
import { setImmediate } from "node:timers";
import type { HostClock } from "../../kernel/host.ts";
import { waitOf } from "../../sdk/abortable.ts";

/**
 * Milliseconds by which a timer may have fired before the recorded time: timestamps are rounded to
 * milliseconds, and timers round.
 */
const TOLERANCE_MS = 2;

interface Wait {
  readonly due_ms: number;
  /** Milliseconds by which `due_ms` may be too late. */
  readonly drift_ms: number;
  readonly end: () => void;
}

/** A clock that follows the entries of a log. */
export class VirtualClock implements HostClock {
  /** The longest time between two entries so far. */
  #longest_gap_ms = 0;
  #now_ms: number;
  #next_ms: number;
  readonly #waits = new Set<Wait>();
  #is_turn_due = false;

  /** @param start_ms Time of the first entry. */
  constructor(start_ms: number) {
    this.#now_ms = this.#next_ms = start_ms;
  }

  now(): number {
    return this.#now_ms;
  }

  monotonic(): number {
    return this.#now_ms;
  }

  /**
   * Sleeps. The duration may have been computed from an unrecorded time between two entries: see
   * {@link endLateSleep}.
   */
  after(ms: number, signal?: AbortSignal): Promise<void> {
    if (!(ms > 0) && !signal?.aborted) return Promise.resolve();
    return waitOf((end) => this.#begin(ms, this.#longest_gap_ms, end), signal);
  }

  /** Sets a deadline. It never passes before the log shows it. */
  later(ms: number, then: () => void): () => void {
    return this.#begin(ms, 0, then);
  }

  #begin(ms: number, drift_ms: number, end: () => void): () => void {
    const wait: Wait = { due_ms: this.#now_ms + Math.max(0, ms), drift_ms, end };
    this.#waits.add(wait);
    this.#endWhatIsDue();
    return () => void this.#waits.delete(wait);
  }

  /** Advances to the entry recorded at `now_ms`; the entry after it was recorded at `next_ms`. */
  follow(now_ms: number, next_ms: number): void {
    this.#longest_gap_ms = Math.max(this.#longest_gap_ms, now_ms - this.#now_ms);
    this.#now_ms = Math.max(this.#now_ms, now_ms);
    this.#next_ms = Math.max(this.#next_ms, next_ms);
    this.#endWhatIsDue();
  }

  /** Advances to the time of the next entry. */
  catchUp(): void {
    this.#now_ms = this.#next_ms;
  }

  /**
   * Ends the first sleep that the next entry may have waited for, judged by the latest start that the log
   * allows. Called when nothing else happens; returns false when there is no such sleep.
   */
  endLateSleep(): boolean {
    const wait = this.#first(({ due_ms, drift_ms }) => drift_ms > 0 && this.#isOver(due_ms - drift_ms));
    if (wait) this.#end(wait);
    return wait !== undefined;
  }

  /**
   * Ends due waits in the order of their times, one per turn of the event loop, because ending one can cancel
   * another.
   */
  #endWhatIsDue(): void {
    if (this.#is_turn_due || !this.#first(({ due_ms }) => this.#isOver(due_ms))) return;
    this.#is_turn_due = true;
    setImmediate(() => {
      this.#is_turn_due = false;
      const wait = this.#first(({ due_ms }) => this.#isOver(due_ms)); // it may have been cancelled
      if (wait) this.#end(wait);
      this.#endWhatIsDue();
    });
  }

  #isOver(due_ms: number): boolean {
    return due_ms <= this.#next_ms + TOLERANCE_MS;
  }

  #first(wanted: (wait: Wait) => boolean): Wait | undefined {
    return [...this.#waits].filter(wanted).sort((a, b) => a.due_ms - b.due_ms)[0];
  }

  #end(wait: Wait): void {
    this.#waits.delete(wait);
    this.#now_ms = Math.max(this.#now_ms, Math.min(wait.due_ms, this.#next_ms));
    wait.end();
  }
}
