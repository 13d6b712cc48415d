/**
 * The screen of a conversation, on the main screen of the terminal: the conversation above, which never
 * changes once it is complete and scrolls away as other text does; calls that run, questions, the input line
 * and a status line below it.
 */
import {
  type Component,
  Container,
  Editor,
  type Focusable,
  isKeyRelease,
  matchesKey,
  Spacer,
  Text,
  truncateToWidth,
  type TuiMainScreen,
} from "@earendil-works/pi-tui";
import {
  type Item,
  type NoticeItem,
  RunTranscript,
  type TextItem,
  textOf,
  type Thread,
  type ToolItem,
} from "../../../client/mod.ts";
import type { Entry } from "../../../kernel/host.ts";
import type { Run } from "../../../runs/types.ts";
import { errorMessage } from "../../../sdk/errors.ts";
import type { JsonObject } from "../../../sdk/json.ts";
import { sumCostUsd } from "../../../sdk/money.ts";
import { printable, UNFINISHED } from "../../terminal/answer_writer.ts";
import type { Style } from "../../terminal/format.ts";
import type { Choice, PersonInput, Typed } from "../../terminal/line_input.ts";
import { callKey, dollars, formatValue, messageText } from "../../terminal/progress_lines.ts";
import { callTitle } from "../../terminal/tool_lines.ts";
import type { InputHistory } from "../history.ts";
import { type CommandName, isCommand } from "../slash_commands.ts";
import { ChatView } from "../view.ts";
import { Answer } from "./answer.ts";
import { Completion } from "./completion.ts";
import { type Asking, FilteredList, LineQuestion, MOST_CHOICES, Question, REST_MS } from "./question.ts";
import { RunningCalls } from "./running_calls.ts";
import { FRAME_MS, StatusLine } from "./status_line.ts";
import { editorTheme, markdownTheme } from "./style.ts";
import { ToolCard } from "./tool_card.ts";

/** Parts of the conversation that are drawn again in another width; older ones are in the scrollback only. */
const MOST_PARTS = 200;
/** Rows of the window besides the input line, questions, and what still changes. */
const OTHER_ROWS = 4;
/** Lines of a message that are shown; the history and the model have all. */
const MESSAGE_LINES = 20;
/** Messages that wait and are shown above the input line. */
const WAITING_LINES = 3;
/** Milliseconds without a key after which the files of a message are looked at. */
const DESCRIBE_MS = 150;
const BELL = "\x07";

/** Options of a screen. */
export interface ChatScreenOptions {
  readonly tui: TuiMainScreen;
  readonly style: Style;
  readonly history: InputHistory;
  readonly commands: readonly CommandName[];
  /** Path of the folder of `@file`, ending in a slash. */
  readonly folder: string;
  /** Resolves to the size of what goes along with a message that is typed; empty: nothing does. */
  describe(text: string): Promise<string>;
  monotonic(): number;
}

/** The conversation, its input line and its questions. */
export class ChatScreen extends ChatView implements PersonInput {
  readonly asks = true;
  readonly style: Style;
  readonly #tui: TuiMainScreen;
  readonly #history: InputHistory;
  readonly #monotonic: () => number;
  readonly #conversation = new Container();
  readonly #calls: RunningCalls;
  readonly #lower = new Container();
  readonly #editor: Editor;
  readonly #status: StatusLine;
  #run_id = "";
  #transcript = new RunTranscript();
  /** Key of a text → how much of it is drawn; calls that are a part of the conversation. */
  readonly #drawn = new Map<string, number>();
  readonly #ended = new Set<string>();
  /** The text that the answer draws, and the last line if it is an error. */
  #open_text = "";
  #last_error: string | null = null;
  /** The answer that grows; null: the next text begins one. */
  #answer: Answer | null = null;
  /** The call that ended last. */
  #last_call: ToolCard | null = null;
  /** Whether the last part is a line that a further line joins. */
  #ends_in_note = false;
  /** Messages that nothing has taken. */
  readonly #typed: string[] = [];
  /** Messages that the agent has not read. */
  #unread: string[] = [];
  #reader: ((typed: Typed) => void) | null = null;
  #take: ((line: string) => void) | null = null;
  /** Leaves the open question; null: none is open. */
  #leaveQuestion: (() => void) | null = null;
  #interrupt: () => boolean = () => false;
  /** Whether Ctrl-C was pressed while nothing ran and no message was read: the next reading gets it. */
  #is_interrupted = false;
  #has_ended = false;
  #timer: ReturnType<typeof setInterval> | undefined;
  #describing: ReturnType<typeof setTimeout> | undefined;
  #resting: ReturnType<typeof setTimeout> | undefined;
  #cost_usd: string | null = null;

  constructor({ tui, style, history, commands, folder, describe, monotonic }: ChatScreenOptions) {
    super();
    this.style = style;
    this.#tui = tui;
    this.#history = history;
    this.#monotonic = monotonic;
    this.#calls = new RunningCalls(() => this.#room());
    this.#status = new StatusLine(style, monotonic);
    this.#editor = new Editor(tui, editorTheme(style), { autocompleteMaxVisible: 8 });
    this.#editor.setAutocompleteProvider(new Completion(commands, folder));
    this.#editor.onSubmit = (text) => this.#submit(text);
    this.#editor.onChange = (text) => this.#describeSoon(text, describe);
    for (const message of history.lines.toReversed()) this.#editor.addToHistory(message);
    this.#lower.addChild(this.#editor);
    for (const part of [this.#conversation, this.#calls, this.#lower, this.#status]) tui.addChild(part);
    tui.setFocus(this.#editor);
    tui.addInputListener((data) => this.#key(data) ? { consume: true } : undefined);
  }

  /** Draws the screen until it is closed. */
  open(): void {
    this.#tui.start();
  }

  /** Leaves the conversation on the terminal, and nothing else. */
  close(): void {
    if (this.#has_ended) return;
    this.#stopSpinner();
    clearTimeout(this.#describing);
    clearTimeout(this.#resting);
    this.#has_ended = true;
    this.#endAnswer();
    this.#tui.children = [this.#conversation, new Spacer(1)]; // the library writes a space into the last line
    this.#tui.renderNow();
    this.#tui.stop();
  }

  columns(): number {
    return this.#tui.terminal.columns;
  }

  // --- what is displayed

  #add(part: Component, is_note = false): void {
    this.#endAnswer();
    const { children } = this.#conversation;
    if (children.length > 0 && !(is_note && this.#ends_in_note)) this.#conversation.addChild(new Spacer(1));
    this.#ends_in_note = is_note;
    this.#conversation.addChild(part);
    this.#tui.requestRender();
  }

  note(text: string): void {
    this.#add(new Text(text, 0, 0), true);
  }

  say(text: string): void {
    this.#add(new Text(text, 0, 0), true);
  }

  message(text: string): void {
    this.#add(this.#messagePart(text, ">"));
    this.#unread = this.#unread.filter((waiting) => waiting !== text);
    this.#showUnread();
    if (!isCommand(text)) this.#startSpinner();
  }

  #messagePart(text: string, mark: string): Component {
    const { bold, cyan, dim } = this.style;
    const lines = printable(text).split("\n");
    const left = lines.length - MESSAGE_LINES;
    const shown = left > 1 ? [...lines.slice(0, MESSAGE_LINES), dim(`… ${left} more lines`)] : lines;
    return new Text(`${bold(cyan(mark))} ${shown.map(bold).join("\n")}`, 0, 0);
  }

  interrupted(): void {}

  hold(): () => void {
    return () => {};
  }

  question(text: string): void {
    this.#add(new Text(text.trimEnd(), 0, 0));
  }

  entry(entry: Entry): void {
    if (entry.run_id !== this.#run_id) {
      this.#run_id = entry.run_id;
      this.#transcript = new RunTranscript();
      this.#drawn.clear();
      this.#ended.clear();
    }
    const transcript = this.#transcript;
    const changed = transcript.add([entry]);
    if (entry.parent_id === undefined) this.#showEvent(entry);
    for (const item of changed) {
      if (!("kind" in item)) this.#dropVoid(item);
      else if (transcript.thread!.items.lastIndexOf(item) >= 0) this.#showItem(item, entry); // it has entries
      else this.#showInner(item);
    }
    const { context_tokens, context_budget } = transcript;
    if (context_budget) this.#showShare(context_tokens, context_budget);
    this.#tui.requestRender();
  }

  /** Displays what is no part of a transcript: activity, what a tool writes, which text the agent read. */
  #showEvent(entry: Entry): void {
    const { event, data } = entry;
    const card = this.#calls.get(callKey(entry));
    if (event === "provider:request") this.#status.doing(`waiting for ${formatValue(data.provider)}`);
    else if (event === "llm:request" && typeof data.model === "string") {
      this.#status.set({ model: formatValue(`${data.provider}/${data.model}`) });
    } else if (event === "tool:output") card?.add(String(data.text));
    else if (event === "user:notification") card?.add(`${messageText(data.message)}\n`);
    else if (event === "orchestrator:steering_injected") {
      const text = String(data.content);
      this.#unread = this.#unread.filter((waiting) => waiting !== text);
      this.#showUnread();
      this.#add(this.#messagePart(text, "↪"));
    }
  }

  #showItem(item: Item, entry: Entry): void {
    if (item.kind === "text") return this.#showText(item);
    if (item.kind === "tool") return this.#showCall(item, entry);
    if (item.kind === "thinking") return this.#status.doing("thinking");
    if (item.kind !== "notice") return; // what was typed is displayed where it is sent or read
    if (entry.event === "module:skipped") return; // the run warns of it
    const is_progress = entry.event === "user:notification" &&
      this.#calls.get(callKey(entry));
    if (!is_progress) this.#showNotice(item);
  }

  #showNotice({ level, text }: NoticeItem): void {
    const { dim, red, yellow } = this.style;
    this.#last_error = level === "error" ? text : null;
    if (level === "info") this.note(dim(messageText(text)));
    else this.note(`${level === "error" ? red("error:") : yellow("warning:")} ${messageText(text)}`);
  }

  /** Adds what has arrived of a text; half of a pair waits for its other half. */
  #showText({ key, text, done }: TextItem): void {
    this.#status.doing("writing");
    const from = this.#drawn.get(key) ?? 0;
    const half = done ? 0 : UNFINISHED.exec(text)?.[0].length ?? 0;
    const to = text.length - half;
    if (to > from) {
      if (this.#open_text !== key) this.#endAnswer();
      this.#open_text = key;
      this.#drawn.set(key, to);
      this.#write(printable(text.slice(from, to)));
    }
  }

  /** Ends a text that its model is asked for again. */
  #dropVoid({ items }: Thread): void {
    if (this.#answer === null || items.some(({ key }) => key === this.#open_text)) return;
    this.note(this.style.dim("(that text is void: the model is asked again)"));
  }

  #showCall(item: ToolItem, entry: Entry): void {
    if (item.phase === "writing" || this.#ended.has(item.key)) return;
    const key = callKey({ session_id: entry.session_id, data: { tool_call_id: item.call_id } });
    let card = this.#calls.get(key);
    if (!card) {
      const data = { tool_name: item.name, tool_input: item.input as JsonObject };
      this.#calls.set(key, card = new ToolCard({ data }, this.style, this.#monotonic));
    }
    if (item.phase === "asking") {
      card.wait();
      return this.#status.doing("waiting for you");
    }
    if (item.phase === "running") {
      if (card.is_waiting) card.start();
      return this.#status.doing(formatValue(item.name));
    }
    const { event } = entry;
    if (event === "tool:post" || event === "tool:error") card.end(entry, this.isKnown(key));
    else if (item.phase === "stopped") card.stop();
    else if (item.phase === "denied") card.deny(deniedText(item));
    else card.deny(textOf(item.result));
    this.#ended.add(item.key);
    this.#calls.delete(key);
    this.#last_call = card;
    this.#add(card);
    this.#status.doing("working");
  }

  /** Displays the calls and the failures of a sub-agent, one line each. */
  #showInner(item: Item): void {
    if (item.kind === "notice" && item.level !== "info") return this.#showNotice(item);
    if (item.kind !== "tool" || item.ended === null || this.#ended.has(item.key)) return;
    this.#ended.add(item.key);
    const { dim, green, red } = this.style;
    const { name, subject } = callTitle({ tool_name: item.name, tool_input: item.input as JsonObject });
    const mark = item.phase === "done" ? green("●") : red("✗");
    this.note(`  ${mark} ${dim(`${name} ${subject}`.trimEnd())}`);
  }

  end(run: Run): void {
    const last = this.#transcript.thread?.items.findLast(({ kind }) => kind === "text");
    const said = last && "text" in last ? last.text.trim() : "";
    const is_answered = run.status === "completed" || run.status === "incomplete";
    if (is_answered && run.output_text.trim() !== "" && !(said !== "" && run.output_text.includes(said))) {
      this.#endAnswer();
      this.#write(printable(run.output_text)); // of a loop whose answer no model has written
    }
    this.#endAnswer();
    for (const card of this.#calls.takeAll()) {
      card.stop();
      this.#add(card);
    }
    const lines = this.endLines(run);
    const is_said = run.error !== null && run.error.message === this.#last_error;
    (is_said ? lines.slice(1) : lines).forEach((line) => this.note(line));
    if (run.usage.cost_usd !== null) this.#cost_usd = sumCostUsd([this.#cost_usd, run.usage.cost_usd]);
    this.#showShare(run.context.tokens, run.context.budget);
    this.#status.set({ cost: this.#cost_usd === null ? "" : dollars(this.#cost_usd) });
    this.#forgetOldest();
  }

  #showShare(tokens: number, budget: number): void {
    if (budget > 0) {
      this.#status.set({ context: `context ${Math.min(100, Math.round(100 * tokens / budget))} %` });
    }
  }

  shellCommand(command: string): { add(text: string): void; end(code: number): void } {
    const data = { tool_name: "!", tool_input: { command } };
    const card = new ToolCard({ data }, this.style, this.#monotonic);
    this.#calls.set("!", card);
    return {
      add: (text) => {
        card.add(text);
        this.#tui.requestRender();
      },
      end: (code) => {
        card.exit(code);
        this.#calls.delete("!");
        this.#last_call = card;
        this.#add(card);
      },
    };
  }

  showModel(name: string): void {
    this.#status.set({ model: printable(name) });
    this.#tui.requestRender();
  }

  pastMessage(text: string): void {
    this.#add(this.#messagePart(text, ">"));
  }

  pastAnswer(text: string): void {
    const answer = new Answer(markdownTheme(this.style));
    answer.add(printable(text));
    answer.end();
    this.#add(answer);
  }

  /** Adds printable text to the answer. */
  #write(text: string): void {
    if (this.#answer === null) {
      if (text.trim() === "") return;
      const answer = new Answer(markdownTheme(this.style), () => this.#room());
      this.#add(answer);
      this.#answer = answer;
    }
    this.#answer.add(text);
    this.#tui.requestRender();
  }

  /** Returns the rows that are left for what still changes: a line above the window cannot be drawn again. */
  #room(): number {
    const { columns, rows } = this.#tui.terminal;
    return Math.max(3, rows - this.#lower.render(columns).length - OTHER_ROWS);
  }

  #endAnswer(): void {
    this.#answer?.end();
    this.#answer = null;
  }

  /** Forgets the oldest parts, as long as more than a window is left: they are in the scrollback. */
  #forgetOldest(): void {
    const { children } = this.#conversation;
    if (children.length <= MOST_PARTS) return;
    this.#tui.renderNow(); // what is new is drawn before
    const { columns, rows } = this.#tui.terminal;
    let lines = this.#conversation.render(columns).length;
    const before = children.length;
    while (children.length > MOST_PARTS / 2) {
      lines -= children[0]!.render(columns).length; // there are more
      if (lines < 2 * rows) break;
      children.shift();
    }
    if (children.length < before) this.#tui.renderNow(true);
  }

  // --- what is typed

  #submit(text: string): void {
    if (text.trim() === "") return;
    this.#editor.addToHistory(text);
    void this.#history.add(text);
    if (this.#reader) return this.#deliver(this.#reader, text);
    if (this.#take) {
      this.#unread.push(text);
      this.#showUnread();
      return this.#take(text);
    }
    this.#typed.push(text);
  }

  /** Says in the status line what goes along with the message, before it is sent. */
  #describeSoon(text: string, describe: ChatScreenOptions["describe"]): void {
    clearTimeout(this.#describing);
    if (!text.includes("@")) return this.#status.set({ attached: "" });
    this.#describing = setTimeout(async () => {
      const attached = await describe(text).catch((error) => errorMessage(error));
      if (this.#editor.getText() !== text) return;
      this.#status.set({ attached: printable(attached) });
      this.#tui.requestRender();
    }, DESCRIBE_MS);
  }

  #deliver(reader: (typed: Typed) => void, text: string): void {
    this.#reader = null;
    this.message(text);
    reader({ text });
  }

  #showUnread(): void {
    const { dim } = this.style;
    const shown = this.#unread.slice(-WAITING_LINES).map((text) =>
      new CutLine(dim(`↪ ${printable(text).replaceAll("\n", " ⏎ ")}`))
    );
    const others = this.#lower.children.filter((part) => !(part instanceof CutLine));
    this.#lower.children = [...shown, ...others];
    this.#tui.requestRender();
  }

  read(): Promise<Typed> {
    this.#stopSpinner();
    if (this.#has_ended) return Promise.resolve("end");
    this.#unread = [];
    this.#showUnread();
    if (this.#is_interrupted) {
      this.#is_interrupted = false;
      return Promise.resolve("interrupt");
    }
    return new Promise((resolve) => {
      const typed = this.#typed.shift();
      if (typed === undefined) this.#reader = resolve;
      else this.#deliver(resolve, typed);
    });
  }

  listen(take: (line: string) => void): () => void {
    this.#take = take;
    for (const text of this.#typed.splice(0)) {
      this.#unread.push(text);
      take(text);
    }
    this.#showUnread();
    return () => this.#take = null;
  }

  onInterrupt(handler: () => boolean): void {
    this.#interrupt = handler;
  }

  #key(data: string): boolean {
    if (isKeyRelease(data)) return false;
    if (matchesKey(data, "ctrl+c")) {
      if (this.#leaveQuestion) this.#leaveQuestion();
      else if (!this.#reader) this.#is_interrupted = !this.#interrupt();
      else if (this.#editor.getText() !== "") this.#editor.setText("");
      else this.#resolveReader("interrupt");
      this.#tui.requestRender();
      return true;
    }
    if (matchesKey(data, "ctrl+d") && this.#editor.getText() === "" && this.#reader) {
      this.#resolveReader("end");
      return true;
    }
    if (matchesKey(data, "ctrl+r") && !this.#leaveQuestion) {
      void this.#searchHistory();
      return true;
    }
    if (matchesKey(data, "ctrl+o")) {
      const card = this.#calls.newest() ?? this.#last_call;
      if (card) this.#add(card.whole()); // at the end: what is above the window cannot be drawn again
      return true;
    }
    if (matchesKey(data, "ctrl+z") && Deno.build.os !== "windows") {
      this.#suspend();
      return true;
    }
    return false;
  }

  #resolveReader(typed: Typed): void {
    const reader = this.#reader;
    this.#reader = null;
    reader?.(typed);
  }

  async #searchHistory(): Promise<void> {
    const messages = [...new Set(this.#history.lines)];
    const choices = messages.map((text) => ({ value: text, label: printable(text).replaceAll("\n", " ⏎ ") }));
    const found = await this.#ask<string>(
      undefined,
      (deps) => new FilteredList("Earlier messages", choices, deps),
    );
    if (found !== null) this.#editor.setText(found);
  }

  #suspend(): void {
    this.#tui.stop();
    const again = () => {
      Deno.removeSignalListener("SIGCONT", again);
      this.#tui.start();
      this.#tui.requestRender(true);
    };
    Deno.addSignalListener("SIGCONT", again);
    Deno.kill(Deno.pid, "SIGTSTP");
  }

  // --- questions

  choose<Value>(
    message: string,
    choices: readonly Choice<Value>[],
    signal?: AbortSignal,
  ): Promise<Value | null> {
    if (this.#take !== null) this.#tui.terminal.write(BELL); // someone is waited for
    this.#drawAfterRest();
    return this.#ask<Value>(
      signal,
      (deps) =>
        choices.length > MOST_CHOICES && this.#take === null // the first of a list is chosen: not for the agent
          ? new FilteredList(message, choices, deps)
          : new Question(message, choices, {
            ...deps,
            monotonic: this.#monotonic,
            hasDraft: () => this.#editor.getText() !== "",
            other: (data) => {
              this.#editor.handleInput(data);
              this.#drawAfterRest();
            },
          }),
    );
  }

  /** Draws the question again when it takes keys. */
  #drawAfterRest(): void {
    clearTimeout(this.#resting);
    this.#resting = setTimeout(() => this.#tui.requestRender(), REST_MS + FRAME_MS);
  }

  line(message: string, signal?: AbortSignal): Promise<string | null> {
    return this.#ask<string>(signal, (deps) => new LineQuestion(message, deps));
  }

  /** Displays a question above the input line until it is answered, left, or not needed any more. */
  #ask<Value>(
    signal: AbortSignal | undefined,
    make: (deps: Asking<Value>) => Component,
  ): Promise<Value | null> {
    if (signal?.aborted) return Promise.resolve(null);
    return new Promise((resolve) => {
      const answer = (value: Value | null) => {
        signal?.removeEventListener("abort", leave);
        this.#leaveQuestion = null;
        this.#lower.removeChild(part);
        this.#tui.setFocus(this.#editor);
        this.#tui.requestRender();
        resolve(value);
      };
      const leave = () => answer(null);
      const part = make({ style: this.style, mostRows: () => this.#questionRows(), answer });
      signal?.addEventListener("abort", leave, { once: true });
      this.#leaveQuestion = leave;
      this.#lower.children.unshift(part);
      this.#tui.setFocus(part as Component & Partial<Focusable>);
      this.#tui.requestRender();
    });
  }

  /** Returns the rows that are left for a question, beside the input line and what the agent does. */
  #questionRows(): number {
    const { columns, rows } = this.#tui.terminal;
    const others = this.#lower.children.filter((part) => part === this.#editor || part instanceof CutLine);
    return Math.max(3, rows - others.flatMap((part) => part.render(columns)).length - OTHER_ROWS);
  }

  // --- activity

  #startSpinner(): void {
    this.#status.doing("working");
    this.#timer ??= setInterval(() => this.#tui.requestRender(), FRAME_MS);
  }

  #stopSpinner(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#status.doing(null);
    this.#tui.requestRender();
  }
}

/** Returns why a call was not made. */
function deniedText({ question, result }: ToolItem): string {
  const reason = question?.reason ?? result;
  return typeof reason === "string" && reason !== "" ? `denied: ${reason}` : "denied";
}

/** A line that is cut, and not wrapped. */
class CutLine implements Component {
  constructor(readonly text: string) {}
  invalidate(): void {}
  render(width: number): string[] {
    return [truncateToWidth(this.text, width)];
  }
}
