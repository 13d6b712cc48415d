/** Reasoning that a server leaves in the text of an answer, between tags at its beginning. */

const OPEN = "<think>";
const CLOSE = "</think>";

/** A part of an answer. */
export interface TextSplit {
  readonly type: "text" | "thinking";
  readonly text: string;
}

/**
 * Divides the text of one answer, wherever its deltas are cut: what is between `<think>` at its beginning
 * and `</think>` is thinking, as is all of it without the end tag. White space around the tags is left out.
 */
export class ThinkTags {
  #state: "start" | "thinking" | "between" | "text" = "start";
  /** Text that may be a part of a tag, or white space beside one. */
  #held = "";
  #has_thought = false;

  /** Returns the parts of the next delta. */
  split(delta: string): TextSplit[] {
    if (this.#state === "text") return [{ type: "text", text: delta }];
    this.#held += delta;
    const parts: TextSplit[] = [];
    if (this.#state === "start") this.#readStart(parts);
    if (this.#state === "thinking") this.#readThinking(parts);
    if (this.#state === "between") this.#readText(parts);
    return parts;
  }

  /** Returns what is held back at the end of the answer. */
  rest(): TextSplit[] {
    const text = this.#held;
    this.#held = "";
    if (text === "" || this.#state === "between" || text.trim() === "" && this.#state === "thinking") {
      return [];
    }
    return [{ type: this.#state === "thinking" ? "thinking" : "text", text }];
  }

  #readStart(parts: TextSplit[]): void {
    const begin = this.#held.trimStart();
    if (begin.startsWith(OPEN)) {
      this.#state = "thinking";
      this.#held = begin.slice(OPEN.length);
    } else if (!OPEN.startsWith(begin)) {
      this.#state = "text";
      parts.push({ type: "text", text: this.#take(this.#held.length) });
    }
  }

  #readThinking(parts: TextSplit[]): void {
    if (!this.#has_thought) this.#held = this.#held.trimStart();
    const end = this.#held.indexOf(CLOSE);
    const text = this.#take(end === -1 ? this.#held.length - openEndOf(this.#held) : end);
    this.#has_thought ||= text !== "";
    const thought = end === -1 ? text : text.trimEnd();
    if (thought !== "") parts.push({ type: "thinking", text: thought });
    if (end === -1) return;
    this.#held = this.#held.slice(CLOSE.length);
    this.#state = "between";
  }

  #readText(parts: TextSplit[]): void {
    this.#held = this.#held.trimStart();
    if (this.#held === "") return;
    this.#state = "text";
    parts.push({ type: "text", text: this.#take(this.#held.length) });
  }

  #take(length: number): string {
    const taken = this.#held.slice(0, length);
    this.#held = this.#held.slice(length);
    return taken;
  }
}

/** Returns the length of the end of a text that may be a part of the end tag, or white space before it. */
function openEndOf(text: string): number {
  let length = Math.min(CLOSE.length - 1, text.length);
  while (!CLOSE.startsWith(text.slice(text.length - length))) length--;
  return text.length - text.slice(0, text.length - length).trimEnd().length;
}
