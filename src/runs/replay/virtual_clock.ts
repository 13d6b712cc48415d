/**
 * The clock of a replay: time is what the log says it was, and waits end when the log says that time has passed. They end once
 * everything else that can happen has: how many turns of the microtask queue something takes decides nothing.
 */
import { setImmediate } from "node:timers";
import type { HostClock } from "../../kernel/host.ts";

/** How much earlier than the log a timer may have fired: its start is known to the millisecond, and timers round. */
const TOLERANCE_MS = 2;

interface Wait {
  readonly due_ms: number;
  /** By how much it may be due too late. */
  readonly drift_ms: number;
  readonly end: () => void;
}

/** Follows the entries of a log. */
export class VirtualClock implements HostClock {
  readonly #start_ms: number;
  #before_ms: number;
  #now_ms: number;
  #next_ms: number;
  readonly #waits = new Set<Wait>();
  #is_turn_due = false;

  /** @param start_ms Time of the first entry. */
  constructor(start_ms: number) {
    this.#start_ms =
      this.#before_ms =
      this.#now_ms =
      this.#next_ms =
        start_ms;
  }

  now(): number {
    return this.#now_ms;
  }

  monotonic(): number {
    return this.#now_ms - this.#start_ms;
  }

  /**
   * A sleep. How long it takes may have been reckoned before the last entry was told, at a time that the log does not tell:
   * see {@link endLateSleep}.
   */
  after(ms: number, signal?: AbortSignal): Promise<void> {
    if (signal?.aborted) return Promise.reject(signal.reason);
    if (!(ms > 0)) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const abort = () => {
        this.#waits.delete(wait);
        reject(signal!.reason);
      };
      const wait = this.#begin(ms, this.#now_ms - this.#before_ms, () => {
        signal?.removeEventListener("abort", abort);
        resolve();
      });
      signal?.addEventListener("abort", abort, { once: true });
    });
  }

  /** A deadline: never over before the log says so. */
  later(ms: number, then: () => void): () => void {
    const wait = this.#begin(ms, 0, then);
    return () => void this.#waits.delete(wait);
  }

  #begin(ms: number, drift_ms: number, end: () => void): Wait {
    const wait: Wait = { due_ms: this.#now_ms + Math.max(0, ms), drift_ms, end };
    this.#waits.add(wait);
    this.#endWhatIsDue();
    return wait;
  }

  /** Says that the entry of `now_ms` is there and that the next one came at `next_ms`. */
  follow(now_ms: number, next_ms: number): void {
    this.#before_ms = this.#now_ms;
    this.#now_ms = Math.max(this.#now_ms, now_ms);
    this.#next_ms = Math.max(this.#next_ms, next_ms);
    this.#endWhatIsDue();
  }

  /** Says that what happens now happened right before the next entry. */
  catchUp(): void {
    this.#now_ms = this.#next_ms;
  }

  /**
   * Ends the first sleep that the next entry may have waited for: had it been reckoned as late as the log allows, it would be
   * over. For when nothing else happens any more; false when there is none.
   */
  endLateSleep(): boolean {
    const wait = this.#first(({ due_ms, drift_ms }) => drift_ms > 0 && this.#isOver(due_ms - drift_ms));
    if (wait) this.#end(wait);
    return wait !== undefined;
  }

  /** In order of their times, one in each turn of the event loop: what one brings about may call off another. */
  #endWhatIsDue(): void {
    if (this.#is_turn_due || !this.#first(({ due_ms }) => this.#isOver(due_ms))) return;
    this.#is_turn_due = true;
    setImmediate(() => {
      this.#is_turn_due = false;
      const wait = this.#first(({ due_ms }) => this.#isOver(due_ms)); // it may have been called off
      if (wait) this.#end(wait);
      this.#endWhatIsDue();
    });
  }

  #isOver(due_ms: number): boolean {
    return due_ms <= this.#next_ms + TOLERANCE_MS;
  }

  #first(wanted: (wait: Wait) => boolean): Wait | undefined {
    let first: Wait | undefined;
    for (const wait of this.#waits) {
      if (wanted(wait) && (first === undefined || wait.due_ms < first.due_ms)) first = wait;
    }
    return first;
  }

  #end(wait: Wait): void {
    this.#waits.delete(wait);
    this.#now_ms = Math.max(this.#now_ms, Math.min(wait.due_ms, this.#next_ms));
    wait.end();
  }
}
