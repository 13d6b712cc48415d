/**
 * JSON that a stranger wrote → data. `JSON.parse` keeps the last of two equal keys, makes `__proto__` an own key, reads
 * 200,000 levels and does not always say where it stopped (threats.md T8, T9); the plan's reader does none of that.
 */
import { documentError, toDetail } from "../../plan/check/findings.ts";
import { DOCUMENT_LIMITS, type DocumentLimits } from "../../plan/parse/document_limits.ts";
import { lineIndex } from "../../plan/parse/line_index.ts";
import { JsonSyntaxError, readJson } from "../../plan/parse/json_tree.ts";
import { FORBIDDEN_KEYS, LimitPassed, toData, type TreeNode } from "../../plan/parse/document_tree.ts";
import type { ErrorCode, ErrorDetail } from "../../sdk/errors.ts";
import { isObject, type JsonValue } from "../../sdk/json.ts";

/** Bounds of a request body beside its bytes: a plan, and as much around it as a plan has by default. */
function requestLimits(plan: DocumentLimits): DocumentLimits {
  return {
    max_bytes: Infinity,
    max_nodes: Math.max(plan.max_nodes, DOCUMENT_LIMITS.max_nodes) + DOCUMENT_LIMITS.max_nodes,
    max_depth: Math.max(plan.max_depth, DOCUMENT_LIMITS.max_depth) + DOCUMENT_LIMITS.max_depth,
    max_aliases: plan.max_aliases,
  };
}

/** Where the reader gives up; only a tree of this depth is ever walked. */
const HARD_DEPTH = 256;
/** Findings that are worth a place; the plan's reader has the same bound. */
const MAX_FINDINGS = 200;

/**
 * Returns the tree of a JSON text. `what` names it in errors, `plan` bounds the plan in it.
 *
 * @throws {PreampError} `request_invalid` with line and column; `plan_limit_exceeded` when a plan in it is too large.
 */
export function readJsonTree(text: string, what: string, plan: DocumentLimits): TreeNode {
  try {
    return readJson(text, HARD_DEPTH, requestLimits(plan).max_nodes);
  } catch (error) {
    if (!(error instanceof JsonSyntaxError || error instanceof LimitPassed)) throw error;
    const limit = error instanceof LimitPassed;
    const keys = limit ? rootKeys(text, error.at) : [];
    const code = keys.at(-1) === "plan" || keys.includes("session")
      ? "plan_limit_exceeded"
      : "request_invalid";
    const message = `Cannot read ${what}: ${limit ? "" : "it is not JSON: "}${error.message}`;
    const detail = { path: limit ? keys.at(-1) ?? "" : "", ...lineIndex(text)(error.at), message };
    throw documentError(code, what, [detail], error);
  }
}

/** Returns the root object's keys that stand before an offset, as they are written; the text is JSON up to there. */
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
 * Returns the data of a tree. What is wrong inside the field `plan` is the plan's fault and gets its codes.
 *
 * @throws {PreampError} `request_invalid`, `plan_invalid` or `plan_limit_exceeded`, every finding with line and column.
 */
export function treeData(root: TreeNode, text: string, what: string, plan: DocumentLimits): JsonValue {
  const position = lineIndex(text);
  try {
    const { data, problems } = toData(root, requestLimits(plan));
    if (problems.length === 0) return data;
    const inPlan = problems.filter(({ path }) => path[0] === "plan");
    const [code, blamed]: [ErrorCode, typeof problems] = inPlan.length === problems.length
      ? ["plan_invalid", inPlan]
      : ["request_invalid", problems];
    throw documentError(
      code,
      what,
      blamed.slice(0, MAX_FINDINGS).map((problem): ErrorDetail => ({
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
    const message = `Cannot read ${what}: ${error.message}`;
    throw documentError(code, what, [{ path: field ?? "", ...position(error.at), message }], error);
  }
}

/**
 * Returns the data of a JSON text.
 *
 * @param plan Bounds of the plan in it, when it may hold one.
 * @throws {PreampError} as {@link readJsonTree} and {@link treeData}.
 */
export function parseJsonData(text: string, what: string, plan: DocumentLimits = DOCUMENT_LIMITS): JsonValue {
  return treeData(readJsonTree(text, what, plan), text, what, plan);
}

/** A value takes two characters: a text of this length has fewer than `max_nodes` of them. */
const QUICK_CHARS = 32 * 1024;
/** No request has a smaller bound. */
const QUICK_DEPTH = 2 * DOCUMENT_LIMITS.max_depth;

/**
 * Returns the data of a short JSON text that says it the one way `JSON.stringify` does, as most programs write it; undefined for
 * any other text, which {@link readJsonTree} judges. Such a text has no key twice, or it would come back without; reading it
 * by the runtime's own parser, and writing it again, takes a fifth of what its tree takes.
 */
export function parseSimpleJson(text: string): JsonValue | undefined {
  if (text.length > QUICK_CHARS || text.includes("\\ud")) return undefined; // perhaps half of a surrogate pair
  let data: JsonValue;
  try {
    data = JSON.parse(text);
  } catch {
    return undefined;
  }
  return isPlainData(data, 0) && JSON.stringify(data) === text ? data : undefined;
}

/** Whether data has no forbidden key and is not too deep. */
function isPlainData(value: JsonValue, depth: number): boolean {
  if (typeof value !== "object" || value === null) return true;
  if (depth >= QUICK_DEPTH) return false;
  if (!isObject(value)) return value.every((item) => isPlainData(item, depth + 1));
  for (const key of Object.keys(value)) {
    if (FORBIDDEN_KEYS.has(key) || !isPlainData(value[key]!, depth + 1)) return false;
  }
  return true;
}
