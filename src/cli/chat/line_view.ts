/** Displays a conversation as lines, one after the other: in a pipe, and in a terminal without keys. */
import type { Entry } from "../../kernel/host.ts";
import type { Run } from "../../runs/types.ts";
import { AnswerWriter, printable } from "../terminal/answer_writer.ts";
import { type Style, styleOf } from "../terminal/format.ts";
import type { Io, Output } from "../terminal/io.ts";
import { callKey, duration, formatValue, messageText, ProgressLines } from "../terminal/progress_lines.ts";
import { callLine, MAX_RESULT_LINES, resultLine, resultLines } from "../terminal/tool_lines.ts";
import { HeldOutput, MarkdownOutput } from "./output.ts";
import { ChatView } from "./view.ts";

/** Characters of a line that is not complete. */
const MAX_LINE = 10_000;

/** The display of a conversation as lines. */
export class LineView extends ChatView {
  readonly style: Style;
  /** Everything but answers; on a terminal the same output as theirs. */
  readonly notes: HeldOutput;
  readonly #answers: HeldOutput;
  readonly #output: Output;
  readonly #lines: ProgressLines;
  readonly #started = new Map<string, number>();
  /** The call whose line is the last one. */
  #last_call = "";
  /** Lines that the last call has written, and the one that is not complete. */
  #live: { lines: string[]; open: string } = { lines: [], open: "" };
  #answer: AnswerWriter;

  constructor(io: Io) {
    super();
    this.#output = io.out;
    const together = io.out.terminal && io.err.terminal;
    this.#answers = new HeldOutput(io.out, together && io.env("TERM") !== "dumb");
    this.notes = together ? this.#answers : new HeldOutput(io.err, false);
    this.style = styleOf(this.notes);
    this.#lines = new ProgressLines(this.style, { answer_is_seen: true });
    this.#answer = this.#newAnswer();
  }

  #newAnswer(): AnswerWriter {
    return new AnswerWriter(new MarkdownOutput(this.#answers), () => this.#last_call = "");
  }

  /** Writes a line. */
  note(text: string): void {
    this.#answer.breakLine();
    this.notes.write(`${text}\n`);
    this.#last_call = "";
  }

  columns(): number {
    return this.notes.columns();
  }

  message(text: string): void {
    if (this.notes.terminal) this.#answers.write(`${this.style.bold(">")} ${messageText(text)}\n`);
  }

  /** Writes what a command of the conversation answers: in a pipe it is output, as an answer is. */
  say(text: string): void {
    this.#answer.breakLine();
    this.#answers.write(`${text}\n`);
    this.#last_call = "";
  }

  /** Ends the line of a Ctrl-C that the terminal has echoed. */
  interrupted(): void {
    if (this.#answer.open) this.#answer.breakLine();
    else if (this.notes.terminal) this.notes.write("\n");
  }

  /** Keeps all text back while a question is displayed, until the returned function is called. */
  hold(): () => void {
    this.#answer.breakLine();
    const outputs = new Set([this.#answers, this.notes]);
    const releases = [...outputs].map((output) => output.hold());
    return () => releases.forEach((release) => release());
  }

  pastMessage(text: string): void {
    this.note(`${this.style.bold(">")} ${messageText(text)}`);
  }

  pastAnswer(text: string): void {
    this.note(printable(text));
  }

  showModel(): void {} // it was said

  shellCommand(): { add(text: string): void; end(code: number): void } {
    return {
      add: (text) => this.#answers.write(printable(text)),
      end: (code) => this.note(this.style.dim(`(exit code ${code})`)),
    };
  }

  question(text: string): void {
    this.#output.write(text);
  }

  /** Displays the next entry of a run's log. */
  entry(entry: Entry): void {
    const { event, data, parent_id } = entry;
    this.#answer.take(entry);
    if (parent_id === undefined && this.#showCall(entry)) return;
    if (parent_id === undefined && !this.#answer.open) {
      if (event === "provider:request") this.#answers.status(`… ${formatValue(data.provider)}`);
      if (event === "content_block:start" && data.block_type === "thinking") {
        this.#answers.status("… thinking");
      }
    }
    if (event === "orchestrator:steering_injected") {
      return this.note(this.style.dim(`↪ read: ${formatValue(data.content)}`));
    }
    if (data.decided_by === "terminal") { // the person knows what they allowed
      const reason = typeof data.reason === "string" ? `: ${formatValue(data.reason)}` : "";
      if (event === "approval:denied") this.note(`  ${this.style.red(`denied${reason}`)}`);
      if (event === "approval:denied" || event === "approval:granted") return;
    }
    for (const line of this.#lines.of(entry)) this.note(line);
  }

  /** Displays the start or the result of a call. Returns false for another entry. */
  #showCall(entry: Entry): boolean {
    const { event, data, verdict, ts } = entry;
    const key = callKey(entry);
    const shown = { data, style: this.style, columns: this.notes.columns() };
    switch (event) {
      case "tool:pre":
        if (verdict?.action === "deny") return false;
        this.note(callLine(shown));
        this.#last_call = key;
        this.#live = { lines: [], open: "" };
        this.#started.set(key, Date.parse(ts));
        return true;
      case "approval:granted":
        this.#started.set(key, Date.parse(ts)); // the time of a tool starts after the approval
        return false;
      case "tool:output":
        if (this.#last_call === key) this.#showOutput(String(data.text));
        return true;
      case "tool:post":
      case "tool:error": {
        const lines = resultLines({ ...shown, event }, this.isKnown(key));
        if (this.#last_call !== key) this.note(`${callLine(shown)} …`);
        else if (this.#live.lines.every((line, at) => line === lines[at])) {
          lines.splice(0, this.#live.lines.length); // they are displayed
        }
        const ms = Date.parse(ts) - (this.#started.get(key) ?? Date.parse(ts));
        if (ms >= 1000) lines.push(this.style.dim(`(${duration(ms)})`));
        lines.forEach((line) => this.note(`  ${line}`));
        return true;
      }
      default:
        return false;
    }
  }

  /** Displays the first complete lines that a call writes while it runs. */
  #showOutput(text: string): void {
    const { lines, open } = this.#live;
    const [rest = "", ...complete] = (open + text).split("\n").toReversed();
    this.#live.open = rest.slice(-MAX_LINE); // it has no end yet
    for (const line of complete.toReversed()) {
      if (lines.length >= MAX_RESULT_LINES) return;
      const shown = this.style.dim(resultLine(line, this.notes.columns()));
      lines.push(shown);
      this.notes.write(`  ${shown}\n`);
    }
  }

  /** Ends the answer of a run, and displays its failure and what it took. */
  end(run: Run): void {
    const is_answered = run.status === "completed" || run.status === "incomplete";
    this.#answer.finish(is_answered && run.output_text !== "" ? run.output_text : null);
    this.#answer = this.#newAnswer();
    this.endLines(run).forEach((line) => this.note(line));
  }
}
