/** Collects what a command writes, up to a limit, and shows its beginning and end. */

/** Characters that are shown of the beginning and of the end. */
const HEAD_CHARS = 10 * 1024;
const TAIL_CHARS = 40 * 1024;

/** Output of one command, of both streams in the order of their arrival. */
export class CommandOutput {
  readonly #max_bytes: number;
  readonly #parts: Uint8Array[] = [];
  /** Bytes that are kept, from the beginning. */
  #kept = 0;
  /** Last bytes of what is not kept. */
  #end: Uint8Array = new Uint8Array();
  /** All bytes that were written. */
  length = 0;
  /** Bytes that {@link unread} has returned. */
  #read = 0;

  constructor(max_bytes: number) {
    this.#max_bytes = max_bytes;
  }

  add(chunk: Uint8Array): void {
    this.length += chunk.length;
    const room = this.#max_bytes - this.#kept;
    const part = chunk.subarray(0, room);
    if (part.length > 0) this.#parts.push(part);
    this.#kept += part.length;
    const rest = chunk.subarray(part.length);
    if (rest.length > 0) this.#end = joined([this.#end, rest]).slice(-TAIL_CHARS);
  }

  /** Bytes that are kept for {@link slice}. */
  get kept(): number {
    return this.#kept;
  }

  /** Returns kept bytes. */
  slice(from: number, count: number): Uint8Array {
    return this.#whole().subarray(from, from + count);
  }

  /**
   * Returns what was written since the last call; of a long text its beginning and end.
   *
   * @param name Name by which the model can read the rest.
   */
  unread(name: string): string {
    const from = this.#read;
    this.#read = this.length;
    const bytes = this.#whole();
    const count = this.length - from;
    const isWhole = count <= HEAD_CHARS + TAIL_CHARS && this.length === this.#kept;
    const head = isWhole ? bytes.subarray(from) : bytes.subarray(from, from + HEAD_CHARS);
    const tail = isWhole
      ? new Uint8Array()
      : joined([bytes.subarray(from + head.length), this.#end]).slice(-TAIL_CHARS);
    const bytes_left_out = count - head.length - tail.length;
    const [first, last] = [head, tail].map((part) => cleaned(new TextDecoder().decode(part)));
    const note = bytes_left_out > 0
      ? `\n[… ${bytes_left_out} bytes left out; read ${name} to see them]\n`
      : "";
    const text = `${first!.text}${note}${last!.text}`;
    const updates = first!.updates + last!.updates;
    if (updates === 0) return text;
    const end = text === "" || text.endsWith("\n") ? "" : "\n";
    return `${text}${end}[progress: ${updates} earlier ${
      updates === 1 ? "state" : "states"
    } left out; read ${name} ` +
      "to see all]\n";
  }

  #whole(): Uint8Array {
    if (this.#parts.length > 1) this.#parts.splice(0, this.#parts.length, joined(this.#parts));
    return this.#parts[0] ?? new Uint8Array();
  }
}

/** Milliseconds in which what a command writes is shown as one piece. */
const SHOW_MS = 50;

type Stream = "stdout" | "stderr";

/** What may be the beginning of an escape sequence. */
// deno-lint-ignore no-control-regex -- escape sequences begin with a control character
const OPEN_ESCAPE = /\u001b(?:\[[0-9;?]*[ -/]*|\][^\u0007\u001b]{0,200}\u001b?)?$/;

/** Shows people what a command writes while it runs, in a few pieces and without escape sequences. */
export class ShownOutput {
  readonly #show: (text: string, stream: Stream) => void;
  readonly #decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() };
  /** What may be the beginning of an escape sequence. */
  readonly #rests = { stdout: "", stderr: "" };
  #waiting: { stream: Stream; text: string } | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(show: (text: string, stream: Stream) => void) {
    this.#show = show;
  }

  add(chunk: Uint8Array, stream: Stream): void {
    const text = this.#rests[stream] + this.#decoders[stream].decode(chunk, { stream: true });
    const rest = OPEN_ESCAPE.exec(text);
    this.#rests[stream] = rest ? text.slice(rest.index) : "";
    this.#put(text.slice(0, text.length - this.#rests[stream].length).replace(ESCAPES, ""), stream);
  }

  /** Shows the rest. */
  end(): void {
    for (const stream of ["stdout", "stderr"] as const) this.#put(this.#rests[stream], stream);
    this.#flush();
  }

  #put(text: string, stream: Stream): void {
    if (text === "") return;
    if (this.#waiting?.stream !== stream) this.#flush();
    this.#waiting = { stream, text: (this.#waiting?.text ?? "") + text };
    this.#timer ??= setTimeout(() => this.#flush(), SHOW_MS);
  }

  #flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const waiting = this.#waiting;
    this.#waiting = null;
    if (waiting) this.#show(waiting.text, waiting.stream);
  }
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

const ESCAPES =
  // deno-lint-ignore no-control-regex -- escape sequences begin with a control character
  /\u001b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[@-Z\\-_])/g;

/**
 * Returns a text without what moves a terminal's cursor or changes its colours. What follows a carriage
 * return is a line of its own, except that of a progress bar only the last state stays.
 *
 * @returns also the number of states that were left out.
 */
function cleaned(text: string): { text: string; updates: number } {
  let updates = 0;
  const plain = text.replace(ESCAPES, "");
  const lines = plain.split("\n").map((line) => {
    if (!line.includes("\r")) return line;
    const [first = "", ...others] = line.replace(/\r+$/, "").split("\r");
    const shown = [first];
    for (const part of others) {
      if (/^[ \t]+$/.test(part)) continue; // it erases a line
      const before = shown.at(-1)!;
      if (before === "" && shown.length === 1) shown[0] = part;
      else if (isNextState(before, part)) {
        shown[shown.length - 1] = part;
        updates++;
      } else shown.push(part);
    }
    return shown.join("\n");
  });
  return { text: lines.join("\n"), updates };
}

/** A number with its unit, such as `10.2 MB/s` or `0:00:11`. */
const AMOUNT = /[\d.,:]*\d(?:\s?(?:[kKMGT]?i?[Bb]|[kKMGTms]|ms)(?:\/s)?(?![\p{L}\d]))?/gu;
/** A part that is done, and what there is in all. */
const PERCENT = /(\d+(?:\.\d+)?)\s?%()/;
const FRACTION = /(?<![\d/])(\d+)\s?(?:\/|of)\s?(\d+)(?![\d/])/;
/** What bars are drawn with, and what turns before or after a text. */
const BAR = /([#=━█▓▒░■□▪●○·.>*-])\1\1/;
const SPINNER = /^[\u2800-\u28ff◐◓◑◒◴◷◶◵|/\\-]\s*|\s*[\u2800-\u28ff◐◓◑◒◴◷◶◵|/\\-]$/gu;

/** Characters of the longest line of progress: the patterns above are slow on long texts. */
const MAX_PROGRESS_CHARS = 1_000;

/** Returns whether a text shows the same progress as the one before it, in a later state. */
function isNextState(before: string, after: string): boolean {
  if (before.length > MAX_PROGRESS_CHARS || after.length > MAX_PROGRESS_CHARS) return false;
  if (before !== after && before.replace(SPINNER, "") === after.replace(SPINNER, "")) return true;
  const [words, next] = [before, after].map((text) =>
    text.replace(AMOUNT, "").replace(/\P{L}+/gu, " ").trim()
  );
  if (words !== next) return false;
  for (const counter of [PERCENT, FRACTION]) {
    const [was, is] = [counter.exec(before), counter.exec(after)];
    if (was && is) return was[2] === is[2] && Number(was[1]) <= Number(is[1]);
  }
  return BAR.test(before) && BAR.test(after);
}
