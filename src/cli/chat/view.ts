/** Displays the runs of a conversation: answers as they arrive, tools as they run, warnings, failures. */
import type { Entry } from "../../kernel/host.ts";
import type { Run } from "../../runs/types.ts";
import { AnswerWriter } from "../terminal/answer_writer.ts";
import { counted, type Style, styleOf, wrapText } from "../terminal/format.ts";
import type { Io } from "../terminal/io.ts";
import {
  callKey,
  dollars,
  duration,
  formatValue,
  messageText,
  ProgressLines,
} from "../terminal/progress_lines.ts";
import { HeldOutput, MarkdownOutput } from "./output.ts";
import { callLine, errorLines, resultLines } from "../terminal/tool_lines.ts";

/** The display of a conversation. */
export class ChatView {
  readonly style: Style;
  /** Everything but answers; on a terminal the same output as theirs. */
  readonly notes: HeldOutput;
  readonly #answers: HeldOutput;
  readonly #lines: ProgressLines;
  readonly #warnings = new Set<unknown>();
  /** Calls whose change the person saw in a question. */
  readonly #known = new Set<string>();
  readonly #started = new Map<string, number>();
  /** The call whose line is the last one. */
  #last_call = "";
  #answer: AnswerWriter;

  constructor(io: Io) {
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

  /** Writes a text on as many lines as the width needs. */
  wrap(text: string): void {
    for (const line of wrapText(text, this.notes.columns())) this.note(line);
  }

  /** Writes what a command of the conversation answers: in a pipe it is output, as an answer is. */
  say(text: string): void {
    this.#answer.breakLine();
    this.#answers.write(`${text}\n`);
    this.#last_call = "";
  }

  /**
   * Writes a warning once in the conversation.
   *
   * @param key Identifies the warning, whichever component reports it. Default: its text.
   */
  warn(text: string, key: unknown = text): void {
    if (this.#warnings.has(key)) return;
    this.#warnings.add(key);
    this.note(`${this.style.yellow("warning:")} ${messageText(text)}`);
  }

  error(text: string): void {
    this.note(`${this.style.red("error:")} ${messageText(text)}`);
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

  /** Notes that the person has seen what a call of the run's own session would change. */
  know(session_id: string, tool_call_id: string | null): void {
    this.#known.add(`${session_id} ${tool_call_id}`);
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
        this.#started.set(key, Date.parse(ts));
        return true;
      case "approval:granted":
        this.#started.set(key, Date.parse(ts)); // the time of a tool starts after the approval
        return false;
      case "tool:post":
      case "tool:error": {
        const lines = event === "tool:error" ? errorLines(shown) : resultLines(shown, this.#known.has(key));
        if (this.#last_call !== key) this.note(`${callLine(shown)} …`);
        const ms = Date.parse(ts) - (this.#started.get(key) ?? Date.parse(ts));
        if (ms >= 1000) lines.push(this.style.dim(`(${duration(ms)})`));
        lines.forEach((line) => this.note(`  ${line}`));
        return true;
      }
      default:
        return false;
    }
  }

  /** Ends the answer of a run, and displays its failure and what it took. */
  end(run: Run): void {
    const is_answered = run.status === "completed" || run.status === "incomplete";
    this.#answer.finish(is_answered && run.output_text !== "" ? run.output_text : null);
    this.#answer = this.#newAnswer();
    for (const { message } of run.warnings) this.warn(message);
    if (run.error !== null) this.error(`${run.error.message} (${run.error.code})`);
    else if (run.status === "incomplete") this.note(this.style.yellow(`incomplete: ${run.stop_reason}`));
    else if (run.status !== "completed") this.note(this.style.yellow(STOPPED));
    const { usage, created_at, ended_at, tool_call_count } = run;
    const facts = [
      ...(tool_call_count === 0 ? [] : [counted(tool_call_count, "tool call")]),
      `${usage.total_tokens.toLocaleString("en-US")} tokens`,
      ...(usage.cost_usd === null ? [] : [dollars(usage.cost_usd)]),
      ...(ended_at === null ? [] : [duration(Date.parse(ended_at) - Date.parse(created_at))]),
    ];
    this.note(this.style.dim(facts.join(" · ")));
  }
}

const STOPPED = "stopped; what arrived stays in the conversation";
