/**
 * The system clock: time, deadlines and waits. Deadlines use `monotonic` and timers; `now` is for display
 * only. One timer of the runtime serves all callbacks: nearly every call sets a deadline, and a deadline
 * rarely passes.
 */
import { unless, waitOf } from "../sdk/abortable.ts";
import type { Clock } from "../sdk/contracts.ts";

/** A clock with timers. */
export interface SystemClock extends Clock {
  /** Calls `callback` once after `ms` milliseconds. The returned function cancels the timer. */
  later(ms: number, callback: () => void): () => void;
}

/** Returns the system clock. */
export function systemClock(): SystemClock {
  return { now: () => Date.now(), monotonic: () => performance.now(), after, later };
}

function after(ms: number, signal?: AbortSignal): Promise<void> {
  if (!(ms > 0) && !signal?.aborted) return Promise.resolve(); // also for NaN
  return waitOf((end) => later(ms, end), signal);
}

/**
 * Maximum delay of one timer in milliseconds; `setTimeout` overflows at 2³¹, so a longer delay uses several
 * timers.
 */
const LONGEST_MS = 2_147_483_647;

interface Wait {
  readonly at: number;
  /** Number of the wait: of two that end at the same time, the older is first. */
  readonly order: number;
  readonly callback: () => void;
  /** Index in the queue; -1 when it is not in the queue. */
  index: number;
}

/** The waits as a binary heap: the first to end is at index 0. */
const queue: Wait[] = [];
let count = 0;
let timer: ReturnType<typeof setTimeout> | undefined;
/** Time of the timer; at most the time of the first wait. */
let timer_at = Infinity;

/** Calls `callback` once after `ms` milliseconds. The returned function cancels the call. */
export function later(ms: number, callback: () => void): () => void {
  const now = performance.now();
  const wait: Wait = { at: now + (ms > 0 ? ms : 0), order: count++, callback, index: -1 };
  siftUp(wait, queue.length);
  startTimer(now);
  return () => remove(wait);
}

function remove(wait: Wait): void {
  if (wait.index < 0) return;
  const { index } = wait;
  wait.index = -1;
  const last = queue.pop()!; // it contains `wait`
  if (last !== wait) siftUp(last, siftDown(last, index));
  // a timer that is too early calls nothing; the next wait uses it, and without one it must not delay the
  // exit
  if (queue.length === 0) Deno.unrefTimer(timer!);
}

/** Ensures that the timer ends with the first wait. */
function startTimer(now: number): void {
  const first = queue[0];
  if (first === undefined) return;
  if (first.at >= timer_at) return Deno.refTimer(timer!);
  clearTimeout(timer);
  timer_at = first.at;
  timer = setTimeout(() => onTimer(), Math.min(Math.max(0, Math.ceil(first.at - now)), LONGEST_MS));
}

let onTimer: () => void;

/**
 * Calls what is due, each time the timer ends. An endless function, because its callbacks then run in the
 * async context in which it started, not in that of the caller that happened to start the timer: the console
 * lines of a module would be attributed to another module.
 */
async function callDue(): Promise<never> {
  for (;;) {
    await new Promise<void>((resolve) => onTimer = resolve);
    timer_at = -Infinity; // callbacks that add waits start no timer
    const now = performance.now();
    for (let first = queue[0]; first !== undefined && first.at <= now; first = queue[0]) {
      remove(first);
      try {
        first.callback();
      } catch (error) {
        reportError(error); // as for a callback of setTimeout
      }
    }
    timer_at = Infinity;
    startTimer(performance.now()); // the callbacks took time
  }
}
callDue();

function isBefore(a: Wait, b: Wait): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}

/** Moves a wait from an index towards the start of the queue, to its place. */
function siftUp(wait: Wait, index: number): void {
  while (index > 0) {
    const parent = queue[(index - 1) >> 1]!; // above `index`
    if (!isBefore(wait, parent)) break;
    parent.index = index;
    queue[index] = parent;
    index = (index - 1) >> 1;
  }
  wait.index = index;
  queue[index] = wait;
}

/**
 * Moves the waits that are before `wait` towards the start of the queue; returns the index that is free then.
 */
function siftDown(wait: Wait, index: number): number {
  for (let child = 2 * index + 1; child < queue.length; child = 2 * index + 1) {
    if (child + 1 < queue.length && isBefore(queue[child + 1]!, queue[child]!)) child++;
    if (!isBefore(queue[child]!, wait)) break;
    queue[child]!.index = index;
    queue[index] = queue[child]!;
    index = child;
  }
  return index;
}

/** Thrown by {@link within}. */
export class LateError extends Error {}

/** Waits for a promise, which continues after a timeout. @throws {LateError} after `ms` milliseconds. */
export function within<T>(
  ms: number,
  promise: Promise<T>,
  message = `not done within ${ms} ms`,
): Promise<T> {
  return unless(promise, (reject) => later(ms, () => reject(new LateError(message))));
}
