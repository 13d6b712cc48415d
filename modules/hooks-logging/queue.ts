/** A bounded queue of lines for a sink; it writes in order, one write at a time. */

/** Writes a text; called for one text at a time. Rejects when the write fails. */
export type Sink = (text: string) => Promise<void>;

/** Maximum characters that wait for a slow sink. Further lines are dropped and counted, so that a log never stops a run. */
const MAX_WAITING_CHARS = 1_048_576;

/** Accepts lines without waiting and writes them in order. */
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
   * @param droppedLine Returns the line that reports the number of dropped lines.
   */
  constructor(sink: Sink, droppedLine: (count: number) => string) {
    this.#sink = sink;
    this.#droppedLine = droppedLine;
  }

  /** Whether a write has failed. */
  get failed(): boolean {
    return this.#failure !== null;
  }

  /** Adds a line and returns immediately. After a failed write, lines are ignored. */
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

  /** Resolves when all added lines are written. Rejects with the error of the first failed write. */
  async flush(): Promise<void> {
    while (this.#writing) await this.#writing;
    if (this.#failure) throw this.#failure.error;
  }

  /** Writes all waiting lines. Never rejects: the error is saved for {@link flush}. */
  async #writeAll(): Promise<void> {
    try {
      await null; // lines that are added synchronously are written together
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
