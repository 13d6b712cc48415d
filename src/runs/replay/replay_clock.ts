/** The clock of a replay: time is what the log says it was, and waits end when the log says that time has passed. */
import type { Clock } from "../../sdk/types.ts";

/** How much earlier than the log a timer may have fired: its start is known to the millisecond, and timers round. */
const TOLERANCE_MS = 2;

interface Wait {
  due_ms: number;
  resolve: () => void;
}

/** Follows the entries of a log. */
export class ReplayClock implements Clock {
  readonly #start_ms: number;
  #now_ms: number;
  #next_ms: number;
  readonly #waits = new Set<Wait>();

  /** @param start_ms Time of the first entry. */
  constructor(start_ms: number) {
    this.#start_ms = this.#now_ms = this.#next_ms = start_ms;
  }

  now(): number {
    return this.#now_ms;
  }

  monotonic(): number {
    return this.#now_ms - this.#start_ms;
  }

  after(ms: number, signal?: AbortSignal): Promise<void> {
    if (signal?.aborted) return Promise.reject(signal.reason);
    return new Promise((resolve, reject) => {
      const abort = () => {
        this.#waits.delete(wait);
        reject(signal!.reason);
      };
      const wait: Wait = {
        due_ms: this.#now_ms + ms,
        resolve: () => {
          signal?.removeEventListener("abort", abort);
          resolve();
        },
      };
      signal?.addEventListener("abort", abort, { once: true });
      this.#waits.add(wait);
      this.#fire();
    });
  }

  /** Says that the entry of `now_ms` is there and that the next one came at `next_ms`. */
  follow(now_ms: number, next_ms: number): void {
    this.#now_ms = Math.max(this.#now_ms, now_ms);
    this.#next_ms = Math.max(this.#next_ms, next_ms);
    this.#fire();
  }

  #fire(): void {
    const due = [...this.#waits].filter((wait) => wait.due_ms <= this.#next_ms + TOLERANCE_MS);
    for (const wait of due.sort((a, b) => a.due_ms - b.due_ms)) {
      this.#waits.delete(wait);
      this.#now_ms = Math.max(this.#now_ms, Math.min(wait.due_ms, this.#next_ms));
      wait.resolve();
    }
  }
}
