/** The messages that a person typed in earlier conversations, for the up and down keys. */
import { errorMessage } from "../../sdk/errors.ts";

/** Messages that are kept. */
const MAX_LINES = 1_000;

/** A history in a file with one JSON string a line, which only its owner may read. */
export class InputHistory {
  /** Messages, newest first. */
  readonly lines: string[] = [];
  readonly #file: URL | null;
  readonly #warn: (text: string) => void;
  #is_broken = false;

  /** @param file Null: nothing is kept. */
  constructor(file: URL | null, warn: (text: string) => void) {
    this.#file = file;
    this.#warn = warn;
  }

  /** Reads the file. A line that is not a JSON string is left out. */
  async load(): Promise<void> {
    if (this.#file === null) return;
    let text = "";
    try {
      text = await Deno.readTextFile(this.#file);
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) this.#break(error);
    }
    const lines = text.split("\n");
    for (const line of lines.slice(-MAX_LINES - 1)) {
      const message = parsed(line);
      if (message !== null) this.#put(message);
    }
    if (lines.length > 2 * MAX_LINES) await this.#write(lines.slice(-MAX_LINES - 1).join("\n"), false);
  }

  /** Adds a message, unless it is the last one again. */
  async add(message: string): Promise<void> {
    if (this.lines[0] === message) return;
    this.#put(message);
    await this.#write(`${JSON.stringify(message)}\n`, true);
  }

  async #write(text: string, append: boolean): Promise<void> {
    if (this.#file === null || this.#is_broken) return;
    try {
      await Deno.mkdir(new URL(".", this.#file), { recursive: true });
      await Deno.writeTextFile(this.#file, text, { append, mode: 0o600 });
    } catch (error) {
      this.#break(error);
    }
  }

  #put(message: string): void {
    this.lines.unshift(message);
    this.lines.length = Math.min(this.lines.length, MAX_LINES);
  }

  #break(error: unknown): void {
    this.#is_broken = true;
    this.#warn(`The history of messages is not kept: ${errorMessage(error)}`);
  }
}

function parsed(line: string): string | null {
  try {
    const message: unknown = JSON.parse(line);
    return typeof message === "string" ? message : null;
  } catch {
    return null; // another program wrote it, or a write was cut
  }
}
