/** Formats events as lines of the log, and writes them in order to a file or to standard error. */
import type { JsonObject } from "preamp/base";

/** Maximum bytes of a line, including the line feed. */
export const MAX_LINE_BYTES = 8_192;

/** Values of `lvl`. */
type Level = "DEBUG" | "INFO" | "WARNING" | "ERROR";

/** Event in the log that reports the number of lines dropped because of a slow sink: `{count}`. */
export const DROPPED = "hooks-logging:dropped";

const WARNINGS: ReadonlySet<string> = new Set([
  "policy:violation",
  "approval:denied",
  "provider:retry",
  "provider:throttle",
  DROPPED,
]);

const SCHEMA = { name: "amplifier.log", ver: "1.0.0" } as const;

/** Bounds of a copy of an event's data. */
interface Bounds {
  text: number;
  /** Approximate maximum characters of the copy. */
  total: number;
}

const MAX_DEPTH = 32;

/**
 * Bounds to try in order until the line fits. A character has at most six bytes (`\u001b`), so the last
 * always fits.
 */
const BOUNDS: readonly Bounds[] = [
  { text: 6_000, total: 6_000 },
  { text: 180, total: 3_000 },
  { text: 60, total: 400 },
];

/** Fields of a handler's payload that belong to the envelope, not to `data`. */
const ENVELOPE = ["session_id", "parent_id", "turn_id", "iteration"] as const;

/**
 * Returns the line of an event as JSON with a line feed: `ts, lvl, schema, event, session_id, …, data`. The
 * line has no control characters. Longer data is truncated, and the line has `"truncated": true`. Secrets
 * must be redacted before, because truncation could cut one in half.
 *
 * @param now Milliseconds since the epoch, used when the payload has no timestamp.
 */
export function formatLine(event: string, payload: JsonObject, now: number): string {
  const { timestamp, ...fields } = payload;
  const envelope: JsonObject = {};
  for (const key of ENVELOPE) {
    const value = fields[key];
    delete fields[key];
    if (typeof value === "number") envelope[key] = value;
    else if (typeof value === "string") envelope[key] = value.slice(0, 128);
  }
  const head = {
    ts: typeof timestamp === "string" ? timestamp.slice(0, 40) : new Date(now).toISOString(),
    lvl: levelOf(event, payload.level),
    schema: SCHEMA,
    event,
    ...envelope,
  };
  let line = "";
  for (const bounds of BOUNDS) {
    const { value, cut } = shorten(fields, bounds);
    line = escapeInvisible(
      JSON.stringify(cut ? { ...head, truncated: true, data: value } : { ...head, data: value }),
    );
    if (byteLength(line) < MAX_LINE_BYTES) break;
  }
  return line + "\n";
}

/**
 * Escapes characters that JSON permits unescaped: DEL, C1 controls (which can start terminal sequences), line
 * separators and marks that change the direction of text. They only occur in strings, where an escape has the
 * same meaning.
 */
function escapeInvisible(json: string): string {
  return json.replace(
    /[\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g,
    (character) => "\\u" + character.charCodeAt(0).toString(16).padStart(4, "0"),
  );
}

function byteLength(text: string): number {
  return new TextEncoder().encode(text).length;
}

/** Returns whether an event is a delta; deltas are numerous, and the complete answer contains them. */
export function isDelta(event: string): boolean {
  return event.endsWith(":delta") || event.endsWith("_delta");
}

/** Returns the level of an event; for `user:notification` it follows from the notification's level. */
function levelOf(event: string, userLevel: unknown): Level {
  if (event === "user:notification") {
    return userLevel === "error" ? "ERROR" : userLevel === "warning" ? "WARNING" : "INFO";
  }
  if (event.endsWith(":error") || event.endsWith("_failed")) return "ERROR";
  if (WARNINGS.has(event)) return "WARNING";
  return isDelta(event) ? "DEBUG" : "INFO";
}

/**
 * Returns a copy within bounds, and whether anything was cut. Takes time in proportion to the copy, not to
 * the data.
 */
function shorten(data: unknown, bounds: Bounds): { value: unknown; cut: boolean } {
  let cut = false;
  let left = bounds.total;

  const shortText = (text: string, limit: number) => {
    const allowed = Math.max(0, Math.min(limit, left));
    left -= Math.min(text.length, allowed) + 4;
    if (text.length <= allowed) return text;
    cut = true;
    return `${text.slice(0, allowed).toWellFormed()}[${text.length - allowed} more]`;
  };
  const copyItems = (items: readonly unknown[], depth: number) => {
    const copies: unknown[] = [];
    for (const [index, item] of items.entries()) {
      if (left <= 0) {
        cut = true;
        copies.push(`[${items.length - index} more]`);
        break;
      }
      left -= 1;
      copies.push(copy(item, depth + 1));
    }
    return copies;
  };
  const copyFields = (fields: object, depth: number) => {
    const copies: JsonObject = {};
    for (const [key, item] of Object.entries(fields)) {
      if (left <= 0) {
        cut = true;
        break;
      }
      const name = shortText(key, Math.min(bounds.text, 180));
      if (name !== "__proto__") copies[name] = copy(item, depth + 1);
    }
    return copies;
  };
  const copy = (value: unknown, depth: number): unknown => {
    if (typeof value === "string") return shortText(value, bounds.text);
    if (typeof value !== "object" || value === null) {
      left -= 8;
      return value;
    }
    if (depth === MAX_DEPTH) {
      cut = true;
      return "[Deep]";
    }
    return Array.isArray(value) ? copyItems(value, depth) : copyFields(value, depth);
  };
  return { value: copy(data, 0), cut };
}

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
 * Returns a sink that appends to `path`, a file that only its owner can read. Before the file would exceed
 * `max_bytes`, it is renamed to `<path>.1`, which replaces the previous one. A file lock prevents that two
 * writers rotate it twice.
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
  // a symbolic link could lead to a place where the plan may not write
  if ((await statLink(path))?.isSymlink) throw new Error("Cannot write log file: it is a symbolic link");
  using file = await Deno.open(path, { append: true, create: true, mode: 0o600 });
  await file.lock(true); // released when the file is closed
  const opened = await file.stat();
  if (!await isSameFile(path, opened)) return false;
  if (opened.size > 0 && opened.size + bytes.length > max_bytes) {
    await Deno.rename(path, `${path}.1`);
    return false;
  }
  await writeAll(file, bytes);
  return true;
}

async function writeAll(
  file: { write(bytes: Uint8Array): Promise<number> },
  bytes: Uint8Array,
): Promise<void> {
  for (let written = 0; written < bytes.length;) written += await file.write(bytes.subarray(written));
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
  await writeAll(stderr, new TextEncoder().encode(text));
}
