/**
 * Makes a text that matches a regular expression. Supports what tools' schemas use: classes, groups,
 * alternatives and repetitions.
 */

const CLASSES: Readonly<Record<string, string>> = { d: "0", w: "a", s: " ", D: "a", W: "-", S: "a" };
/** Candidate characters for a class such as `[^a-f]`. */
const CANDIDATES = "a0AzZ9-_ .,:;/@#+=!?%&*()[]{}<>|~'\"\\éλ";

/** Returns a text that matches a pattern, or undefined when none is found. */
export function textMatching(pattern: string): string | undefined {
  try {
    const expression = new RegExp(pattern, "u");
    const text = new PatternReader(pattern).read();
    return expression.test(text) ? text : undefined;
  } catch {
    return undefined; // not a regular expression, or one with unsupported parts
  }
}

/** Reads a pattern once and writes the text of its first alternatives. */
class PatternReader {
  readonly #pattern: string;
  #at = 0;

  constructor(pattern: string) {
    this.#pattern = pattern;
  }

  /** Returns the text of the pattern's first alternative. */
  read(): string {
    const text = this.#alternatives();
    if (this.#at < this.#pattern.length) throw new SyntaxError("unmatched closing parenthesis");
    return text;
  }

  #alternatives(): string {
    let first: string | undefined;
    for (;;) {
      const text = this.#sequence();
      first ??= text;
      if (this.#next() !== "|") return first;
      this.#at++;
    }
  }

  #sequence(): string {
    let text = "";
    while (this.#at < this.#pattern.length && this.#next() !== "|" && this.#next() !== ")") {
      const part = this.#part();
      text += part.repeat(this.#repetitions());
    }
    return text;
  }

  #part(): string {
    const character = this.#take();
    if (character === "^" || character === "$") return "";
    if (character === "(") return this.#group();
    if (character === "[") return this.#class();
    if (character === "\\") return this.#escape();
    return character === "." ? "a" : character;
  }

  #group(): string {
    const lookaround = this.#skip(/\?(?:<?[=!])/y);
    if (!lookaround) this.#skip(/\?(?::|<[^>]*>)/y);
    const text = this.#alternatives();
    this.#take();
    return lookaround ? "" : text; // the final match checks whether the lookaround holds
  }

  #class(): string {
    const start = this.#at - 1;
    for (let escaped = false; this.#at < this.#pattern.length; this.#at++) {
      if (!escaped && this.#next() === "]" && this.#at > start + 1) break;
      escaped = !escaped && this.#next() === "\\";
    }
    this.#at++;
    const source = this.#pattern.slice(start, this.#at);
    const expression = new RegExp(`^${source}$`, "u");
    const own = [...source.slice(1).replaceAll(/\\/g, "")];
    const found = [...CANDIDATES, ...own].find((candidate) => expression.test(candidate));
    if (found === undefined) throw new SyntaxError(`no character for ${source}`);
    return found;
  }

  #escape(): string {
    const code = /u\{?([0-9a-f]{4,6})\}?|x([0-9a-f]{2})/iy;
    const hex = this.#skip(code);
    if (hex) return String.fromCodePoint(parseInt(hex.replaceAll(/[ux{}]/g, ""), 16));
    const property = this.#skip(/[pP]\{[^}]*\}/y);
    if (property) {
      const expression = new RegExp(`^\\${property}$`, "u");
      return [...CANDIDATES].find((candidate) => expression.test(candidate)) ?? "a";
    }
    const character = this.#take();
    if (character === "b" || character === "B") return "";
    return CLASSES[character] ?? ({ n: "\n", t: "\t", r: "\r" } as Record<string, string>)[character] ??
      character;
  }

  #repetitions(): number {
    const found = this.#skip(/(?:[*+?]|\{\d+(?:,\d*)?\})\??/y);
    if (found === undefined) return 1;
    if (found.startsWith("{")) return Math.min(Number.parseInt(found.slice(1)), 1000);
    return found.startsWith("+") ? 1 : 0;
  }

  #skip(expression: RegExp): string | undefined {
    expression.lastIndex = this.#at;
    const [found] = expression.exec(this.#pattern) ?? [];
    this.#at += found?.length ?? 0;
    return found;
  }

  #next(): string {
    return this.#pattern.charAt(this.#at);
  }

  #take(): string {
    return this.#pattern.charAt(this.#at++);
  }
}
