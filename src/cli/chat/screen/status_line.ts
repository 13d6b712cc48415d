/** The last line of the screen. */
import { type Component, truncateToWidth } from "@earendil-works/pi-tui";
import { cutToWidth, type Style } from "../../terminal/format.ts";

/** Milliseconds for which the screen is the same while something happens. */
export const FRAME_MS = 80;
/** Columns that a name of a model has at least. */
const LEAST_NAME = 10;
const FRAMES = [..."⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"];

/** What happens, the model, share of the context, cost. */
export class StatusLine implements Component {
  readonly #style: Style;
  readonly #monotonic: () => number;
  #facts = { attached: "", model: "", context: "", cost: "" };
  #doing: { text: string; since: number } | null = null;

  constructor(style: Style, monotonic: () => number) {
    this.#style = style;
    this.#monotonic = monotonic;
  }

  set(facts: Partial<{ attached: string; model: string; context: string; cost: string }>): void {
    this.#facts = { ...this.#facts, ...facts };
  }

  /** Null: the person's turn. */
  doing(text: string | null): void {
    if (text === this.#doing?.text) return;
    this.#doing = text === null ? null : { text, since: this.#monotonic() };
  }

  invalidate(): void {}

  render(width: number): string[] {
    const { cyan, dim } = this.#style;
    const { attached, model, context, cost } = this.#facts;
    const now = this.#monotonic();
    const seconds = this.#doing ? Math.floor((now - this.#doing.since) / 1000) : 0;
    const busy = this.#doing && [`${this.#doing.text}${seconds > 0 ? ` ${seconds} s` : ""}`, "Ctrl-C stops"];
    const before = [...busy ?? [], attached && `with ${attached}`].filter((fact) => fact !== "");
    const after = [context, cost].filter((fact) => fact !== "");
    const room = width - [...before, ...after, "⠋ "].join(" · ").length; // the name gives way to what changes
    const name = room < LEAST_NAME || model === "" ? [] : [cutToWidth(model, room)];
    const text = [...before, ...name, ...after].join(" · ");
    const mark = busy ? `${cyan(FRAMES[Math.floor(now / FRAME_MS) % FRAMES.length]!)} ` : "";
    return [truncateToWidth(`${mark}${dim(text)}`, width)];
  }
}
