/** The output of a conversation: text that waits while a question is displayed, and styled Markdown. */
import { cutToWidth, styleOf } from "../terminal/format.ts";
import type { Output } from "../terminal/io.ts";

const CLEAR_LINE = "\r\x1b[2K";

/** An output whose text can be kept back, so that nothing is written into an open question. */
export class HeldOutput implements Output {
  readonly terminal: boolean;
  readonly color: boolean;
  readonly #output: Output;
  readonly #is_live: boolean;
  #holds = 0;
  #waiting = "";
  #has_status = false;

  /** @param is_live Whether a line can be replaced: the output is a terminal that is not dumb. */
  constructor(output: Output, is_live: boolean) {
    this.#output = output;
    this.#is_live = is_live;
    this.terminal = output.terminal;
    this.color = output.color;
  }

  columns(): number {
    return this.#output.columns();
  }

  write(text: string): void {
    if (text === "") return;
    if (this.#holds > 0) return void (this.#waiting += text);
    this.#clear();
    this.#output.write(text);
  }

  /** Displays a line that the next text replaces; only where a line can be replaced. */
  status(text: string): void {
    if (!this.#is_live || this.#holds > 0) return;
    this.#clear();
    this.#output.write(cutToWidth(text, this.columns() - 1));
    this.#has_status = true;
  }

  #clear(): void {
    if (this.#has_status) this.#output.write(CLEAR_LINE);
    this.#has_status = false;
  }

  /** Keeps text back until the returned function is called. */
  hold(): () => void {
    this.#clear();
    this.#holds++;
    return () => {
      if (--this.#holds > 0) return;
      const text = this.#waiting;
      this.#waiting = "";
      this.write(text);
    };
  }
}

/** Kinds of text in Markdown, which look different. */
type Kind = "plain" | "bold" | "code" | "fence";

/** What may still become a mark at the start of a line: a fence or a heading. */
const MAY_BE_MARK = /^ {0,3}(`{1,2}|#{1,6})?$/;
const FENCE = /^ {0,3}```/;
const HEADING = /^ {0,3}#{1,6} $/;

/**
 * Styles Markdown while it arrives: bold text and headings are bold, code has a colour. Only marks that may
 * continue are kept back. A parser such as marked needs whole blocks, so the first word would wait for the
 * last one. Without colours the text is written unchanged.
 */
export class MarkdownOutput implements Output {
  readonly terminal: boolean;
  readonly color: boolean;
  readonly #output: Output;
  readonly #paint: Readonly<Record<Kind, (text: string) => string>>;
  /** What may be the beginning of a mark. */
  #pending = "";
  #at_start = true;
  /** Whether the lines are those of a code block. */
  #is_fenced = false;
  /** Kind of the whole line; null: marks in the line decide. */
  #line: Kind | null = null;
  #is_bold = false;
  #is_code = false;

  constructor(output: Output) {
    this.#output = output;
    this.terminal = output.terminal;
    this.color = output.color;
    const { bold, cyan, dim } = styleOf(output);
    this.#paint = { plain: (text) => text, bold, code: cyan, fence: dim };
  }

  columns(): number {
    return this.#output.columns();
  }

  write(text: string): void {
    if (!this.color) return this.#output.write(text);
    const parts: { kind: Kind; text: string }[] = [];
    const add = (text: string, kind = this.#kind) => {
      const last = parts.at(-1);
      if (last?.kind === kind) last.text += text;
      else if (text !== "") parts.push({ kind, text });
    };
    for (const char of text) {
      if (char === "\n") this.#endLine(add);
      else this.#take(char, add);
    }
    this.#output.write(parts.map(({ kind, text }) => this.#paint[kind](text)).join(""));
  }

  get #kind(): Kind {
    return this.#line ?? (this.#is_code ? "code" : this.#is_bold ? "bold" : "plain");
  }

  #take(char: string, add: (text: string) => void): void {
    this.#pending += char;
    if (this.#at_start) {
      if (MAY_BE_MARK.test(this.#pending)) return;
      this.#at_start = false;
      if (FENCE.test(this.#pending)) this.#line = "fence";
      else if (this.#is_fenced) this.#line = "code";
      else if (HEADING.test(this.#pending)) this.#line = "bold";
    }
    if (this.#line === null && !this.#is_code && /^\*{1,2}$/.test(this.#pending)) return;
    this.#release(add);
  }

  /** Adds the pending text; marks in it change the kind of what follows. */
  #release(add: (text: string) => void): void {
    const text = this.#pending;
    this.#pending = "";
    if (this.#line !== null) return add(text);
    for (const part of text.split(/(\*\*(?=\S)|(?<=^)\*\*$|`)/)) {
      if (part === "`") this.#is_code = !this.#is_code;
      else if (part === "**" && !this.#is_code) this.#is_bold = !this.#is_bold;
      else if (part.startsWith("**") && this.#is_bold && !this.#is_code) {
        this.#is_bold = false; // white space follows the end of bold text
        add(part.slice(2));
      } else add(part);
    }
  }

  /** Ends a line. A mark without its counterpart ends with it. */
  #endLine(add: (text: string, kind?: Kind) => void): void {
    if (this.#at_start && this.#is_fenced) this.#line = "code";
    if (this.#pending !== "") this.#release(add);
    if (this.#line === "fence") this.#is_fenced = !this.#is_fenced;
    this.#at_start = true;
    this.#line = null;
    this.#is_bold = this.#is_code = false;
    add("\n", "plain");
  }
}
