/**
 * Parses YAML 1.2 text into a tree. Uses the event stream of `js-yaml`, whose events have offsets. Accepts
 * the core schema and one document, without custom tags and merge keys. Loads the parser on first use.
 */
import type * as Yaml from "js-yaml";
import { LimitPassed, type ListNode, type MapNode, type TreeNode } from "./document.ts";
import type { DocumentLimits } from "./document_limits.ts";

/** Thrown when text is not valid YAML or uses a feature that plans do not allow. */
export class YamlSyntaxError extends Error {
  /** Offset of the problem. */
  readonly at: number;
  /** What to write instead, if known. */
  readonly hint: string | undefined;

  /** Creates the error; `message` describes the problem at `at`. */
  constructor(message: string, at: number, hint?: string) {
    super(message);
    this.at = at;
    this.hint = hint;
  }
}

/**
 * Parses one YAML document; returns undefined if the text has none.
 *
 * @throws {YamlSyntaxError} if the text is not YAML, or has a second document, a custom tag, a merge key, a
 * key that is not text, or an undefined alias.
 * @throws {LimitPassed} if it is nested too deeply or uses too many aliases.
 */
export function readYaml(text: string, limits: DocumentLimits): Promise<TreeNode | undefined> {
  if (latest?.text === text && sameLimits(latest.limits, limits)) return latest.read;
  const read = readAnew(text, limits);
  latest = { text, limits, read };
  return read;
}

/**
 * One-entry cache: a request body is parsed up to three times (sniffing, checking, locating findings), and
 * parsing a large document blocks the event loop for about 100 ms. Trees are never changed.
 */
let latest: { text: string; limits: DocumentLimits; read: Promise<TreeNode | undefined> } | undefined;

function sameLimits(a: DocumentLimits, b: DocumentLimits): boolean {
  return a === b ||
    a.max_bytes === b.max_bytes && a.max_nodes === b.max_nodes && a.max_depth === b.max_depth &&
      a.max_aliases === b.max_aliases;
}

async function readAnew(text: string, limits: DocumentLimits): Promise<TreeNode | undefined> {
  const yaml = await import("js-yaml");
  return compose(yaml, text, parse(yaml, text, limits), limits);
}

function parse(yaml: typeof Yaml, text: string, limits: DocumentLimits): Yaml.Event[] {
  try {
    return yaml.parseEvents(text, { maxDepth: depthWithBudget(limits) });
  } catch (error) {
    if (!(error instanceof yaml.YAMLException)) throw error;
    const at = error.mark?.position ?? 0;
    if (error.reason.startsWith("nesting exceeded")) {
      throw new LimitPassed(`more than ${limits.max_depth} levels of nested lists and objects`, at);
    }
    const opened = unclosedBefore(text, at, error.reason);
    if (opened !== undefined) throw new YamlSyntaxError(`this ${text[opened]} is not closed`, opened);
    throw new YamlSyntaxError(error.reason, at, quotesHint(text, at));
  }
}

/**
 * Returns the offset of the `{` or `[` that is not closed where the parser stopped; undefined if something
 * else is wrong. Brackets in quotes and in comments are not counted.
 */
function unclosedBefore(text: string, at: number, reason: string): number | undefined {
  const ends = /^(deficient indentation|unexpected end)/.test(reason);
  if (!ends && !"]}".includes(text[at] ?? " ")) return undefined;
  const plain = text.slice(0, at)
    .replaceAll(
      /(?<=[\s,[{:])("(?:\\.|[^"\\])*"|'[^'\n]*')|(?<=\s)#.*/g,
      (found) => " ".repeat(found.length),
    );
  const opened: number[] = [];
  for (const { 0: bracket, index } of plain.matchAll(/[[\]{}]/g)) {
    if ("[{".includes(bracket)) opened.push(index);
    else opened.pop();
  }
  const last = opened.at(-1);
  const is_closed = last !== undefined && `${text[last]}${text[at]}`.match(/^(\[\]|\{\})$/) !== null;
  return is_closed ? undefined : last;
}

/**
 * Returns the parser's depth limit as an object that also counts nodes. The parser has no limit of nodes,
 * but compares the depth once for each node, so 256 KiB of `{a,a,…` stop before all 131,000 keys are
 * parsed. The count of 6 per value is generous: a value has at most one key, and each is started at most
 * three times. So no document within `max_nodes` reaches it; {@link toData} counts exactly.
 */
function depthWithBudget({ max_depth, max_nodes }: DocumentLimits): number {
  let left = max_nodes * 6;
  const limit = {
    valueOf(): number {
      if (left-- === 0) throw new LimitPassed(`more than ${max_nodes} values`, 0);
      return max_depth + 1; // scalars are one level below the deepest list
    },
  };
  return limit as unknown as number; // compared with >= only, which calls valueOf
}

/** A list or object that is being parsed; `key` is the key of its next value. */
interface Frame {
  node: ListNode | MapNode;
  key: { text: string; at: number } | undefined;
}

function compose(
  yaml: typeof Yaml,
  text: string,
  events: readonly Yaml.Event[],
  limits: DocumentLimits,
): TreeNode | undefined {
  const { EVENT_ID } = yaml;
  const frames: Frame[] = [];
  const anchors = new Map<string, TreeNode>();
  const open = new Set<TreeNode>();
  let root: TreeNode | undefined;
  let documents = 0;
  let aliases = 0;
  let last = 0;

  function add(node: TreeNode, at: number): void {
    const frame = frames.at(-1);
    if (!frame) root = node;
    else if (frame.node.kind === "list") frame.node.items.push(node);
    else if (frame.key) {
      frame.node.entries.push({ key: frame.key.text, at: frame.key.at, value: node });
      frame.key = undefined;
    } else throw new YamlSyntaxError("a key must be text", at);
  }

  for (const [index, event] of events.entries()) {
    switch (event.type) {
      case EVENT_ID.DOCUMENT: {
        if (++documents > 1) {
          const next = events[index + 1];
          const at = next && "valueStart" in next || next && "start" in next
            ? startOf(yaml, next, last)
            : last;
          throw new YamlSyntaxError("unexpected second document", at, "send one document");
        }
        if (event.directives.some(({ kind }) => kind === "tag")) {
          throw new YamlSyntaxError("custom tags are not allowed", 0, "remove the %TAG line");
        }
        break;
      }
      case EVENT_ID.SCALAR: {
        const at = last = startOf(yaml, event, last);
        const frame = frames.at(-1);
        if (frame?.node.kind === "map" && !frame.key) {
          frame.key = { text: keyText(yaml, text, event, at), at };
          remember(anchors, text, event, { kind: "scalar", at, value: frame.key.text });
        } else {
          const node: TreeNode = { kind: "scalar", at, value: scalarValue(yaml, text, event, at) };
          remember(anchors, text, event, node);
          add(node, at);
        }
        break;
      }
      case EVENT_ID.SEQUENCE:
      case EVENT_ID.MAPPING: {
        const at = last = startOf(yaml, event, last);
        const isList = event.type === EVENT_ID.SEQUENCE;
        checkTag(text, event, isList ? "seq" : "map");
        const node: ListNode | MapNode = isList
          ? { kind: "list", at: event.start, items: [] }
          : { kind: "map", at: event.start, entries: [] };
        add(node, at);
        remember(anchors, text, event, node);
        open.add(node);
        frames.push({ node, key: undefined });
        break;
      }
      case EVENT_ID.ALIAS: {
        const at = last = event.anchorStart - 1;
        if (++aliases > limits.max_aliases) {
          throw new LimitPassed(`more than ${limits.max_aliases} aliases`, at);
        }
        const name = text.slice(event.anchorStart, event.anchorEnd);
        const node = anchors.get(name);
        if (!node) throw new YamlSyntaxError(`the alias "${name.slice(0, 80)}" is not defined`, at);
        if (open.has(node)) throw new YamlSyntaxError(`the alias "${name.slice(0, 80)}" contains itself`, at);
        const frame = frames.at(-1);
        if (frame?.node.kind === "map" && !frame.key) {
          if (node.kind !== "scalar" || typeof node.value !== "string") {
            throw new YamlSyntaxError("a key must be text", at);
          }
          frame.key = { text: node.value, at };
        } else add(node, at);
        break;
      }
      case EVENT_ID.POP: {
        const frame = frames.pop();
        if (frame) open.delete(frame.node);
        break;
      }
    }
  }
  return root;
}

function remember(
  anchors: Map<string, TreeNode>,
  text: string,
  event: { anchorStart: number; anchorEnd: number },
  node: TreeNode,
): void {
  if (event.anchorStart !== -1) anchors.set(text.slice(event.anchorStart, event.anchorEnd), node);
}

/** Returns the offset of an event's value; for an empty value, of the text before it. */
function startOf(
  yaml: typeof Yaml,
  event: Yaml.ScalarEvent | Yaml.SequenceEvent | Yaml.MappingEvent,
  last: number,
): number {
  if ("start" in event) return event.start;
  if (event.valueStart === -1) return last;
  const { SINGLE_QUOTED, DOUBLE_QUOTED } = yaml.SCALAR_STYLE;
  return event.style === SINGLE_QUOTED || event.style === DOUBLE_QUOTED
    ? event.valueStart - 1
    : event.valueStart;
}

function keyText(yaml: typeof Yaml, text: string, event: Yaml.ScalarEvent, at: number): string {
  if (event.tagStart !== -1) checkTag(text, event, "str");
  const key = yaml.getScalarValue(text, event);
  if (event.style === yaml.SCALAR_STYLE.PLAIN) {
    if (key === "") throw new YamlSyntaxError("a key must be text", at, 'write "" for an empty key');
    if (key === "<<") {
      throw new YamlSyntaxError(
        "merge keys are not allowed",
        at,
        "write the fields out, or merge plan files with -p",
      );
    }
  }
  return key;
}

function scalarValue(
  yaml: typeof Yaml,
  text: string,
  event: Yaml.ScalarEvent,
  at: number,
): string | number | boolean | null {
  const source = yaml.getScalarValue(text, event);
  const { nullCoreTag, boolCoreTag, intCoreTag, floatCoreTag } = yaml;
  const core = { null: nullCoreTag, bool: boolCoreTag, int: intCoreTag, float: floatCoreTag };
  if (event.tagStart !== -1) {
    const tag = checkTag(text, event, "str", "null", "bool", "int", "float");
    if (tag === "str" || tag === "") return source;
    const definition = core[tag as keyof typeof core]; // checkTag returns one of its arguments
    const value = definition.resolve(source, true, definition.tagName);
    if (typeof value === "symbol") throw new YamlSyntaxError(`this value does not fit the tag !!${tag}`, at);
    return value;
  }
  if (event.style !== yaml.SCALAR_STYLE.PLAIN) return source;
  const first = source.charAt(0);
  for (const definition of [nullCoreTag, boolCoreTag, intCoreTag, floatCoreTag]) {
    if (definition.implicitFirstChars && !definition.implicitFirstChars.includes(first)) continue;
    const value = definition.resolve(source, false, definition.tagName);
    if (typeof value !== "symbol") return value; // NOT_RESOLVED is the only symbol
  }
  return source;
}

/**
 * Returns the short name of an event's tag if it is one of `names`, `""` if it has none or the non-specific
 * `!`.
 */
function checkTag(text: string, event: { tagStart: number; tagEnd: number }, ...names: string[]): string {
  if (event.tagStart === -1) return "";
  const tag = text.slice(event.tagStart, event.tagEnd);
  if (tag === "!") return "";
  for (const name of names) if (tag === `!!${name}` || tag === `!<tag:yaml.org,2002:${name}>`) return name;
  throw new YamlSyntaxError(
    `the tag ${tag.slice(0, 80)} is not allowed here`,
    event.tagStart,
    "plans are plain data: text, numbers, booleans, null, lists and objects",
  );
}

/**
 * Returns a hint if the line contains a `${VAR}` inside braces or brackets, where YAML reads it as a
 * mapping.
 */
function quotesHint(text: string, at: number): string | undefined {
  const end = text.indexOf("\n", at);
  const line = text.slice(text.lastIndexOf("\n", at - 1) + 1, end === -1 ? undefined : end);
  return /(?<!["'$])\$\{[A-Za-z_]/.test(line)
    ? 'write a ${VAR} inside { } or [ ] in quotes: "${VAR}"'
    : undefined;
}
