/**
 * Who the bundler works for next: one job at a time, short jobs before long ones, and among those the owner who waited
 * longest since its last one. Sources of one caller that take long cannot keep the others waiting for more than one of them.
 */

/** One piece of work. */
export interface JobKind {
  readonly owner: string;
  /** Whether it takes milliseconds: it goes before those that may take seconds. */
  readonly short: boolean;
}

interface Job extends JobKind {
  run(): Promise<void>;
}

/** Jobs that wait, and the one that runs. */
export class BundlerQueue {
  readonly #waiting: Job[] = [];
  /** Owner → number of the job it had last. */
  readonly #served = new Map<string, number>();
  readonly #onIdle: () => void;
  #running: Promise<void> | undefined;

  /** `onIdle` is called whenever the last job ended. */
  constructor(onIdle: () => void) {
    this.#onIdle = onIdle;
  }

  /** Whether no job runs or waits. */
  get idle(): boolean {
    return this.#running === undefined;
  }

  /** Resolves to what `work` resolves to, when its turn came. */
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
