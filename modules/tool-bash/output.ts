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
    const decode = (bytes: Uint8Array) => cleaned(new TextDecoder().decode(bytes));
    const bytes = this.#whole();
    const count = this.length - from;
    if (count <= HEAD_CHARS + TAIL_CHARS && this.length === this.#kept) return decode(bytes.subarray(from));
    const head = bytes.subarray(from, from + HEAD_CHARS);
    const tail = joined([bytes.subarray(from + head.length), this.#end]).slice(-TAIL_CHARS);
    const left_out = count - head.length - tail.length;
    const note = left_out > 0 ? `\n[… ${left_out} bytes left out; read ${name} to see them]\n` : "";
    return `${decode(head)}${note}${decode(tail)}`;
  }

  #whole(): Uint8Array {
    if (this.#parts.length > 1) this.#parts.splice(0, this.#parts.length, joined(this.#parts));
    return this.#parts[0] ?? new Uint8Array();
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

/** Returns a text without what moves a terminal's cursor or changes its colours. */
function cleaned(text: string): string {
  // deno-lint-ignore no-control-regex -- escape sequences begin with a control character
  return text.replace(/\u001b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[@-Z\\-_])/g, "")
    .split("\n").map((line) => {
      const whole = line.replace(/\r+$/, "");
      return whole.slice(whole.lastIndexOf("\r") + 1); // a progress bar writes over its line
    }).join("\n");
}
