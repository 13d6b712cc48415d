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
/** Rows of a long list that are shown at once. */
const LIST_ROWS = 8;
const PASTE = "\x1b[200~";

/** What a question does with keys and answers. */
export interface Answering<Value> {
  readonly style: Style;
  monotonic(): number;
  /** Receives keys that are no answer: they belong to the input line. */
  other(data: string): void;
  /** Receives the answer; null: none was given. */
  answer(value: Value | null): void;
}

/** A question with choices. None is chosen at first, so Enter alone answers nothing. */
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
    const { style: { bold, cyan, dim, yellow }, monotonic } = this.#deps;
    this.#rests_since ??= monotonic();
    const rows = this.#choices.flatMap(({ label, hint }, at) => {
      const text = `${keyOf(this.#choices, at)}) ${label}${hint === undefined ? "" : ` ${dim(`(${hint})`)}`}`;
      const is_chosen = at === this.#at;
      return wrapTextWithAnsi(text, Math.max(1, width - 4))
        .map((line, row) =>
          `${is_chosen && row === 0 ? cyan("  ❯ ") : "    "}${is_chosen ? bold(line) : line}`
        );
    });
    return [
      ...wrapTextWithAnsi(`${yellow("?")} ${bold(this.#message)}`, width),
      ...rows,
      dim(this.#is_ready(monotonic()) ? "    its key, or ↑ ↓ and Enter" : "    …"),
    ].map((line) => truncateToWidth(line, width));
  }

  /** Whether it takes keys: none was typed for a while. */
  #is_ready(now: number): boolean {
    return this.#rests_since !== null && now - this.#rests_since >= REST_MS;
  }

  handleInput(data: string): void {
    if (isKeyRelease(data)) return;
    const { monotonic, other, answer } = this.#deps;
    const now = monotonic();
    const is_enter = matchesKey(data, "enter");
    if (!this.#is_ready(now) || data.startsWith(PASTE)) {
      this.#rests_since = now; // the person is still typing
      if (!is_enter) other(data);
      return;
    }
    const step = matchesKey(data, "down") ? 1 : matchesKey(data, "up") ? -1 : 0;
    const { length } = this.#choices;
    if (step !== 0) {
      this.#at = this.#at < 0 ? (step > 0 ? 0 : length - 1) : (this.#at + step + length) % length;
    } else if (is_enter) {
      if (this.#at >= 0) answer(this.#choices[this.#at]!.value); // it is in the list
    } else if (matchesKey(data, "escape")) {
      answer(this.#choices.find(({ letter }) => letter === "n")?.value ?? null);
    } else {
      const found = this.#choices.findIndex((_, at) => matchesKey(data, keyOf(this.#choices, at) as KeyId));
      if (found >= 0) return answer(this.#choices[found]!.value);
      this.#rests_since = now;
      other(data);
    }
  }
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
  readonly #deps: Pick<Answering<Value>, "style" | "answer">;
  #list: SelectList;

  constructor(
    message: string,
    choices: readonly Choice<Value>[],
    deps: Pick<Answering<Value>, "style" | "answer">,
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
    const list = new SelectList(items, LIST_ROWS, listTheme(this.#deps.style));
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

  constructor(message: string, { style, answer }: Pick<Answering<string>, "style" | "answer">) {
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
