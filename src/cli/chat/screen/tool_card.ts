/** A call of a tool on the screen: one head, what it writes while it runs, its result. */
import { type Component, truncateToWidth, wrapTextWithAnsi } from "@earendil-works/pi-tui";
import type { Entry } from "../../../kernel/host.ts";
import { printable, UNFINISHED } from "../../terminal/answer_writer.ts";
import type { Style } from "../../terminal/format.ts";
import { duration } from "../../terminal/progress_lines.ts";
import { callTitle, diffLine, resultText } from "../../terminal/tool_lines.ts";

/** Rows of what a tool writes, the last ones; of a result, the first ones; of a change. */
const OUTPUT_ROWS = 10, RESULT_ROWS = 8, DIFF_ROWS = 40;
/** Characters of an output that are kept for the screen; the log has all. */
const KEPT_CHARS = 200_000;
/** Calls that are shorter have no time. */
const SHOWN_MS = 1_000;

/** A call of a tool. */
export class ToolCard implements Component {
  readonly #style: Style;
  readonly #title: { name: string; subject: string };
  readonly #monotonic: () => number;
  #started: number;
  #ms = 0;
  #state: "waiting" | "running" | "done" | "failed" = "running";
  #text = "";
  /** What may be the first half of a pair. */
  #half = "";
  #has_output = false;
  #diff: string | null = null;
  #drawn: { width: number; lines: string[] } | null = null;

  constructor({ data }: Pick<Entry, "data">, style: Style, monotonic: () => number) {
    this.#style = style;
    this.#title = callTitle(data);
    this.#monotonic = monotonic;
    this.#started = monotonic();
  }

  /** Whether a person is asked about it: it is not shown, because the question shows it. */
  get is_waiting(): boolean {
    return this.#state === "waiting";
  }

  wait(): void {
    this.#state = "waiting";
  }

  /** Starts the time of the call, again after an approval. */
  start(): void {
    this.#state = "running";
    this.#started = this.#monotonic();
  }

  /** Adds what the tool has written. */
  add(text: string): void {
    this.#has_output = true;
    const all = this.#half + text;
    this.#half = UNFINISHED.exec(all)?.[0] ?? "";
    this.#write(all.slice(0, all.length - this.#half.length));
  }

  #write(text: string): void {
    // what follows a carriage return replaces its line
    this.#text = (this.#text + text.replaceAll("\r\n", "\n")).replace(/[^\n]*\r/g, "");
    const { length } = this.#text;
    if (length > 2 * KEPT_CHARS) {
      this.#text = this.#text.slice(this.#text.indexOf("\n", length - KEPT_CHARS) + 1);
    }
  }

  /** Ends the call with its result. `is_known`: the person has seen the change in the question about it. */
  end(entry: Entry, is_known: boolean): void {
    const { text, diff, failed } = resultText(entry);
    this.#close(failed ? "failed" : "done", text);
    this.#diff = is_known ? null : diff;
  }

  /** Ends a command of the person with its exit code. */
  exit(code: number): void {
    this.#close(code === 0 ? "done" : "failed", code === 0 ? this.#text : `${this.#text}(exit code ${code})`);
  }

  /** Ends a call that was broken off; what it has written stays. */
  stop(): void {
    this.#close("failed", `${this.#text}(stopped)`);
  }

  /** Ends a call that did not run. */
  deny(reason: string): void {
    this.#close("failed", reason);
    this.#ms = 0;
  }

  #close(state: "done" | "failed", text: string): void {
    this.#ms = this.#monotonic() - this.#started;
    this.#state = state;
    this.#text = text;
  }

  /** Returns the call as it is now, with all of its output. */
  whole(): Component {
    let drawn: { width: number; lines: string[] } | null = null;
    const render = (width: number) => {
      if (drawn?.width !== width) drawn = { width, lines: this.#lines(width, { is_whole: true }) };
      return drawn.lines;
    };
    return { render, invalidate() {} };
  }

  invalidate(): void {}

  render(width: number): string[] {
    if (this.is_waiting) return [];
    if (this.#drawn?.width !== width) this.#drawn = { width, lines: this.#lines(width, { is_whole: false }) };
    const { lines } = this.#drawn;
    if (this.#state === "running") this.#drawn = null; // its time grows
    return lines;
  }

  #lines(width: number, { is_whole }: { is_whole: boolean }): string[] {
    return [this.head(width), ...this.#body(width, is_whole)].map((line) => truncateToWidth(line, width));
  }

  /** Returns the first line. */
  head(width: number): string {
    const { bold, dim, green, red, yellow } = this.#style;
    const mark = this.#state === "running" ? yellow("●") : this.#state === "failed" ? red("✗") : green("●");
    const ms = this.#state === "running" ? this.#monotonic() - this.#started : this.#ms;
    const time = ms >= SHOWN_MS ? dim(` (${duration(ms)})`) : "";
    const { name, subject } = this.#title;
    return truncateToWidth(`${mark} ${bold(name)} ${subject}`.trimEnd(), Math.max(1, width - time.length)) +
      time;
  }

  #body(width: number, is_whole: boolean): string[] {
    const { dim, red } = this.#style;
    const is_tail = !is_whole && (this.#state === "running" || this.#has_output);
    const most = is_whole ? Infinity : is_tail ? OUTPUT_ROWS : RESULT_ROWS;
    const said = rowsOf(this.#text, width - 2, most, is_tail);
    const text = said.rows.map(this.#state === "failed" ? red : dim);
    const changed = rowsOf(this.#diff ?? "", width - 2, is_whole ? Infinity : DIFF_ROWS, false);
    const left = (count: number, where: string) =>
      count === 0 ? [] : [dim(`… ${count} ${where} lines (Ctrl-O shows all)`)];
    return [
      ...is_tail ? [...left(said.more, "earlier"), ...text] : [...text, ...left(said.more, "more")],
      ...changed.rows.map((row) => diffLine(row, this.#style)),
      ...left(changed.more, "more"),
    ].map((row) => `  ${row}`);
  }
}

/** Returns the first or the last rows of a text in a width, and how many lines are left out. */
function rowsOf(
  text: string,
  width: number,
  most: number,
  is_tail: boolean,
): { rows: string[]; more: number } {
  const trimmed = text.replace(/\s+$/, "");
  if (trimmed === "") return { rows: [], more: 0 };
  const lines = trimmed.split("\n");
  const columns = Math.max(1, width);
  const rows: string[] = [];
  let used = 0;
  for (; used < lines.length && rows.length < most; used++) {
    const line = lines[is_tail ? lines.length - 1 - used : used]!;
    const cut = line.slice(0, most * columns); // more has no place
    const wrapped = wrapTextWithAnsi(printable(cut).replaceAll("\t", "  "), columns);
    if (is_tail) rows.unshift(...wrapped);
    else rows.push(...wrapped);
  }
  const kept = most === Infinity ? rows : is_tail ? rows.slice(-most) : rows.slice(0, most);
  return { rows: kept, more: lines.length - used };
}
