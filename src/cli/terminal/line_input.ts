/**
 * What a person types: messages, lines while the agent works, answers to questions. Reads lines from a pipe
 * or a terminal; `src/cli/chat/screen` reads keys.
 */
import type { Io, Output } from "./io.ts";

/** A message; or why none is typed. */
export type Typed = { readonly text: string } | "interrupt" | "end";

/** One choice of a question. */
export interface Choice<Value> {
  readonly value: Value;
  readonly label: string;
  readonly hint?: string;
  /** A letter that a person may type for it. */
  readonly letter?: string;
}

/** Where messages and answers come from. */
export interface PersonInput {
  /** Whether there is a person who can be asked. */
  readonly asks: boolean;
  /** Resolves to the next message. */
  read(): Promise<Typed>;
  /** Calls `take` for each line that is typed until the returned function is called. */
  listen(take: (line: string) => void): () => void;
  /**
   * Calls `handler` when Ctrl-C is typed while no message is read, where it is a key and no signal. It
   * returns whether it stops something.
   */
  onInterrupt?(handler: () => boolean): void;
  /** Resolves to the value of a choice; null when the person leaves the question, or `signal` aborts. */
  choose<Value>(
    question: string,
    choices: readonly Choice<Value>[],
    signal?: AbortSignal,
  ): Promise<Value | null>;
  /** Resolves to one line; null when the person leaves the question, or `signal` aborts. */
  line(question: string, signal?: AbortSignal): Promise<string | null>;
}

/** A line that ends with this character continues in the next one. */
const CONTINUES = "\\";

/** Returns a message of lines, and whether it continues in the next line. */
function joinLines(lines: readonly string[]): { text: string; continues: boolean } {
  const continues = lines.at(-1)?.endsWith(CONTINUES) === true;
  const text = lines.map((line) => line.endsWith(CONTINUES) ? line.slice(0, -1) : line).join("\n");
  return { text, continues };
}

/** Lines of a pipe, where each message waits for its turn; or of a terminal without keys and colours. */
export class LineInput implements PersonInput {
  readonly asks: boolean;
  readonly #io: Pick<Io, "in">;
  readonly #output: Output;
  /** Receives the next lines; the last one that was added. */
  readonly #takers: ((line: string | null) => void)[] = [];
  readonly #waiting: (string | null)[] = [];
  #reading = false;

  /** @param output For questions; nothing is written where no one is asked. */
  constructor(io: Pick<Io, "in">, output: Output) {
    this.#io = io;
    this.#output = output;
    this.asks = io.in.terminal && output.terminal;
  }

  async read(): Promise<Typed> {
    const lines: string[] = [];
    while (true) {
      if (this.asks) this.#output.write(lines.length === 0 ? "> " : ". ");
      const line = await this.#next();
      if (line === null) return lines.length === 0 ? "end" : { text: joinLines(lines).text };
      lines.push(line);
      const { text, continues } = joinLines(lines);
      if (!continues) return { text };
    }
  }

  listen(take: (line: string) => void): () => void {
    if (!this.asks) return () => {}; // the lines of a pipe are messages, one after the other
    const taker = (line: string | null) => line === null ? this.#waiting.push(line) : take(line);
    this.#takers.push(taker);
    this.#pump();
    return () => void this.#takers.splice(this.#takers.indexOf(taker), 1);
  }

  async choose<Value>(
    question: string,
    choices: readonly Choice<Value>[],
    signal?: AbortSignal,
  ): Promise<Value | null> {
    const rows = choices.map(({ label, hint }, index) =>
      `  ${index + 1}) ${label}${hint === undefined ? "" : ` (${hint})`}\n`
    );
    this.#output.write(`${question}\n${rows.join("")}`);
    while (true) {
      const line = await this.line(`1-${choices.length}`, signal);
      if (line === null) return null;
      const typed = line.trim().toLowerCase();
      const chosen = choices.find(({ letter }, index) => typed === letter || typed === String(index + 1));
      if (chosen) return chosen.value;
    }
  }

  async line(question: string, signal?: AbortSignal): Promise<string | null> {
    this.#output.write(`${question} > `);
    const line = await this.#next(signal);
    if (line === null) this.#output.write("\n");
    return line;
  }

  /** Resolves to the next line; null at the end of the input and when `signal` aborts. */
  #next(signal?: AbortSignal): Promise<string | null> {
    if (signal?.aborted) return Promise.resolve(null);
    return new Promise((resolve) => {
      const settle = (line: string | null) => {
        const index = this.#takers.indexOf(settle);
        if (index >= 0) this.#takers.splice(index, 1);
        signal?.removeEventListener("abort", abort);
        resolve(line);
      };
      const abort = () => settle(null);
      signal?.addEventListener("abort", abort, { once: true });
      this.#takers.push(settle);
      this.#pump();
    });
  }

  /** Gives lines to the last taker as long as there is one. */
  async #pump(): Promise<void> {
    if (this.#reading) return;
    this.#reading = true;
    while (this.#takers.length > 0) {
      const line = this.#waiting.length > 0
        ? this.#waiting.shift()!
        : await this.#io.in.line(new AbortController().signal);
      const taker = this.#takers.at(-1);
      if (taker) taker(line);
      else this.#waiting.push(line);
      if (line === null) break;
    }
    this.#reading = false;
  }
}
