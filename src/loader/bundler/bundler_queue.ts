/**
 * Jobs of the bundler: their order, and sources on which it failed before. Slow sources of one caller delay
 * the others by at most one job.
 */
import { createHash } from "node:crypto";
import { PreampError } from "../../sdk/errors.ts";
import { RecentMap } from "../../sdk/recent_map.ts";
import { kindOfUrl } from "../fetch/specifiers.ts";
import type { BundlerFile } from "../types.ts";

/** Most remembered sources. */
const MAX_SOURCES = 1_000;
/** Milliseconds that a source is refused; not forever, since the failure may have been the host's. */
const REMEMBERED_MS = 10 * 60_000;

interface JobKind {
  readonly owner: string;
  /** Whether it takes milliseconds; such jobs precede those that may take seconds. */
  readonly short: boolean;
}

interface Job extends JobKind {
  run(): Promise<void>;
}

/**
 * Queue of jobs: one at a time, short ones before long ones, and among those the owner that was served least
 * recently.
 */
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
    const last = ({ owner }: Job) => this.#served.get(owner) ?? 0;
    const [next] = this.#waiting.toSorted((a, b) => Number(b.short) - Number(a.short) || last(a) - last(b));
    if (next) this.#waiting.splice(this.#waiting.indexOf(next), 1);
    return next;
  }
}

/** Reason of a failed bundling. */
export interface BundlerFailure {
  readonly code: "module_invalid" | "module_load_failed";
  /** The second half of "Cannot bundle NAME: …". */
  readonly fact: string;
}

/** Sources on which the bundler failed, by their content, with the reasons. */
export class FailedSources {
  readonly #failures = new RecentMap<{ until: number; problem: BundlerFailure }>({
    max_entries: MAX_SOURCES,
  });

  /** Checks files. @throws {PreampError} If the bundler failed on the same files before. */
  check(files: readonly BundlerFile[], name: string): void {
    if (this.#failures.size === 0) return;
    const known = this.#failures.get(keyOf(files));
    if (known && performance.now() < known.until) throw bundleFailure(name, known.problem);
  }

  /** Adds files and returns the error for them. */
  add(files: readonly BundlerFile[], name: string, problem: BundlerFailure): PreampError {
    this.#failures.set(keyOf(files), { until: performance.now() + REMEMBERED_MS, problem });
    return bundleFailure(name, problem);
  }
}

/** Returns the hash of contents and kinds of files; their URLs do not matter. */
function keyOf(files: readonly BundlerFile[]): string {
  const hash = createHash("sha256");
  for (const line of files.map(({ url, sha256 }) => `${kindOfUrl(url)} ${sha256}\n`).sort()) {
    hash.update(line);
  }
  return hash.digest("hex");
}

function bundleFailure(name: string, { code, fact }: BundlerFailure): PreampError {
  return new PreampError(code, `Cannot bundle ${name}: ${fact}: make the module smaller or simpler`);
}

/** Returns the reason for an error of esbuild itself. */
export function problemOfFailure(message: string): BundlerFailure {
  const fact = message.includes("call stack size exceeded")
    ? "its code is nested too deeply"
    : message.includes("memory")
    ? "it needs too much memory"
    : `the bundler failed on it (${message.slice(0, 200)})`;
  return { code: "module_invalid", fact };
}
