/** What a conversation needs of its display, and what all displays have in common. */
import type { Entry } from "../../kernel/host.ts";
import type { Run } from "../../runs/types.ts";
import { counted, type Style, wrapText } from "../terminal/format.ts";
import { callKey, dollars, duration, messageText } from "../terminal/progress_lines.ts";

/** The display of a conversation. */
export abstract class ChatView {
  abstract readonly style: Style;
  readonly #warnings = new Set<unknown>();
  /** Calls whose change the person saw in a question. */
  readonly #known = new Set<string>();

  /** Returns the width in columns. */
  abstract columns(): number;
  /** Writes a line. */
  abstract note(text: string): void;
  /** Writes what a command of the conversation answers: in a pipe it is output, as an answer is. */
  abstract say(text: string): void;
  /** Displays a message that is sent. */
  abstract message(text: string): void;
  /** Displays a message and an answer of an earlier conversation. */
  abstract pastMessage(text: string): void;
  abstract pastAnswer(text: string): void;
  /** Shows the model of the next answers. */
  abstract showModel(name: string): void;
  /** Ends the line of a Ctrl-C that the terminal has echoed. */
  abstract interrupted(): void;
  /** Keeps all text back while a question is displayed, until the returned function is called. */
  abstract hold(): () => void;
  /** Writes what a question is about, also while all other text is kept back. */
  abstract question(text: string): void;
  /** Displays a command that the person runs: what it writes, and its exit code. */
  abstract shellCommand(command: string): { add(text: string): void; end(code: number): void };
  /** Displays the next entry of a run's log. */
  abstract entry(entry: Entry): void;
  /** Ends the answer of a run, and displays its failure and what it took. */
  abstract end(run: Run): void;

  /** Writes a text on as many lines as the width needs. */
  wrap(text: string): void {
    for (const line of wrapText(text, this.columns())) this.note(line);
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

  /** Notes that the person has seen what a call of the run's own session would change. */
  know(session_id: string, tool_call_id: string | null): void {
    this.#known.add(callKey({ session_id, data: { tool_call_id } }));
  }

  /** Returns whether the person has seen what a call would change, by its `callKey`. */
  protected isKnown(key: string): boolean {
    return this.#known.has(key);
  }

  /** Returns the lines that end the answer of a run; warns of what the run warns of. */
  protected endLines({ status, stop_reason, error, warnings, ...run }: Run): string[] {
    for (const { message } of warnings) this.warn(message);
    const { dim, red, yellow } = this.style;
    const outcome = error !== null
      ? [`${red("error:")} ${messageText(`${error.message} (${error.code})`)}`]
      : status === "incomplete"
      ? [yellow(`incomplete: ${stop_reason}`)]
      : status === "completed"
      ? []
      : [yellow("stopped; what arrived stays in the conversation")];
    const { usage, created_at, ended_at, tool_call_count } = run;
    const facts = [
      ...(tool_call_count === 0 ? [] : [counted(tool_call_count, "tool call")]),
      `${usage.total_tokens.toLocaleString("en-US")} tokens`,
      ...(usage.cost_usd === null ? [] : [dollars(usage.cost_usd)]),
      ...(ended_at === null ? [] : [duration(Date.parse(ended_at) - Date.parse(created_at))]),
    ];
    return [...outcome, dim(facts.join(" · "))];
  }
}
