/**
 * What happens to the runs of this process when it stops: they end, are cancelled, or are left to other
 * processes.
 */
import type { ActiveRun } from "../run/run.ts";
import type { Recovery } from "./orphaned_runs.ts";
import type { SchedulerContext } from "./scheduler_context.ts";
import type { SessionQueue } from "./session_queue.ts";

/** Milliseconds that `close` waits for the ends of cancelled runs, and both for one step of the store. */
const CLOSE_MS = 1_000;

export class Shutdown {
  readonly #context: SchedulerContext;
  readonly #queue: SessionQueue;
  readonly #recovery: Recovery;

  constructor(context: SchedulerContext, queue: SessionQueue, recovery: Recovery) {
    this.#context = context;
    this.#queue = queue;
    this.#recovery = recovery;
  }

  /**
   * Stops accepting runs and lets running ones end for 60 % of `grace_ms`. Then leaves the others to the
   * processes that share the store, or to the next start; cancels them if the store ends with this process.
   * Does not wait longer for a store that does not answer.
   */
  async drain(grace_ms: number): Promise<void> {
    const { stopping, leases, is_shared } = this.#context;
    const stopped = this.#stopStarting();
    if (!is_shared) await stopped.then(() => this.#cancelAll(grace_ms));
    else if (!await this.#within(grace_ms * 0.6, stopped.then(() => this.#ended()))) {
      stopping.abort();
      await this.#within(grace_ms * 0.4, this.#handOver(leases.runs).then(() => this.#ended()));
    }
    stopping.abort(); // also for an end that the store refused before
  }

  async #stopStarting(): Promise<void> {
    this.#context.is_draining = true;
    this.#recovery.stop();
    await this.#queue.stop();
  }

  /** Stops executing runs and leaves them to other processes, or to the next start. */
  async #handOver(runs: readonly ActiveRun[]): Promise<void> {
    await Promise.all(runs.map((run) => {
      this.#context.runs.delete(run.id); // its commands are for the process that continues it
      return run.suspend();
    }));
  }

  async #cancelAll(grace_ms: number): Promise<void> {
    await this.#cancel("graceful");
    if (await this.idle(grace_ms * 0.6)) return;
    await this.#cancel("immediate");
    this.#context.stopping.abort();
    await this.idle(grace_ms * 0.4);
  }

  async #cancel(mode: "graceful" | "immediate"): Promise<void> {
    const { runs } = this.#context.leases;
    await this.#within(CLOSE_MS, Promise.all(runs.map((run) => run.cancel(mode, "the server is stopping"))));
  }

  /** Resolves to true when the runs that are active now have ended, to false after `timeout_ms`. */
  idle(timeout_ms: number): Promise<boolean> {
    return this.#within(timeout_ms, this.#ended());
  }

  /** Resolves when the runs that are active now have ended. */
  #ended(): Promise<unknown> {
    return Promise.all([
      ...this.#context.runs.items.map((run) => run.closed),
      ...this.#context.leases.runs.map(({ session_id }) => this.#context.leases.whenReleased(session_id)),
    ]);
  }

  /** Resolves to true once `done` has resolved, to false after `timeout_ms`. */
  async #within(timeout_ms: number, done: Promise<unknown>): Promise<boolean> {
    const timer = new AbortController();
    const timeout = this.#context.deps.clock.after(timeout_ms, timer.signal).then(() => false, () => true);
    try {
      return await Promise.race([done.then(() => true), timeout]);
    } finally {
      timer.abort();
    }
  }

  /**
   * Unless it was drained before: cancels the runs that it started, leaves those that it continued to other
   * processes, and waits a second until this is stored.
   */
  async close(): Promise<void> {
    if (!this.#context.is_draining) {
      const orphans = this.#context.leases.runs.filter(({ options }) => options.orphan);
      await this.#within(CLOSE_MS, Promise.all([this.#stopStarting(), this.#handOver(orphans)]));
      await this.#cancelAll(0);
      this.#context.stopping.abort();
      await this.idle(CLOSE_MS);
    }
    this.#context.held.close();
  }
}
