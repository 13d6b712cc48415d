/**
 * Parses untrusted JSON with the plan's JSON reader. `JSON.parse` keeps the last of two equal keys, accepts
 * `__proto__` and 200,000 levels, and does not always report the position of an error.
 */
import { documentError, toDetail } from "../../plan/check/findings.ts";
import { DOCUMENT_LIMITS, type DocumentLimits } from "../../plan/parse/document_limits.ts";
import { lineIndex } from "../../plan/parse/line_index.ts";
import { JsonSyntaxError, readJson } from "../../plan/parse/json_tree.ts";
import { FORBIDDEN_KEYS, LimitPassed, toData, type TreeNode } from "../../plan/parse/document_tree.ts";
import type { ErrorCode, ErrorDetail } from "../../sdk/errors.ts";
import { isObject, type JsonValue } from "../../sdk/json.ts";

/**
 * Returns the limits of a request body: those of the plan in it, plus a plan's default limits for the other
 * fields.
 */
function requestLimits(plan: DocumentLimits): DocumentLimits {
  return {
    max_bytes: Infinity,
    max_nodes: Math.max(plan.max_nodes, DOCUMENT_LIMITS.max_nodes) + DOCUMENT_LIMITS.max_nodes,
    max_depth: Math.max(plan.max_depth, DOCUMENT_LIMITS.max_depth) + DOCUMENT_LIMITS.max_depth,
    max_aliases: plan.max_aliases,
  };
}

/** Maximum depth that the reader accepts. */
const HARD_DEPTH = 256;
/** Maximum number of findings in an error; the same as for plans. */
const MAX_FINDINGS = 200;

/**
 * Parses JSON text to a tree. `label` names the text in errors; `plan` limits the plan in it.
 *
 * @throws {PreampError} `request_invalid` with line and column; `plan_limit_exceeded` if a plan in it is too
 * large.
 */
export function readJsonTree(text: string, label: string, plan: DocumentLimits): TreeNode {
  try {
    return readJson(text, HARD_DEPTH, requestLimits(plan).max_nodes);
  } catch (error) {
    if (!(error instanceof JsonSyntaxError || error instanceof LimitPassed)) throw error;
    const limit = error instanceof LimitPassed;
    const keys = limit ? rootKeys(text, error.at) : [];
    const code = keys.at(-1) === "plan" || keys.includes("session")
      ? "plan_limit_exceeded"
      : "request_invalid";
    const message = `Cannot read ${label}: ${limit ? "" : "it is not JSON: "}${error.message}`;
    const detail = { path: limit ? keys.at(-1) ?? "" : "", ...lineIndex(text)(error.at), message };
    throw documentError(code, label, [detail], error);
  }
}

/**
 * Returns the keys of the root object before an offset, as written; the text must be valid JSON up to there.
 */
function rootKeys(text: string, end: number): string[] {
  const keys: string[] = [];
  let depth = 0;
  let isKey = false;
  for (let index = 0; index < end; index++) {
    const character = text[index];
    if (character === "{" || character === "[") depth++;
    if (character === "}" || character === "]") depth--;
    if (depth === 1 && (character === "{" || character === ",")) isKey = true;
    if (character !== '"') continue;
    const start = index + 1;
    for (index = start; text[index] !== '"'; index++) if (text[index] === "\\") index++;
    if (depth === 1 && isKey) keys.push(text.slice(start, index));
    isKey = false;
  }
  return keys;
}

/**
 * Converts a tree to data. Errors inside the field `plan` have the codes of a plan.
 *
 * @throws {PreampError} `request_invalid`, `plan_invalid` or `plan_limit_exceeded`, every finding with line
 * and column.
 */
export function treeData(root: TreeNode, text: string, label: string, plan: DocumentLimits): JsonValue {
  const position = lineIndex(text);
  try {
    const { data, problems } = toData(root, requestLimits(plan));
    if (problems.length === 0) return data;
    const inPlan = problems.filter(({ path }) => path[0] === "plan");
    const [code, reported]: [ErrorCode, typeof problems] = inPlan.length === problems.length
      ? ["plan_invalid", inPlan]
      : ["request_invalid", problems];
    throw documentError(
      code,
      label,
      reported.slice(0, MAX_FINDINGS).map((problem): ErrorDetail => ({
        ...toDetail(problem),
        ...position(problem.at),
      })),
    );
  } catch (error) {
    if (!(error instanceof LimitPassed)) throw error;
    const field = root.kind === "map"
      ? root.entries.findLast((entry) => entry.at <= error.at)?.key
      : undefined;
    const code = field === "plan" ? "plan_limit_exceeded" : "request_invalid";
    const message = `Cannot read ${label}: ${error.message}`;
    throw documentError(code, label, [{ path: field ?? "", ...position(error.at), message }], error);
  }
}

/**
 * Parses JSON text to data.
 *
 * @param plan Limits of a plan in the text.
 * @throws {PreampError} as {@link readJsonTree} and {@link treeData}.
 */
export function parseJsonData(
  text: string,
  label: string,
  plan: DocumentLimits = DOCUMENT_LIMITS,
): JsonValue {
  return parsePlainJson(text, plan) ?? treeData(readJsonTree(text, label, plan), text, label, plan);
}

/**
 * Parses JSON text with `JSON.parse`, in a quarter of the time of {@link readJsonTree}. Returns undefined for text that is
 * invalid, above the limits, or has a duplicate key, a forbidden key, half of a surrogate pair or a number that is not finite:
 * {@link readJsonTree} and {@link treeData} then report it.
 */
export function parsePlainJson(text: string, plan: DocumentLimits): JsonValue | undefined {
  let data: JsonValue;
  try {
    data = JSON.parse(text);
  } catch {
    return undefined;
  }
  const counter = new PlainData(requestLimits(plan));
  // JSON.parse keeps the last of two equal keys, so the text then has more keys than the data.
  return counter.add(data, 0) && counter.keys === countKeys(text) ? data : undefined;
}

/** Checks parsed data in one walk and counts its keys. */
class PlainData {
  keys = 0;
  #nodes = 0;
  readonly #limits: DocumentLimits;

  constructor(limits: DocumentLimits) {
    this.#limits = limits;
  }

  /** Returns false for data that is above the limits or that only the tree may report. */
  add(value: JsonValue, depth: number): boolean {
    if (++this.#nodes > this.#limits.max_nodes) return false;
    if (typeof value === "string") return value.isWellFormed();
    if (typeof value === "number") return Number.isFinite(value);
    if (typeof value !== "object" || value === null) return true;
    if (depth >= this.#limits.max_depth) return false;
    if (!isObject(value)) {
      for (const item of value) if (!this.add(item, depth + 1)) return false;
      return true;
    }
    for (const key of Object.keys(value)) {
      this.keys++;
      if (FORBIDDEN_KEYS.has(key) || !key.isWellFormed() || !this.add(value[key]!, depth + 1)) return false;
    }
    return true;
  }
}

/**
 * Returns the number of keys in valid JSON text: of its colons outside of strings. NaN if a key has an escape: `JSON.parse` of
 * V8 15.0 takes the key `"\""` for the key `"\\"` when it has parsed an object with that one before.
 */
function countKeys(text: string): number {
  const has_escape = text.includes("\\");
  let keys = 0;
  let start = 0; // of the latest string
  let end = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === 0x22) {
      start = at;
      at = end = endOfString(text, at);
    } else if (code === 0x3a) {
      if (has_escape && text.slice(start, end).includes("\\")) return NaN;
      keys++;
    }
  }
  return keys;
}

/** Returns the offset of the quote that ends the string that starts at `start`. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1);; end = text.indexOf('"', end + 1)) {
    let before = end;
    while (text.charCodeAt(before - 1) === 0x5c) before--;
    if ((end - before) % 2 === 0) return end; // an even number of backslashes escapes itself, not the quote
  }
}
