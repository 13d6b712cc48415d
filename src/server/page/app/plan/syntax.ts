/**
 * Reads the text of a plan, YAML or JSON, as far as it is written: tokens for colours, and a tree of places
 * for completion. Never fails: what it does not understand has no colour and is not in the tree. The server
 * alone judges a plan. Knows no DOM.
 */

/** How a part of the text is drawn; null: as it is. */
type TokenKind = "comment" | "key" | "string" | "number" | "variable" | "sign" | null;

/** A coloured part of the text. */
export interface Token {
  readonly kind: TokenKind;
  readonly from: number;
  readonly to: number;
}

/** A text, number or another single value, or a key. */
export interface Scalar {
  readonly kind: "scalar";
  readonly from: number;
  readonly to: number;
  /** Without quotes. */
  readonly text: string;
  readonly quote: '"' | "'" | "";
  /** Column, from 0. */
  readonly column: number;
  /** Whether a key or a dash could stand in its place: it is the first of a line, or follows a dash. */
  readonly starts: boolean;
  /** Whether it is an entry of a list to which its dash is missing yet. */
  readonly undashed?: boolean;
}

/** A key with its value. */
export interface Pair {
  readonly key: Scalar;
  /** Whether the colon is there. */
  complete: boolean;
  value: Node | null;
}

/** An object. */
export interface MapNode {
  readonly kind: "map";
  readonly flow: boolean;
  readonly pairs: Pair[];
}

/** A list. */
interface ListNode {
  readonly kind: "list";
  readonly flow: boolean;
  readonly items: (Node | null)[];
}

/** A value. */
export type Node = Scalar | MapNode | ListNode;

/** A text that was read. */
export interface Syntax {
  readonly tokens: readonly Token[];
  readonly root: Node | null;
}

/** Deepest nesting of brackets that is read; a plan may have 32. */
const MAX_DEPTH = 64;

const PLAIN = /(?:[^\s:#]|:(?!\s|$)|(?<=\S)#|[ \t]+(?![\s#]|:\s|:?$))+/y;
const PLAIN_IN_FLOW = /(?:[^\s:#,[\]{}]|:(?![\s,[\]{}]|$)|(?<=\S)#|[ \t]+(?![\s#,[\]{}:]|$))+/y;
const QUOTED = { '"': /"(?:[^"\\]|\\[^])*"/y, "'": /'(?:[^']|'')*'/y };
const QUOTED_IN_LINE = { '"': /"(?:[^"\\\n]|\\.)*"?/y, "'": /'(?:[^'\n]|'')*'?/y };
/** What may follow a text in quotes; else its end quote is missing, and the found one begins another text. */
const AFTER_QUOTED = /[ \t]*(?:[,:\]}\r\n]|#|$)/y;
const COLON = /[ \t]*:(?=\s|$)/y;
const COLON_IN_FLOW = /\s*:/y;
const BLOCK_HEADER = /[|>][-+\d]*(?=[ \t]*(?:\r?\n|$|#))/y;
const NUMBER = /^(?:[-+]?(?:\d[\d_]*)?\.?\d+(?:e[-+]?\d+)?|0x[\da-f]+|true|false|null|~)$/i;
const VARIABLE = /\$\{[^}\n]{0,200}\}/g;

/** Reads a text. */
export function readSyntax(text: string): Syntax {
  const tokens: Token[] = [];
  /** Collections of the block style around the place, with the columns where they begin. */
  const stack: { readonly column: number; readonly node: MapNode | ListNode }[] = [];
  let root: Node | null = null;
  let at = 0;
  let line = 0;
  /** Whether the place is the first of its line, or follows a dash. */
  let starts = true;

  const find = (pattern: RegExp): string | undefined => {
    pattern.lastIndex = at;
    return pattern.exec(text)?.[0];
  };
  const take = (length: number, kind: TokenKind) => {
    if (kind !== null) tokens.push({ kind, from: at, to: at + length });
    at += length;
  };
  const top = () => stack.at(-1);
  /** Puts a value where the innermost collection wants one; a value too many is left out. */
  const put = (node: Node) => {
    const open = top()?.node;
    if (!open) root ??= node;
    else if (open.kind === "list") {
      if (open.items.at(-1) === null) open.items[open.items.length - 1] = node;
    } else {
      const pair = open.pairs.at(-1);
      if (pair) pair.value ??= node;
    }
  };
  const close = (column: number) => {
    while (stack.length > 0 && top()!.column > column) stack.pop();
  };

  /** Takes white space and comments; in brackets over lines. */
  const skip = () => {
    for (;;) {
      if (text[at] === "\n") line = at + 1, starts = true;
      if (/\s/.test(text[at] ?? "")) at++;
      else if (text[at] === "#" && (at === line || /\s/.test(text[at - 1]!))) {
        const end = text.indexOf("\n", at);
        take((end < 0 ? text.length : end) - at, "comment");
      } else return;
    }
  };

  /** Takes a scalar, which is a key if a colon follows; null where nothing can be one. */
  const takeScalar = (in_flow: boolean): { scalar: Scalar; is_key: boolean } | null => {
    const first = text[at];
    const quote = first === '"' || first === "'" ? first : "";
    let found = find(in_flow ? PLAIN_IN_FLOW : PLAIN);
    if (quote !== "") {
      found = find(QUOTED[quote]);
      AFTER_QUOTED.lastIndex = at + (found?.length ?? 0);
      if (found === undefined || found.includes("\n") && !AFTER_QUOTED.test(text)) {
        found = find(QUOTED_IN_LINE[quote]);
      }
    }
    if (found === undefined) return null;
    const from = at;
    const inner = quote === ""
      ? found
      : found.slice(1, found.length > 1 && found.endsWith(quote) ? -1 : undefined);
    const scalar: Scalar = {
      kind: "scalar",
      ...{ from, to: from + found.length, text: inner, quote, column: from - line, starts },
    };
    at = scalar.to;
    const colon = find(in_flow && quote !== "" ? COLON_IN_FLOW : COLON) ??
      (in_flow ? find(/[ \t]*:(?=[,[\]{}])/y) : undefined);
    const is_key = colon !== undefined && (in_flow || starts);
    at = from;
    if (is_key) take(found.length, "key");
    else if (quote === "" && NUMBER.test(found)) take(found.length, "number");
    else takeText(found.length);
    if (found.includes("\n")) line = text.lastIndexOf("\n", at - 1) + 1;
    return { scalar, is_key };
  };
  /** Takes text, with its variables in another colour. */
  const takeText = (length: number) => {
    const end = at + length;
    for (const { 0: variable, index } of text.slice(at, end).matchAll(VARIABLE)) {
      const begin = end - length + index;
      take(begin - at, begin > at ? "string" : null);
      take(variable.length, "variable");
    }
    take(end - at, end > at ? "string" : null);
  };

  /** Takes what is in brackets. It ends, too, at a line which is no deeper than the key before it. */
  const takeFlow = (depth: number): Node => {
    const is_map = text[at] === "{";
    const pairs: Pair[] = [];
    const items: (Node | null)[] = [];
    const outside = top()?.column ?? -1;
    let pair: Pair | undefined;
    const add = (node: Node) => {
      if (!is_map) items.push(node);
      else if (pair?.complete) pair.value ??= node;
    };
    take(1, "sign");
    for (;;) {
      skip();
      const character = text[at];
      if (character === undefined) break;
      const is_end = character === "}" || character === "]";
      if (at - line <= outside && starts && !is_end) break;
      starts = false;
      if (is_end) {
        take(1, "sign");
        break;
      }
      if ((character === "{" || character === "[") && depth < MAX_DEPTH) add(takeFlow(depth + 1));
      else if (character === ",") {
        pair = undefined;
        take(1, "sign");
      } else {
        const taken = takeScalar(true);
        if (taken === null) {
          if (character === ":" && pair) pair.complete = true;
          take(1, "sign");
        } else if (is_map && !pair?.complete) {
          pair = { key: taken.scalar, complete: false, value: null };
          pairs.push(pair);
        } else add(taken.scalar);
      }
    }
    starts = false;
    return is_map ? { kind: "map", flow: true, pairs } : { kind: "list", flow: true, items };
  };

  /** Takes a text of several lines after `|` or `>`. */
  const takeBlock = (header: string) => {
    const from = at;
    const outside = top()?.column ?? -1;
    take(header.length, "sign");
    const [rest] = /.*/y.exec(text.slice(at, at + 1_000))!;
    if (rest.includes("#")) skip();
    let end = text.indexOf("\n", at);
    while (end >= 0) {
      const [indentation] = /[ ]*/.exec(text.slice(end + 1, end + 1 + 256))!;
      const next = text[end + 1 + indentation.length];
      if (next !== undefined && next !== "\n" && next !== "\r" && indentation.length <= outside) break;
      end = text.indexOf("\n", end + 1);
    }
    takeText((end < 0 ? text.length : end) - at);
    line = text.lastIndexOf("\n", at - 1) + 1;
    put({ kind: "scalar", from, to: at, text: "", quote: '"', column: 0, starts: false });
  };

  for (;;) {
    skip();
    const character = text[at];
    if (character === undefined) return { tokens, root };
    const column = at - line;
    const header = find(BLOCK_HEADER);
    if (column === 0 && /^(?:---|\.\.\.)(?:\s|$)/.test(text.slice(at, at + 4))) take(3, "sign");
    else if (starts && character === "-" && /^(?:\s|$)/.test(text.slice(at + 1, at + 2))) {
      close(column);
      const open = top();
      if (open?.node.kind === "list" && open.column === column) open.node.items.push(null);
      else {
        const node: ListNode = { kind: "list", flow: false, items: [null] };
        put(node);
        stack.push({ column, node });
      }
      take(1, "sign");
    } else if (header !== undefined) takeBlock(header);
    else if (character === "{" || character === "[") {
      if (starts) close(column);
      put(takeFlow(0));
    } else if (/[&!*%]/.test(character)) take(find(/\S+/y)!.length, "sign");
    else {
      const began = starts;
      const taken = takeScalar(false);
      starts = false;
      if (taken === null) take(1, "sign");
      else if (!began) put(taken.scalar);
      else placeScalar(taken.scalar, taken.is_key);
      if (taken?.is_key) take(find(COLON)!.length, "sign");
    }
  }

  /** Puts a scalar that begins a line, or follows a dash, into the collection that its column means. */
  function placeScalar(scalar: Scalar, is_key: boolean): void {
    const { column } = scalar;
    close(column);
    const outer = stack.at(-2);
    let open = top();
    if (
      open?.node.kind === "list" && open.column === column &&
      (is_key || outer?.column === column && outer.node.kind === "map")
    ) {
      stack.pop();
      open = top();
    }
    if (open?.column === column && open.node.kind === "list") {
      open.node.items.push({ ...scalar, undashed: true });
    } else if (open?.column === column && open.node.kind === "map") {
      open.node.pairs.push({ key: scalar, complete: is_key, value: null });
    } else if (is_key) {
      const node: MapNode = {
        kind: "map",
        flow: false,
        pairs: [{ key: scalar, complete: true, value: null }],
      };
      put(node);
      stack.push({ column, node });
    } else put(scalar);
  }
}

/** The parts of a line with their colours. */
export type ColouredLine = [kind: TokenKind, part: string][];

/** Returns the lines of a text. */
export function coloured(text: string, tokens: readonly Token[]): ColouredLine[] {
  const lines: ColouredLine[] = [[]];
  let at = 0;
  const add = (kind: TokenKind, to: number) => {
    for (const [index, part] of text.slice(at, to).split("\n").entries()) {
      if (index > 0) lines.push([]);
      if (part !== "") lines.at(-1)!.push([kind, part]);
    }
    at = to;
  };
  for (const { kind, from, to } of tokens) {
    add(null, from);
    add(kind, to);
  }
  add(null, text.length);
  return lines;
}

/** Steps of a path such as `tools[0].config["a b"]`. */
const STEP = /\["((?:[^"\\]|\\.)*)"\]|\[(\d+)\]|([^.[\]]+)/g;

/** Returns the offset of what a path leads to, or of the last thing on the way; null for none. */
export function offsetOfPath({ root }: Syntax, path: string): number | null {
  let node: Node | null = root;
  let offset: number | null = null;
  for (const [, quoted, index, name] of path.matchAll(STEP)) {
    if (node?.kind === "list") node = node.items[Number(index)] ?? null;
    else if (node?.kind === "map") {
      const pair: Pair | undefined = node.pairs.find(({ key }) => key.text === (name ?? quoted ?? index));
      if (!pair) break;
      [offset, node] = [pair.key.from, pair.value];
      continue;
    } else break;
    offset = beginOf(node) ?? offset;
  }
  return offset;
}

/** Returns the offset of the first scalar of a value. */
function beginOf(node: Node | null | undefined): number | undefined {
  if (node?.kind === "map") return node.pairs[0]?.key.from;
  return node?.kind === "list" ? beginOf(node.items[0]) : node?.from;
}
