/** Writes lines in order to a file or to standard error. */

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

/** Maximum attempts of a write when other writers rotate the file at the same time. */
const MAX_ATTEMPTS = 10;

/**
 * Returns a sink that appends to `path`, a file that only its owner can read. Before the file would exceed `max_bytes`, it is
 * renamed to `<path>.1`, which replaces the previous one. A file lock prevents that two writers rotate it twice.
 */
export function fileSink(path: string, max_bytes: number): Sink {
  return async (text) => {
    const bytes = new TextEncoder().encode(text);
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      if (await append(path, bytes, max_bytes)) return;
    }
    throw new Error(
      `Cannot write log file: another writer rotated it ${MAX_ATTEMPTS} times during the write`,
    );
  };
}

/** Appends bytes. Resolves to false when the file was rotated and must be opened again. */
async function append(path: string, bytes: Uint8Array, max_bytes: number): Promise<boolean> {
  await refuseLink(path);
  using file = await Deno.open(path, { append: true, create: true, mode: 0o600 });
  await file.lock(true); // released when the file is closed
  const opened = await file.stat();
  if (!await isSameFile(path, opened)) return false;
  if (opened.size > 0 && opened.size + bytes.length > max_bytes) {
    await Deno.rename(path, `${path}.1`);
    return false;
  }
  for (let written = 0; written < bytes.length;) written += await file.write(bytes.subarray(written));
  return true;
}

/** Throws for a symbolic link: it could lead to a place where the plan may not write. */
async function refuseLink(path: string): Promise<void> {
  if ((await statLink(path))?.isSymlink) throw new Error("Cannot write log file: it is a symbolic link");
}

async function isSameFile(path: string, opened: Deno.FileInfo): Promise<boolean> {
  const current = await statLink(path);
  return current !== null && current.dev === opened.dev && current.ino === opened.ino;
}

async function statLink(path: string): Promise<Deno.FileInfo | null> {
  try {
    return await Deno.lstat(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  }
}

export async function writeStderr(text: string): Promise<void> {
  const { stderr } = Deno as Partial<Pick<typeof Deno, "stderr">>;
  if (stderr === undefined) { // not available in a sandbox, whose console goes to the process log
    // deno-lint-ignore no-console -- see above
    for (const line of text.split("\n")) if (line !== "") console.error(line);
    return;
  }
  const bytes = new TextEncoder().encode(text);
  for (let written = 0; written < bytes.length;) {
    written += await stderr.write(bytes.subarray(written));
  }
}
