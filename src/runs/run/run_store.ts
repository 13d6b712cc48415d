/**
 * The writes of one run. While the store is away or full they wait: the same changes are tried again with the
 * same fence, so that a short failure delays a run and does not end it.
 */
import { errorCode, errorMessage } from "../../sdk/errors.ts";
import { type Awaitable, type Change, ConflictError, type Fence, type Store } from "../../store/store.ts";
import type { HostClock } from "../../kernel/host.ts";
import type { Run } from "../types.ts";
import type { RunFacts, RunWrites } from "./run_options.ts";

/** Milliseconds until the first retry; doubled by each one. */
const RETRY_MS = 250;
const MAX_RETRY_MS = 5_000;

/** The run that writes. */
export interface StoringRun extends RunFacts {
  /** Leaves the run to other processes: the store has not come back in time. */
  leave(error: unknown): void;
}

/** Returns whether an operation of the store may succeed soon: the store is away for a while, or full. */
export function isAway(error: unknown): boolean {
  const code = errorCode(error);
  return code === "overloaded" || code === "storage_full";
}

/**
 * Repeats an operation that has failed, with a growing delay.
 * @param again Returns whether to try again after an error and `waited_ms`; not called once `signal` aborts.
 */
export async function repeat<T>(
  operation: () => Awaitable<T>,
  error: unknown,
  { clock, signal, again }: {
    clock: HostClock;
    signal: AbortSignal;
    again: (error: unknown, waited_ms: number) => boolean;
  },
): Promise<T> {
  const began_ms = clock.now();
  for (let delay_ms = RETRY_MS; !signal.aborted && again(error, clock.now() - began_ms); delay_ms *= 2) {
    await clock.after(Math.min(delay_ms, MAX_RETRY_MS), signal).catch(() => {}); // stopping: tried once more
    try {
      return await operation();
    } catch (next) {
      error = next;
    }
  }
  throw error;
}

/** Writes the changes of one run. */
export class RunStore implements RunWrites {
  readonly #run: StoringRun;
  readonly #store: Store;
  #stopped: AbortController | null = null;

  constructor(run: StoringRun) {
    this.#run = run;
    this.#store = run.options.deps.store;
  }

  tryCommit(changes: readonly Change[], is_repeated = false): Awaitable<void> {
    const fence = this.#run.lease?.fence;
    return is_repeated ? this.#commitAgain(changes, fence) : this.#store.commit(changes, fence);
  }

  commit(changes: readonly Change[]): Awaitable<void> {
    const fence = this.#run.lease?.fence;
    return this.wait(
      () => this.#store.commit(changes, fence),
      () => this.#commitAgain(changes, fence),
    );
  }

  wait<T>(operation: () => Awaitable<T>, again = operation): Awaitable<T> {
    let done: Awaitable<T>;
    try {
      done = operation();
    } catch (error) {
      return this.#again(again, error);
    }
    return done instanceof Promise ? done.catch((error) => this.#again(again, error)) : done;
  }

  async #again<T>(operation: () => Awaitable<T>, error: unknown): Promise<T> {
    if (!isAway(error)) throw error;
    const { limits: { store_wait_s }, options: { deps: { clock }, scheduler } } = this.#run;
    this.#stopped ??= new AbortController();
    const signal = AbortSignal.any([scheduler.stopping, this.#stopped.signal]);
    const again = (error: unknown, waited_ms: number) => isAway(error) && waited_ms < store_wait_s * 1000;
    try {
      return await repeat(operation, error, { clock, signal, again });
    } catch (error) {
      if (isAway(error) && !signal.aborted) this.#run.leave(error);
      throw error;
    }
  }

  /** Commits again. A commit whose connection was lost may have been applied. */
  async #commitAgain(changes: readonly Change[], fence: Fence | undefined): Promise<void> {
    try {
      await this.#store.commit(changes, fence);
    } catch (error) {
      if (!(error instanceof ConflictError) || !await this.#isApplied(changes)) throw error;
    }
  }

  /** Returns whether the store has these changes: one that compares shows it for all. */
  async #isApplied(changes: readonly Change[]): Promise<boolean> {
    for (const change of changes) {
      if ("append" in change && change.entries.length > 0) {
        const { append, after, entries } = change;
        return isSame(await this.#store.entries(append, after, entries.length), entries);
      }
      if ("put" in change && change.expect !== undefined) {
        const { kind, key, value } = change.put;
        return isSame((await this.#store.get(kind, key))?.value, value);
      }
    }
    return false;
  }

  /**
   * Stores the end of a run that the store refused at first. Unlike other writes it is tried until the store
   * takes it, because the run has nothing else to do. Resolves to false when this process stops first, after
   * one more try; to true when the end is stored, or another process has the run and will say how it ends.
   *
   * @param run The run object at its end.
   * @param error Why the first try failed.
   */
  async retryEnd(run: Run, store: () => Promise<void> | void, error: unknown): Promise<boolean> {
    const { createOptions, deps: { clock, log }, scheduler: { stopping } } = this.#run.options;
    const { id: run_id } = run;
    log("error", "run_end_not_stored", { run_id, message: errorMessage(error) });
    const again = (error: unknown) => !(error instanceof ConflictError);
    if (again(error)) createOptions.endNotStored?.(run);
    try {
      await repeat(store, error, { clock, signal: stopping, again });
      log("info", "run_end_stored", { run_id });
      return true;
    } catch (error) {
      return !again(error);
    }
  }

  /** Ends every wait: from now on each operation is tried once. */
  stop(): void {
    (this.#stopped ??= new AbortController()).abort();
  }
}

/** Returns whether data that was stored is what was to be stored: as texts, because stores keep JSON. */
function isSame(stored: unknown, data: unknown): boolean {
  return JSON.stringify(stored) === JSON.stringify(data);
}
