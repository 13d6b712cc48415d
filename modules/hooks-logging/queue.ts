/** Lines on their way to a sink: in order, one write at a time, never more waiting than a bound. */

/** Where lines go. Called with one text at a time; rejects when it cannot be written. */
export type Sink = (text: string) => Promise<void>;

/** Characters that may wait for a slow sink; our choice. What comes then is counted and dropped: a log never stops a run. */
const MAX_WAITING_CHARS = 1_048_576;

/** Takes lines at once and writes them in order. */
export class LineQueue {
  readonly #sink: Sink;
  readonly #droppedLine: (count: number) => string;
  #waiting: string[] = [];
  #chars = 0;
  #dropped = 0;
  #writing: Promise<void> | null = null;
  #failure: { error: unknown } | null = null;

  /**
   * Creates an empty queue.
   *
   * @param droppedLine The line that tells how many were dropped.
   */
  constructor(sink: Sink, droppedLine: (count: number) => string) {
    this.#sink = sink;
    this.#droppedLine = droppedLine;
  }

  /** Whether a write has failed. */
  get failed(): boolean {
    return this.#failure !== null;
  }

  /** Adds a line. Returns at once. After a failed write nothing is taken any more. */
  add(line: string): void {
    if (this.#failure) return;
    if (this.#chars + line.length > MAX_WAITING_CHARS) {
      this.#dropped++;
      return;
    }
    this.#waiting.push(line);
    this.#chars += line.length;
    this.#writing ??= this.#writeAll();
  }

  /** Resolves when all that was added is written. Rejects with the first write that failed. */
  async flush(): Promise<void> {
    while (this.#writing) await this.#writing;
    if (this.#failure) throw this.#failure.error;
  }

  /** Never rejects: what fails is kept for {@link flush}. */
  async #writeAll(): Promise<void> {
    try {
      await null; // lines of the same moment go together
      while (this.#waiting.length > 0) {
        const text = this.#waiting.join("");
        this.#waiting = [];
        this.#chars = 0;
        await this.#sink(text);
        if (this.#dropped > 0) {
          this.#waiting.unshift(this.#droppedLine(this.#dropped));
          this.#dropped = 0;
        }
      }
    } catch (error) {
      this.#failure = { error };
      this.#waiting = [];
      this.#chars = 0;
    } finally {
      this.#writing = null;
    }
  }
}
