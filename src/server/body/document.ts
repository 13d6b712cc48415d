/**
 * Reads bodies with the readers of plans, which report the place of every problem: YAML, and JSON that
 * `json.ts` leaves to them. Imported for such a body.
 */
import { documentError, toDetail } from "../../plan/check/findings.ts";
import { DOCUMENT_LIMITS, type DocumentLimits, exceedsBytes } from "../../plan/parse/document_limits.ts";
import { LimitPassed, lineIndex, toData, type TreeNode } from "../../plan/parse/document.ts";
import { JsonSyntaxError, readJson } from "../../plan/parse/json_tree.ts";
import { readYaml, YamlSyntaxError } from "../../plan/parse/yaml_tree.ts";
import type { ErrorCode, ErrorDetail } from "../../sdk/errors.ts";
import type { JsonValue } from "../../sdk/json.ts";
import { requestLimits } from "./json.ts";

/** Maximum depth that the reader accepts. */
const HARD_DEPTH = 256;

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
      reported.map((problem): ErrorDetail => ({
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
export function readJsonData(text: string, label: string, plan: DocumentLimits = DOCUMENT_LIMITS): JsonValue {
  return treeData(readJsonTree(text, label, plan), text, label, plan);
}

/** Parses YAML text; resolves to null for an error, which the plan's own reader will report. */
export async function readYamlTree(text: string, plan: DocumentLimits): Promise<TreeNode | null> {
  const limits = {
    max_bytes: Math.max(plan.max_bytes, DOCUMENT_LIMITS.max_bytes),
    max_nodes: Math.max(plan.max_nodes, DOCUMENT_LIMITS.max_nodes),
    max_depth: Math.max(plan.max_depth, DOCUMENT_LIMITS.max_depth),
    max_aliases: plan.max_aliases,
  };
  if (exceedsBytes(text, limits.max_bytes)) return null;
  try {
    const tree = await readYaml(text, limits);
    return tree?.kind === "map" ? tree : null;
  } catch (error) {
    if (error instanceof YamlSyntaxError || error instanceof LimitPassed) return null;
    throw error;
  }
}
