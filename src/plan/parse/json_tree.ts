/**
 * Parses JSON text (RFC 8259) into a tree. Needed because `JSON.parse` reports neither offsets nor
 * duplicate keys; strings and numbers are still decoded by it. Accepts exactly the texts that `JSON.parse`
 * accepts.
 */
import { LimitPassed, type MapNode, type TreeNode } from "./document.ts";

/** Thrown when text is not valid JSON. */
export class JsonSyntaxError extends Error {
  /** Offset of the unexpected character. */
  readonly at: number;

  /** Creates the error; `message` states what was expected. */
  constructor(message: string, at: number) {
    super(message);
    this.at = at;
  }
}

/**
 * Parses JSON text into a tree.
 *
 * @throws {JsonSyntaxError} if the text is not valid JSON.
 * @throws {LimitPassed} if it exceeds `max_depth` or `max_nodes`.
 */
export function readJson(text: string, max_depth: number, max_nodes = Infinity): TreeNode {
  const reader = new Reader(text, max_depth, max_nodes);
  reader.space();
  const root = reader.root();
  reader.space();
  if (reader.position < text.length) {
    throw new JsonSyntaxError("unexpected text after the document", reader.position);
  }
  return root;
}

class Reader {
  position = 0;
  readonly #text: string;
  readonly #maxDepth: number;
  readonly #maxNodes: number;
  #nodes = 0;
  /** Offsets of the lists and objects that are being read. */
  readonly #opened: number[] = [];

  constructor(text: string, maxDepth: number, maxNodes: number) {
    this.#text = text;
    this.#maxDepth = maxDepth;
    this.#maxNodes = maxNodes;
  }

  /** @throws {JsonSyntaxError} where a list or object begins that is not closed; else at the problem. */
  root(): TreeNode {
    try {
      return this.value(0);
    } catch (error) {
      const opened = this.#opened.at(-1);
      if (!(error instanceof JsonSyntaxError) || opened === undefined) throw error;
      const next = this.#text[error.at] ?? "";
      const closes = this.#text[opened] === "{" ? "}" : "]";
      if (next !== "" && (!"]}".includes(next) || next === closes)) throw error;
      throw new JsonSyntaxError(`this ${this.#text[opened]} is not closed`, opened);
    }
  }

  space(): void {
    for (;; this.position++) {
      const code = this.#text.charCodeAt(this.position);
      if (code !== 32 && code !== 10 && code !== 13 && code !== 9) return;
    }
  }

  value(depth: number): TreeNode {
    const at = this.position;
    if (++this.#nodes > this.#maxNodes) throw new LimitPassed(`more than ${this.#maxNodes} values`, at);
    switch (this.#text.charCodeAt(at)) {
      case 0x7b:
        return this.#map(at, depth);
      case 0x5b:
        return this.#list(at, depth);
      case 0x22:
        return { kind: "scalar", at, value: this.#string() };
      case 0x74:
        return this.#word(at, "true", true);
      case 0x66:
        return this.#word(at, "false", false);
      case 0x6e:
        return this.#word(at, "null", null);
      default:
        return { kind: "scalar", at, value: this.#number(at) };
    }
  }

  #map(at: number, depth: number): TreeNode {
    this.#enter(at, depth);
    const entries: MapNode["entries"] = [];
    if (this.#empty(0x7d)) return { kind: "map", at, entries };
    do {
      this.space();
      const keyAt = this.position;
      if (this.#text.charCodeAt(keyAt) !== 0x22) this.#fail("expected a key in double quotes");
      const key = this.#string();
      this.space();
      if (this.#text.charCodeAt(this.position) !== 0x3a) this.#fail('expected ":" after a key');
      this.position++;
      this.space();
      entries.push({ key, at: keyAt, value: this.value(depth + 1) });
    } while (this.#more(0x7d, 'expected "," or "}"'));
    return { kind: "map", at, entries };
  }

  #list(at: number, depth: number): TreeNode {
    this.#enter(at, depth);
    const items: TreeNode[] = [];
    if (this.#empty(0x5d)) return { kind: "list", at, items };
    do {
      this.space();
      items.push(this.value(depth + 1));
    } while (this.#more(0x5d, 'expected "," or "]"'));
    return { kind: "list", at, items };
  }

  #enter(at: number, depth: number): void {
    if (depth >= this.#maxDepth) {
      throw new LimitPassed(`more than ${this.#maxDepth} levels of nested lists and objects`, at);
    }
    this.position++;
    this.#opened.push(at);
  }

  #empty(close: number): boolean {
    this.space();
    if (this.#text.charCodeAt(this.position) !== close) return false;
    this.position++;
    this.#opened.pop();
    return true;
  }

  #more(close: number, expected: string): boolean {
    this.space();
    const code = this.#text.charCodeAt(this.position);
    if (code !== close && code !== 0x2c) this.#fail(expected);
    this.position++;
    if (code === close) this.#opened.pop();
    return code === 0x2c;
  }

  #word<T>(at: number, word: string, value: T): { kind: "scalar"; at: number; value: T } {
    if (!this.#text.startsWith(word, at)) this.#fail("expected a value");
    this.position += word.length;
    return { kind: "scalar", at, value };
  }

  #string(): string {
    const start = this.position;
    let simple = true;
    for (let index = start + 1; index < this.#text.length; index++) {
      const code = this.#text.charCodeAt(index);
      if (code === 0x22) {
        this.position = index + 1;
        return simple ? this.#text.slice(start + 1, index) : this.#decode(start, index + 1);
      }
      if (code === 0x5c) {
        simple = false;
        index++;
      } else if (code < 0x20) {
        throw new JsonSyntaxError("a control character must be escaped in text", index);
      }
    }
    throw new JsonSyntaxError("the string that starts here is not closed", start);
  }

  #decode(start: number, end: number): string {
    try {
      return JSON.parse(this.#text.slice(start, end));
    } catch {
      throw new JsonSyntaxError("the string that starts here has an invalid escape", start);
    }
  }

  #number(start: number): number {
    let index = start;
    const digits = (): boolean => {
      const first = index;
      while (isDigit(this.#text.charCodeAt(index))) index++;
      return index > first;
    };
    if (this.#text[index] === "-") index++;
    if (this.#text[index] === "0") index++;
    else if (!digits()) this.#fail("expected a value");
    if (this.#text[index] === ".") {
      index++;
      if (!digits()) throw new JsonSyntaxError("expected a digit", index);
    }
    if (this.#text[index] === "e" || this.#text[index] === "E") {
      index++;
      if (this.#text[index] === "+" || this.#text[index] === "-") index++;
      if (!digits()) throw new JsonSyntaxError("expected a digit", index);
    }
    this.position = index;
    return Number(this.#text.slice(start, index));
  }

  #fail(message: string): never {
    throw new JsonSyntaxError(message, this.position);
  }
}

function isDigit(code: number): boolean {
  return code >= 48 && code <= 57;
}
