/**
 * Input of a terminal with keys and colours. The terminal is in raw mode only while the input line or a
 * question is open; otherwise it edits lines itself, and Ctrl-C is a signal.
 */
import process from "node:process";
import readline from "node:readline";
import { PassThrough } from "node:stream";
import type { Choice, PersonInput, Typed } from "../terminal/line_input.ts";
import { joinLines } from "../terminal/line_input.ts";
import type { InputHistory } from "./history.ts";

/** Turn on and off the marks that a terminal puts around pasted text. */
const PASTE_MARKS = { on: "\x1b[?2004h", off: "\x1b[?2004l" };

/** Choices that are displayed at once; of more, the person types a part. */
const MOST_SHOWN = 12;

/** Prompts of the input line, and of its further lines. */
export interface Prompts {
  readonly first: string;
  readonly next: string;
}

/**
 * The keys for one input line or question, as the input of a library. A library pauses its input, and until
 * Deno 2.9 a stdin that is paused loses its next key.
 */
class Keys extends PassThrough {
  readonly isTTY = true;
  isRaw = false;
  /** Whether text was typed, and not only keys that choose: it belongs to a message, not to a question. */
  has_text = false;

  /** Receives what was typed. */
  type(text: string): void {
    this.has_text ||= /^\P{Cc}/u.test(text) && !/^[hjkl]$/.test(text);
    this.write(text);
  }

  setRawMode(is_raw: boolean): this {
    Deno.stdin.setRaw(is_raw);
    this.isRaw = is_raw;
    return this;
  }
}

/** Reads from the terminal of this process. */
export class TerminalInput implements PersonInput {
  readonly asks = true;
  readonly #history: InputHistory;
  readonly #prompts: Prompts;
  /** The open input line or question. */
  #keys: Keys | null = null;
  /** What receives the lines that are typed while the agent works. */
  #take: ((line: string) => void) | null = null;
  /** What was typed when nothing received it, or is not a whole line yet. */
  #typed = "";
  #is_reading = false;
  #has_ended = false;

  constructor(history: InputHistory, prompts: Prompts) {
    this.#history = history;
    this.#prompts = prompts;
  }

  /** Reads stdin to its end. One read is always pending, and each line is given before the next one. */
  async #readStdin(): Promise<void> {
    if (this.#is_reading) return;
    this.#is_reading = true;
    const decoder = new TextDecoder();
    const chunk = new Uint8Array(4096);
    for (let count = await Deno.stdin.read(chunk); count !== null; count = await Deno.stdin.read(chunk)) {
      const text = decoder.decode(chunk.subarray(0, count), { stream: true });
      for (const piece of text.split(/(?<=[\r\n])/)) {
        this.#typed += piece;
        this.#deliver();
        await new Promise((next) => setTimeout(next)); // a line may open or close a question
      }
    }
    this.#has_ended = true;
    this.#keys?.end();
  }

  #deliver(): void {
    if (this.#keys !== null) {
      const text = this.#typed;
      this.#typed = "";
      if (text !== "") this.#keys.type(text);
    } else if (this.#take !== null) {
      const lines = this.#typed.split("\n");
      this.#typed = lines.pop() ?? "";
      for (const line of lines) this.#take(line.replace(/\r$/, ""));
    }
  }

  /** Opens the keys for a library until the function that it is given to has ended. */
  async #withKeys<Result>(use: (keys: Keys) => Promise<Result>): Promise<Result> {
    const keys = this.#keys = new Keys();
    if (this.#has_ended) keys.end();
    this.#readStdin().catch((error) => keys.destroy(error));
    try {
      return await use(keys);
    } finally {
      this.#keys = null;
      if (keys.isRaw) keys.setRawMode(false);
    }
  }

  async read(): Promise<Typed> {
    const typed = await this.#withKeys((keys) => {
      const message = this.#readLines(keys);
      this.#deliver(); // what was typed before
      return message;
    });
    if (typeof typed === "object" && typed.text.trim() !== "") await this.#history.add(typed.text);
    return typed;
  }

  /** Opens the input line until a message is complete. */
  #readLines(keys: Keys): Promise<Typed> {
    const { stdout } = process;
    const { promise, resolve } = Promise.withResolvers<Typed>();
    const lines: string[] = [];
    let is_pasting = false;
    const editor = readline.createInterface({
      input: keys,
      output: stdout,
      terminal: true,
      prompt: this.#prompts.first,
      history: [...this.#history.lines],
      historySize: this.#history.lines.length + 1,
    });
    const close = (typed: Typed) => {
      keys.off("keypress", onKey);
      stdout.write(PASTE_MARKS.off);
      resolve(typed); // before `close`, which resolves to the end of the input
      editor.close();
    };
    const onKey = (_text: string | undefined, key: { name?: string } | undefined) => {
      if (key?.name === "paste-start") is_pasting = true;
      if (key?.name === "paste-end") is_pasting = false;
    };
    const again = (prompt: string) => {
      editor.setPrompt(prompt);
      editor.prompt();
    };
    editor.on("line", (line: string) => {
      lines.push(line);
      const { text, continues } = joinLines(lines);
      if (continues || is_pasting) again(this.#prompts.next);
      else close({ text });
    });
    editor.on("SIGINT", () => {
      if (lines.length === 0 && editor.line === "") return close("interrupt");
      lines.length = 0;
      stdout.write("\n");
      editor.write(null, { ctrl: true, name: "e" });
      editor.write(null, { ctrl: true, name: "u" });
      again(this.#prompts.first);
    });
    editor.on("close", () => close("end"));
    keys.on("keypress", onKey);
    stdout.write(PASTE_MARKS.on);
    editor.prompt();
    return promise;
  }

  listen(take: (line: string) => void): () => void {
    this.#take = take;
    this.#deliver();
    this.#readStdin().catch(() => {}); // the next input line reports it
    return () => this.#take = null;
  }

  async choose<Value>(
    message: string,
    choices: readonly Choice<Value>[],
    signal?: AbortSignal,
  ): Promise<Value | null> {
    const { autocomplete, select } = await import("@clack/prompts");
    const options = choices.map(({ label, hint }, value) =>
      hint === undefined ? { value, label } : { value, label, hint }
    );
    if (choices.length > MOST_SHOWN) { // a list to search, such as that of all models
      const found = await this.#withKeys((input) =>
        autocomplete<number>({ ...common(signal), input, message, options, maxItems: MOST_SHOWN })
      );
      return typeof found === "number" ? choices[found]?.value ?? null : null;
    }
    while (true) {
      let has_text = false;
      const chosen = await this.#withKeys(async (input) => {
        const answer = await select<number>({ ...common(signal), input, message, options });
        has_text = input.has_text;
        return answer;
      });
      if (typeof chosen !== "number") return null;
      if (!has_text) return choices[chosen]?.value ?? null;
      process.stdout.write("That was text, and no answer. Choose with the arrow keys and Enter.\n");
    }
  }

  async line(message: string, signal?: AbortSignal): Promise<string | null> {
    const { text } = await import("@clack/prompts");
    const line = await this.#withKeys((input) => text({ ...common(signal), input, message }));
    return typeof line === "string" ? line : null;
  }
}

/** Returns the options of all questions. */
function common(signal: AbortSignal | undefined): { signal?: AbortSignal; withGuide: boolean } {
  return { withGuide: false, ...(signal ? { signal } : {}) };
}
