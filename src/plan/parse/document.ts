/**
 * A document as a tree with the offset of each value. The JSON and YAML parsers create it; `toData`
 * converts it to plain data under the limits, and `offsetOf` finds a path. Independent of plans.
 */
import type { JsonValue } from "../../sdk/json.ts";
import { type DocumentLimits, FORBIDDEN_KEYS } from "./document_limits.ts";
import type { Path } from "../../sdk/value_path.ts";

/** One value of a document. `at` is the offset of its first character. */
export type TreeNode = ScalarNode | ListNode | MapNode;

/** Text, a number, a boolean or null. */
export interface ScalarNode {
  kind: "scalar";
  at: number;
  value: string | number | boolean | null;
}

/** A list. An aliased value is one node in several places. */
export interface ListNode {
  kind: "list";
  at: number;
  items: TreeNode[];
}

/** An object. Entries are in document order, duplicates included. */
export interface MapNode {
  kind: "map";
  at: number;
  entries: { key: string; at: number; value: TreeNode }[];
}

/** A problem of a document, at an offset of its text. */
export interface TreeProblem {
  path: Path;
  at: number;
  message: string;
  hint?: string;
}

/** Thrown when a document exceeds a limit. */
export class LimitPassed extends Error {
  /** Offset at which the limit was exceeded. */
  readonly at: number;

  /** Creates the error; `message` names the limit. */
  constructor(message: string, at: number) {
    super(message);
    this.at = at;
  }
}

/**
 * Returns the plain data of a tree and all its problems: duplicate keys, forbidden keys, numbers that JSON
 * cannot represent, malformed text. Copies aliased values, so that the data is a tree.
 *
 * @throws {LimitPassed} at the first value beyond `max_nodes` or `max_depth`.
 */
export function toData(root: TreeNode, limits: DocumentLimits): { data: JsonValue; problems: TreeProblem[] } {
  const problems: TreeProblem[] = [];
  const path: (string | number)[] = [];
  let nodes = 0;

  function build(node: TreeNode, depth: number): JsonValue {
    countOne(node.at);
    if (node.kind === "scalar") return scalar(node);
    if (depth >= limits.max_depth) {
      throw new LimitPassed(`more than ${limits.max_depth} levels of nested lists and objects`, node.at);
    }
    return node.kind === "list" ? list(node, depth) : map(node, depth);
  }

  function countOne(at: number): void {
    if (++nodes > limits.max_nodes) throw new LimitPassed(`more than ${limits.max_nodes} values`, at);
  }

  function scalar(node: ScalarNode): JsonValue {
    const { value, at } = node;
    if (typeof value === "number" && !Number.isFinite(value)) {
      problem(at, `Cannot read a number: it is not finite: received ${value}`);
    } else if (typeof value === "string" && !value.isWellFormed()) {
      problem(at, "Cannot read text: it contains half of a surrogate pair", "write the whole character");
    }
    return value;
  }

  function list(node: ListNode, depth: number): JsonValue[] {
    const items: JsonValue[] = [];
    for (const [index, item] of node.items.entries()) {
      path.push(index);
      items.push(build(item, depth + 1));
      path.pop();
    }
    return items;
  }

  function map(node: MapNode, depth: number): JsonValue {
    const fields: { [key: string]: JsonValue } = {};
    for (const { key, at, value } of node.entries) {
      const before = nodes;
      path.push(key);
      if (FORBIDDEN_KEYS.has(key)) {
        problem(at, `Cannot read key "${key}": it is not allowed in any object`, "rename the key");
      } else if (Object.hasOwn(fields, key)) {
        problem(
          at,
          `Cannot read key ${JSON.stringify(key.slice(0, 80))}: it occurs twice in one object`,
          "remove one of them",
        );
      } else if (!key.isWellFormed()) {
        problem(at, "Cannot read a key: it contains half of a surrogate pair", "write the whole character");
      } else {
        fields[key] = build(value, depth + 1);
      }
      if (nodes === before) countOne(at); // a refused entry counts too, so that the number of problems is limited
      path.pop();
    }
    return fields;
  }

  function problem(at: number, message: string, hint?: string): void {
    problems.push({ path: [...path], at, message, ...(hint === undefined ? {} : { hint }) });
  }

  return { data: build(root, 0), problems };
}

/**
 * Returns the offset of the value at `path` (for a field, of its key), or of the nearest ancestor that
 * exists.
 */
export function offsetOf(root: TreeNode, path: Path): number {
  let node = root;
  let at = root.at;
  for (const step of path) {
    if (node.kind === "list" && typeof step === "number") {
      const item = node.items[step];
      if (!item) break;
      node = item;
      at = item.at;
    } else if (node.kind === "map" && typeof step === "string") {
      const entry = node.entries.find(({ key }) => key === step);
      if (!entry) break;
      node = entry.value;
      at = entry.at;
    } else break;
  }
  return at;
}

/**
 * A position in a text, both numbers from 1. The column counts UTF-16 code units, as the Language Server
 * Protocol does.
 */
export interface Position {
  line: number;
  column: number;
}

/**
 * Returns a function from an offset to its line and column. LF, CRLF and CR end a line. Builds the index on
 * first use.
 */
export function lineIndex(text: string): (offset: number) => Position {
  let starts: number[] | undefined;
  return (offset) => {
    starts ??= lineStarts(text);
    const clamped = Math.max(0, Math.min(offset, text.length));
    let low = 0;
    let high = starts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (starts[middle]! <= clamped) low = middle;
      else high = middle - 1;
    }
    return { line: low + 1, column: clamped - starts[low]! + 1 };
  };
}

function lineStarts(text: string): number[] {
  const starts = [0];
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code === 10 || code === 13 && text.charCodeAt(index + 1) !== 10) starts.push(index + 1);
  }
  return starts;
}
