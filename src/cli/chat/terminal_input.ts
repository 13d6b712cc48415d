/**
 * Input of a terminal with keys and colours. The terminal is in raw mode only while the input line or a
 * question is open; otherwise it edits lines itself, and Ctrl-C is a signal.
 */
import process from "node:process";
import readline from "node:readline";
import type { ChatInput, Choice, Typed } from "./input.ts";
import { joinLines } from "./input.ts";
import type { InputHistory } from "./history.ts";

/** Turn on and off the marks that a terminal puts around pasted text. */
const PASTE_MARKS = { on: "\x1b[?2004h", off: "\x1b[?2004l" };

/** Prompts of the input line, and of its further lines. */
export interface Prompts {
  readonly first: string;
  readonly next: string;
}

/** Reads from the terminal of this process. */
export class TerminalInput implements ChatInput {
  readonly asks = true;
  readonly #history: InputHistory;
  readonly #prompts: Prompts;
  /** What receives the lines that are typed while the agent works. */
  #take: ((line: string) => void) | null = null;
  #unfinished = "";
  readonly #receive = (chunk: Uint8Array | string) => {
    this.#unfinished += typeof chunk === "string" ? chunk : new TextDecoder().decode(chunk);
    const lines = this.#unfinished.split("\n");
    this.#unfinished = lines.pop() ?? "";
    for (const line of lines) this.#take?.(line.replace(/\r$/, ""));
  };

  constructor(history: InputHistory, prompts: Prompts) {
    this.#history = history;
    this.#prompts = prompts;
  }

  async read(): Promise<Typed> {
    const typed = await this.#readLines();
    if (typeof typed === "object" && typed.text.trim() !== "") await this.#history.add(typed.text);
    return typed;
  }

  /** Opens the input line until a message is complete. */
  #readLines(): Promise<Typed> {
    const { stdin, stdout } = process;
    const { promise, resolve } = Promise.withResolvers<Typed>();
    const lines: string[] = [];
    let is_pasting = false;
    const editor = readline.createInterface({
      input: stdin,
      output: stdout,
      terminal: true,
      prompt: this.#prompts.first,
      history: [...this.#history.lines],
      historySize: this.#history.lines.length + 1,
    });
    const close = (typed: Typed) => {
      stdin.off("keypress", onKey);
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
    stdin.on("keypress", onKey);
    stdout.write(PASTE_MARKS.on);
    editor.prompt();
    return promise;
  }

  listen(take: (line: string) => void): () => void {
    this.#take = take;
    this.#resume();
    return () => {
      this.#take = null;
      this.#pause();
    };
  }

  #resume(): void {
    process.stdin.on("data", this.#receive);
    process.stdin.resume();
  }

  #pause(): void {
    process.stdin.off("data", this.#receive);
    process.stdin.pause();
  }

  async choose<Value>(
    message: string,
    choices: readonly Choice<Value>[],
    signal?: AbortSignal,
  ): Promise<Value | null> {
    const { select } = await import("@clack/prompts");
    const options = choices.map(({ label, hint }, value) =>
      hint === undefined ? { value, label } : { value, label, hint }
    );
    const chosen = await this.#ask(
      (common) => select<number>({ ...common, message, options, maxItems: 12 }),
      signal,
    );
    return typeof chosen === "number" ? choices[chosen]?.value ?? null : null;
  }

  async line(message: string, signal?: AbortSignal): Promise<string | null> {
    const { text } = await import("@clack/prompts");
    const line = await this.#ask((common) => text({ ...common, message }), signal);
    return typeof line === "string" ? line : null;
  }

  /** Opens a question; lines typed before it are not its answer. */
  async #ask<Answer>(
    open: (common: { signal?: AbortSignal; withGuide: boolean }) => Promise<Answer>,
    signal: AbortSignal | undefined,
  ): Promise<Answer> {
    const listens = this.#take !== null;
    if (listens) this.#pause();
    try {
      return await open({ withGuide: false, ...(signal ? { signal } : {}) });
    } finally {
      if (listens && this.#take !== null) this.#resume();
    }
  }
}
