/** What a person is asked above the input line: a question with a few choices, a long list, one line. */
import {
  type Component,
  Container,
  type Focusable,
  Input,
  isKeyRelease,
  type KeyId,
  matchesKey,
  SelectList,
  Text,
  truncateToWidth,
  wrapTextWithAnsi,
} from "@earendil-works/pi-tui";
import type { Style } from "../../terminal/format.ts";
import type { Choice } from "../../terminal/line_input.ts";
import { listTheme } from "./style.ts";

/** Milliseconds without a key after which a question takes keys: earlier ones were for the input line. */
export const REST_MS = 400;
/** Choices of a question; of more, the person types a part. */
export const MOST_CHOICES = 12;
/** Rows of a long list that are shown at once, and those beside it: of its title, its input, its position. */
const LIST_ROWS = 8, LIST_FRAME = 4;
const PASTE = "\x1b[200~";

/** What a question needs of the screen. */
export interface Asking<Value> {
  readonly style: Style;
  /** Returns the rows that the question may have: a line above the window cannot be changed. */
  mostRows(): number;
  /** Receives the answer; null: none was given. */
  answer(value: Value | null): void;
}

/** What a question with keys of its own does with them. */
export interface Answering<Value> extends Asking<Value> {
  monotonic(): number;
  /** Whether the input line has a message: its letters are not answers. */
  hasDraft(): boolean;
  /** Receives keys that are no answer: they belong to the input line. */
  other(data: string): void;
}

/**
 * A question with choices. None is chosen at first, so Enter alone answers nothing: it sends the message of
 * the input line.
 */
export class Question<Value> implements Component {
  readonly #message: string;
  readonly #choices: readonly Choice<Value>[];
  readonly #deps: Answering<Value>;
  #at = -1;
  /** When the question was first drawn, or the last key that was not meant for it; null: not drawn yet. */
  #rests_since: number | null = null;

  constructor(message: string, choices: readonly Choice<Value>[], deps: Answering<Value>) {
    this.#message = message;
    this.#choices = choices;
    this.#deps = deps;
  }

  invalidate(): void {}

  render(width: number): string[] {
    const { style: { bold, cyan, dim, yellow }, monotonic, mostRows, hasDraft } = this.#deps;
    this.#rests_since ??= monotonic();
    const rows = this.#choices.map(({ label, hint }, at) => {
      const text = `${keyOf(this.#choices, at)}) ${label}${hint === undefined ? "" : ` ${dim(`(${hint})`)}`}`;
      const is_chosen = at === this.#at;
      return wrapTextWithAnsi(text, Math.max(1, width - 4))
        .map((line, row) =>
          `${is_chosen && row === 0 ? cyan("  ❯ ") : "    "}${is_chosen ? bold(line) : line}`
        );
    });
    const keys = hasDraft() ? "↑ ↓ and Enter; letters go to your message" : "its key, or ↑ ↓ and Enter";
    const head = wrapTextWithAnsi(`${yellow("?")} ${bold(this.#message)}`, width);
    return [
      ...head,
      ...around(rows, Math.max(0, this.#at), mostRows() - head.length - 1),
      dim(this.#is_ready(monotonic()) ? `    ${keys}${this.#denial ? "" : "; Esc leaves"}` : "    …"),
    ].map((line) => truncateToWidth(line, width));
  }

  get #denial(): Choice<Value> | undefined {
    return this.#choices.find(({ letter }) => letter === "n");
  }

  /** Whether it takes keys: none was typed for a while. */
  #is_ready(now: number): boolean {
    return this.#rests_since !== null && now - this.#rests_since >= REST_MS;
  }

  handleInput(data: string): void {
    if (isKeyRelease(data)) return;
    const { monotonic, hasDraft, other, answer } = this.#deps;
    const now = monotonic();
    if (!this.#is_ready(now) || data.startsWith(PASTE)) {
      this.#rests_since = now; // the person is still typing
      return other(data);
    }
    const step = matchesKey(data, "down") ? 1 : matchesKey(data, "up") ? -1 : 0;
    const { length } = this.#choices;
    if (step !== 0) {
      this.#at = this.#at < 0 ? (step > 0 ? 0 : length - 1) : (this.#at + step + length) % length;
    } else if (matchesKey(data, "enter") && this.#at >= 0) {
      answer(this.#choices[this.#at]!.value); // it is in the list
    } else if (matchesKey(data, "escape")) {
      answer(this.#denial?.value ?? null);
    } else {
      const found = hasDraft()
        ? -1
        : this.#choices.findIndex((_, at) => matchesKey(data, keyOf(this.#choices, at) as KeyId));
      if (found >= 0) return answer(this.#choices[found]!.value);
      this.#rests_since = now;
      other(data);
    }
  }
}

/** Returns the rows of as many choices as there is room for, with the chosen one among them. */
function around(choices: readonly string[][], chosen: number, most: number): string[] {
  let first = chosen, last = chosen;
  let left = most - (choices[chosen]?.length ?? 0);
  while (true) {
    const next = choices[last + 1]?.length ?? Infinity, before = choices[first - 1]?.length ?? Infinity;
    if (next <= left) left -= choices[++last]!.length; // its length is finite
    else if (before <= left) left -= choices[--first]!.length;
    else break;
  }
  return choices.slice(first, last + 1).flat().slice(0, Math.max(1, most));
}

/** Returns the key of a choice: its letter, else its number. */
function keyOf(choices: readonly Choice<unknown>[], at: number): string {
  return choices[at]?.letter ?? String(at + 1);
}

/** A long list, filtered by what is typed. */
export class FilteredList<Value> extends Container implements Focusable {
  readonly #input = new Input();
  readonly #choices: readonly Choice<Value>[];
  readonly #title: string;
  readonly #deps: Asking<Value>;
  #list: SelectList;

  constructor(
    message: string,
    choices: readonly Choice<Value>[],
    deps: Asking<Value>,
  ) {
    super();
    this.#choices = choices;
    this.#deps = deps;
    this.#title = `${deps.style.yellow("?")} ${deps.style.bold(message)} ${
      deps.style.dim("type a part; ↑ ↓ and Enter, Esc leaves")
    }`;
    this.#list = this.#show();
  }

  get focused(): boolean {
    return this.#input.focused;
  }
  set focused(is_focused: boolean) {
    this.#input.focused = is_focused;
  }

  #show(): SelectList {
    const part = this.#input.getValue().toLowerCase();
    const items = this.#choices.map(({ label, hint }, at) => ({
      value: String(at),
      label,
      ...(hint === undefined ? {} : { description: hint }),
    })).filter(({ label }) => label.toLowerCase().includes(part));
    const rows = Math.max(1, Math.min(LIST_ROWS, this.#deps.mostRows() - LIST_FRAME));
    const list = new SelectList(items, rows, listTheme(this.#deps.style));
    list.onSelect = ({ value }) => this.#deps.answer(this.#choices[Number(value)]!.value); // its own number
    list.onCancel = () => this.#deps.answer(null);
    this.children = [new Text(this.#title, 0, 0), this.#input, list];
    return list;
  }

  handleInput(data: string): void {
    const is_of_list = (["up", "down", "pageUp", "pageDown", "enter", "escape"] as const)
      .some((key) => matchesKey(data, key));
    if (is_of_list) return this.#list.handleInput(data);
    this.#input.handleInput(data);
    this.#list = this.#show();
  }
}

/** One line of text. */
export class LineQuestion extends Container implements Focusable {
  readonly #input = new Input();

  constructor(message: string, { style, answer }: Asking<string>) {
    super();
    this.addChild(new Text(`${style.yellow("?")} ${style.bold(message)}`, 0, 0));
    this.addChild(this.#input);
    this.#input.onSubmit = (text) => answer(text);
    this.#input.onEscape = () => answer(null);
  }

  get focused(): boolean {
    return this.#input.focused;
  }
  set focused(is_focused: boolean) {
    this.#input.focused = is_focused;
  }

  handleInput(data: string): void {
    this.#input.handleInput(data);
  }
}
