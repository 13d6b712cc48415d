/**
 * Queue of the bundler: one job at a time, short jobs before long ones, and among those the owner that was served least recently. Slow
 * sources of one caller delay the others by at most one job.
 */

/** Kind of a job. */
export interface JobKind {
  readonly owner: string;
  /** Whether it takes milliseconds; such jobs precede those that may take seconds. */
  readonly short: boolean;
}

interface Job extends JobKind {
  run(): Promise<void>;
}

/** Queue of jobs. */
export class BundlerQueue {
  readonly #waiting: Job[] = [];
  /** Maps owners to the number of their latest job. */
  readonly #served = new Map<string, number>();
  readonly #onIdle: () => void;
  #running: Promise<void> | undefined;

  /** `onIdle` is called when the queue becomes empty. */
  constructor(onIdle: () => void) {
    this.#onIdle = onIdle;
  }

  /** Whether no job runs or waits. */
  get idle(): boolean {
    return this.#running === undefined;
  }

  /** Queues a job; resolves to its result. */
  add<T>(kind: JobKind, work: () => Promise<T>): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    this.#waiting.push({ ...kind, run: () => work().then(resolve, reject) });
    this.#running ??= this.#work();
    return promise;
  }

  /** Resolves when no job runs or waits. */
  async done(): Promise<void> {
    await this.#running;
  }

  async #work(): Promise<void> {
    for (let number = 1, job = this.#next(); job; number++, job = this.#next()) {
      this.#served.set(job.owner, number);
      await job.run();
    }
    this.#running = undefined;
    this.#served.clear();
    this.#onIdle();
  }

  #next(): Job | undefined {
    const short = this.#waiting.some((job) => job.short);
    let best: Job | undefined;
    for (const job of this.#waiting) {
      if (job.short !== short) continue;
      if (!best || this.#last(job) < this.#last(best)) best = job;
    }
    if (best) this.#waiting.splice(this.#waiting.indexOf(best), 1);
    return best;
  }

  #last({ owner }: Job): number {
    return this.#served.get(owner) ?? 0;
  }
}
