/** An answer as Markdown, while it arrives. */
import { Container, Markdown, type MarkdownTheme, Spacer, Text } from "@earendil-works/pi-tui";

/** Characters and marks of a block that is read as Markdown: the parser's time grows with their square. */
const MOST_CHARS = 32_000, MOST_MARKS = 300;
const MARKS = /[*_[\]$~`<!]/g;
/** Quotations in each other, for which the parser calls itself. */
const TOO_DEEP = /^(?: *>){40}/m;

/** One block: Markdown, unless reading it would take too long or fails. */
class Block extends Container {
  readonly #theme: MarkdownTheme;
  #text = "";
  #part: Markdown | Text;

  constructor(theme: MarkdownTheme) {
    super();
    this.#theme = theme;
    this.#part = this.#markdown();
    this.addChild(this.#part);
  }

  #markdown(): Markdown {
    return new Markdown("", 0, 0, this.#theme, undefined, { renderLatex: false });
  }

  set(text: string): void {
    this.#text = text;
    const is_simple = !isFence(text) &&
      (text.length > MOST_CHARS || (text.match(MARKS)?.length ?? 0) > MOST_MARKS || TOO_DEEP.test(text));
    if (is_simple !== this.#part instanceof Text) {
      this.#use(is_simple ? new Text("", 0, 0) : this.#markdown());
    }
    this.#part.setText(text);
  }

  #use(part: Markdown | Text): void {
    this.#part = part;
    this.children = [part];
  }

  override render(width: number): readonly string[] {
    try {
      return super.render(width);
    } catch { // the parser gave up
      this.#use(new Text(this.#text, 0, 0));
      return super.render(width);
    }
  }
}

/**
 * An answer that grows. A blank line outside of a fence ends a block, which never changes again: only the
 * last one is read and drawn again with each part that arrives.
 */
export class Answer extends Container {
  readonly #theme: MarkdownTheme;
  readonly #mostLines: () => number;
  /** The block that is not complete. */
  #block: Block;
  #open = "";
  #has_ended = false;

  /**
   * @param mostLines Returns how many lines of the block that is not complete are shown, the last ones: a
   * line above the window cannot be changed.
   */
  constructor(theme: MarkdownTheme, mostLines: () => number = () => Infinity) {
    super();
    this.#theme = theme;
    this.#mostLines = mostLines;
    this.#block = new Block(theme);
    this.addChild(this.#block);
  }

  /** Adds printable text. */
  add(text: string): void {
    this.#open += text;
    for (let end = blockEnd(this.#open); end > 0; end = blockEnd(this.#open)) {
      this.#block.set(this.#open.slice(0, end).trimEnd());
      this.#open = this.#open.slice(end);
      this.#block = new Block(this.#theme);
      this.addChild(new Spacer(1));
      this.addChild(this.#block);
    }
    this.#block.set(lastOf(this.#open));
  }

  /** Shows the last block whole. */
  end(): void {
    this.#block.set(this.#open.trimEnd());
    this.#has_ended = true;
  }

  override render(width: number): readonly string[] {
    if (this.#has_ended) return super.render(width);
    const lines = this.#block.render(width);
    const most = Math.max(1, this.#mostLines());
    const before = this.children.slice(0, -1).flatMap((part) => part.render(width));
    return [...before, ...lines.length > most ? lines.slice(-most) : lines];
  }
}

/** Returns the end of a block that is too long to be drawn whole with each part that arrives. */
function lastOf(text: string): string {
  if (text.length <= MOST_CHARS) return text;
  const last = text.slice(text.indexOf("\n", text.length - MOST_CHARS) + 1 || -MOST_CHARS);
  return isFence(text) ? `\`\`\`\n${last}` : last;
}

function isFence(text: string): boolean {
  return /^ {0,3}(?:```|~~~)/.test(text);
}

/** Returns the length of the first block; 0: it may continue, as a list does after a blank line. */
function blockEnd(text: string): number {
  if (isFence(text)) {
    const end = /^ {0,3}(```+|~~~+)[^\n]*\n[^]*?^ {0,3}\1[`~]* *\n+(?=[^\n])/m.exec(text);
    return end?.index === 0 ? end[0].length : 0;
  }
  const end = /\n\n+(?=[^\s\-*+\d>])/.exec(text);
  const fence = /^ {0,3}(?:```|~~~)/m.exec(text);
  if (end && (fence === null || fence.index > end.index)) return end.index + end[0].length;
  return fence === null ? 0 : fence.index; // a fence is a block of its own
}
