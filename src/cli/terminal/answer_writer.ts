/** Writes the answer of a run to stdout while the model writes it. Progress and questions go to stderr. */
import type { Entry } from "../../kernel/host.ts";
import { escapeUnprintable } from "../../text/escape.ts";
import type { Output } from "./io.ts";

/** Text between two text blocks of one response, as in the run's `output_text`. */
const BLOCK_SEPARATOR = "\n\n";

/** A character that cannot be written without the one that follows it. */
export const UNFINISHED = /[\r\ud800-\udbff]$/;

/** A writer that may leave the cursor in the middle of a line. */
export interface OpenLine {
  /** Whether the cursor is behind text that has no line end yet. */
  readonly open: boolean;
  /** Ends the line, if it is open. */
  breakLine(): void;
}

/**
 * Writes the text deltas of the run's own session; not its thinking, and not the text of sub-agents.
 *
 * On a terminal every text is written, also text before a tool call. Elsewhere stdout carries only the
 * answer: when the plan has tools, text is buffered until its response ends, because a tool call may follow
 * it.
 */
export class AnswerWriter implements OpenLine {
  readonly #output: Output;
  readonly #beforeWrite: () => void;
  /** Whether text is buffered until its response ends. */
  #holds = false;
  #request_id: unknown = null;
  /** Indexes of the current response's text blocks. */
  readonly #text_blocks = new Set<unknown>();
  #current_block: unknown = null;
  /** Text of the current response, joined as in `output_text`. */
  #text = "";
  /** Text of the previous response that was written. */
  #written_before = "";
  #unfinished = "";
  #open = false;

  /** @param beforeWrite Called before each write, to clear what is drawn on the same terminal. */
  constructor(output: Output, beforeWrite: () => void = () => {}) {
    this.#output = output;
    this.#beforeWrite = beforeWrite;
  }

  get open(): boolean {
    return this.#open;
  }

  /** Processes the next entry of the run's log. */
  take({ event, data, parent_id }: Entry): void {
    if (parent_id !== undefined) return;
    switch (event) {
      case "module:mounted":
        if (data.type === "tool") this.#holds = !this.#output.terminal;
        return;
      case "content_block:start":
        if (data.request_id !== this.#request_id) this.#startResponse(data.request_id);
        if (data.block_type === "text") this.#text_blocks.add(data.block_index);
        return;
      case "content_block:delta":
        if (this.#text_blocks.has(data.block_index) && typeof data.delta === "string") {
          this.#add(data.block_index, data.delta);
        }
        return;
      case "content_block:end":
      case "llm:stream_aborted":
        if (this.#output.terminal) this.breakLine();
        return;
      case "provider:response":
        if (data.tool_calls === true) this.#startResponse(null); // its text precedes tool calls
        return;
    }
  }

  breakLine(): void {
    this.#flush();
    if (this.#open) this.#print("\n");
  }

  /**
   * Writes the rest of the answer and ends its last line.
   * @param output_text The answer; null when the run ended without one: then the text that arrived is kept.
   */
  finish(output_text: string | null): void {
    const whole = output_text ?? this.#text;
    const written = this.#holds ? "" : this.#text || (whole === this.#written_before ? whole : "");
    if (!whole.startsWith(written)) this.breakLine();
    this.#write(whole.startsWith(written) ? whole.slice(written.length) : whole);
    this.#flush();
    if (this.#output.terminal || whole === "") this.breakLine();
    else this.#print("\n");
    this.#startResponse(null);
  }

  #startResponse(request_id: unknown): void {
    this.breakLine();
    this.#request_id = request_id;
    this.#text_blocks.clear();
    this.#written_before = this.#holds ? "" : this.#text;
    this.#text = "";
  }

  #add(block_index: unknown, delta: string): void {
    const is_next = this.#text !== "" && block_index !== this.#current_block;
    this.#current_block = block_index;
    const text = is_next ? BLOCK_SEPARATOR + delta : delta;
    this.#text += text;
    if (this.#holds) return;
    // on a terminal the previous block has already ended its line
    this.#write(is_next && !this.#open ? text.slice(1) : text);
  }

  #write(piece: string): void {
    const text = this.#unfinished + piece;
    this.#unfinished = UNFINISHED.exec(text)?.[0] ?? "";
    this.#print(text.slice(0, text.length - this.#unfinished.length));
  }

  #flush(): void {
    const rest = this.#unfinished;
    this.#unfinished = "";
    this.#print(rest);
  }

  #print(text: string): void {
    if (text === "") return;
    this.#beforeWrite();
    this.#output.write(this.#output.terminal ? printable(text) : text);
    this.#open = !text.endsWith("\n");
  }
}

/** Returns text with its control characters escaped, except line ends, tabs and the joiners inside emoji. */
export function printable(text: string): string {
  return text.replaceAll("\r\n", "\n").replace(/[^\n\t\u200c\u200d]+/g, escapeUnprintable);
}
