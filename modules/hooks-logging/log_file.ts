/** Writes lines in order to a file that is rotated, or to standard error. */

/** Writes a text; called for one text at a time. Rejects when the write fails. */
export type Sink = (text: string) => Promise<void>;

/**
 * Maximum characters that wait for a slow sink. Further lines are dropped and counted, so that a log never
 * stops a run.
 */
const MAX_WAITING_CHARS = 1_048_576;

/** Accepts lines without waiting and writes them in order. */
export class LineQueue {
  readonly #sink: Sink;
  readonly #dropped_line: (count: number) => string;
  #waiting = "";
  #dropped = 0;
  #writing: Promise<void> | null = null;
  #failure: { error: unknown } | null = null;

  /** Creates an empty queue; `droppedLine` returns the line that reports the number of dropped lines. */
  constructor(sink: Sink, droppedLine: (count: number) => string) {
    this.#sink = sink;
    this.#dropped_line = droppedLine;
  }

  /** Whether a write has failed. */
  get failed(): boolean {
    return this.#failure !== null;
  }

  /** Adds a line and returns immediately. After a failed write, lines are ignored. */
  add(line: string): void {
    if (this.#failure) return;
    if (this.#waiting.length + line.length > MAX_WAITING_CHARS) this.#dropped++;
    else this.#waiting += line;
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
      while (this.#waiting !== "") {
        const text = this.#waiting;
        this.#waiting = "";
        await this.#sink(text);
        if (this.#dropped > 0) this.#waiting = this.#dropped_line(this.#dropped) + this.#waiting;
        this.#dropped = 0;
      }
    } catch (error) {
      this.#failure = { error };
      this.#waiting = "";
    } finally {
      this.#writing = null;
    }
  }
}

/** Returns the paths of a log, the current file first: `path`, `path.1`, … */
export function logFiles(path: string, max_files: number): string[] {
  return Array.from({ length: max_files }, (_, index) => index === 0 ? path : `${path}.${index}`);
}

/**
 * Returns a sink that appends to `path`, a file that only its owner can read. Before the file would exceed
 * `max_bytes`, it is renamed to `path.1`, that one to `path.2`, and so on; the oldest of `max_files` is
 * replaced. A file lock prevents that two writers rotate it twice.
 */
export function fileSink(path: string, max_bytes: number, max_files: number): Sink {
  const files = logFiles(path, max_files);
  return async (text) => {
    const bytes = new TextEncoder().encode(text);
    while (!await append(files, bytes, max_bytes)); // another writer rotated it: open the new file
  };
}

/** Appends bytes. Resolves to false when the file was rotated and must be opened again. */
async function append(files: readonly string[], bytes: Uint8Array, max_bytes: number): Promise<boolean> {
  const path = files[0]!;
  // a symbolic link could lead to a place where the plan may not write
  if ((await statLink(path))?.isSymlink) throw new Error("Cannot write log file: it is a symbolic link");
  using file = await Deno.open(path, { append: true, create: true, mode: 0o600 });
  await file.lock(true); // released when the file is closed
  const opened = await file.stat();
  const current = await statLink(path);
  if (current?.dev !== opened.dev || current.ino !== opened.ino) return false;
  if (opened.size > 0 && opened.size + bytes.length > max_bytes) {
    for (let index = files.length - 1; index > 0; index--) {
      if (await statLink(files[index - 1]!)) await Deno.rename(files[index - 1]!, files[index]!);
    }
    return false;
  }
  await writeAll(file, bytes);
  return true;
}

async function writeAll(file: Pick<Deno.FsFile, "write">, bytes: Uint8Array): Promise<void> {
  for (let written = 0; written < bytes.length;) written += await file.write(bytes.subarray(written));
}

async function statLink(path: string): Promise<Deno.FileInfo | null> {
  try {
    return await Deno.lstat(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  }
}

/** Writes to standard error; a sandbox has none, but a console that goes to the process log. */
export async function writeStderr(text: string): Promise<void> {
  const { stderr } = Deno as Partial<Pick<typeof Deno, "stderr">>;
  if (stderr) return await writeAll(stderr, new TextEncoder().encode(text));
  // deno-lint-ignore no-console -- see above
  for (const line of text.split("\n")) if (line !== "") console.error(line);
}
