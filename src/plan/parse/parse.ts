/**
 * Text → data: YAML 1.2 or JSON, or the text of either inside a JSON string (plan.md, Formats). Refuses what is too large,
 * duplicate and forbidden keys, and tells places by line and column. Knows nothing of what a plan means.
 */
import { type ErrorDetail, PreampError } from "../../sdk/errors.ts";
import { isObject, type JsonObject } from "../../sdk/json.ts";
import { documentError, type Locate, toDetail } from "../check/findings.ts";
import { DOCUMENT_LIMITS, type DocumentLimits, exceedsBytes } from "./document_limits.ts";
import { lineIndex, type Position } from "./line_index.ts";
import { describe } from "../value_path.ts";
import { JsonSyntaxError, readJson } from "./json_tree.ts";
import { readYaml, YamlSyntaxError } from "./yaml_tree.ts";
import { LimitPassed, offsetOf, toData, type TreeNode } from "./document_tree.ts";

/** A document that was read. */
export interface ParsedDocument {
  /** Plain data, shared with nobody. */
  data: JsonObject;
  /** Line and column of the value at a path, or of the nearest thing around it. */
  locate: Locate;
}

/** Options of {@link parseDocument}. */
export interface ParseOptions {
  /** What errors call the document. Default `the plan`. */
  what?: string;
  /** Bounds; default {@link DOCUMENT_LIMITS}. */
  limits?: DocumentLimits;
}

/**
 * Reads a plan, or another document of the same form, from its text.
 *
 * @throws {PreampError} `plan_invalid` with every problem located; `plan_limit_exceeded` when it has too many bytes,
 * values, levels or aliases.
 */
export async function parseDocument(text: string, options: ParseOptions = {}): Promise<ParsedDocument> {
  const limits = options.limits ?? DOCUMENT_LIMITS;
  const what = options.what ?? "the plan";
  if (exceedsBytes(text, limits.max_bytes)) throw tooLarge(what, limits.max_bytes);
  const source = innerText(text.startsWith("\uFEFF") ? text.slice(1) : text, limits);
  const position = lineIndex(source);
  try {
    const root = await read(source, limits);
    if (!root) throw new YamlSyntaxError("the document is empty", 0);
    const { data, problems } = toData(root, limits);
    if (problems.length > 0) {
      const details = problems.map((problem) => ({ ...toDetail(problem), ...position(problem.at) }));
      throw documentError("plan_invalid", what, details);
    }
    if (!isObject(data)) throw notAnObject(what, data, position(root.at));
    return { data, locate: (path) => position(offsetOf(root, path)) };
  } catch (error) {
    throw located(error, what, position);
  }
}

/** {@link parseDocument} for a mount plan; `name` is what errors call it. */
export function parsePlanText(
  text: string,
  { name, limits }: { name?: string; limits?: DocumentLimits } = {},
): Promise<ParsedDocument> {
  return parseDocument(text, {
    what: name === undefined ? "the plan" : `the plan "${name}"`,
    ...(limits ? { limits } : {}),
  });
}

/** Returns the error for a document of too many bytes. */
export function tooLarge(what: string, max_bytes: number): PreampError {
  return new PreampError("plan_limit_exceeded", `Cannot accept ${what}: it has more than ${max_bytes} bytes`);
}

async function read(text: string, limits: DocumentLimits): Promise<TreeNode | undefined> {
  let jsonError: JsonSyntaxError | undefined;
  if (/^[ \t\r\n]*[{["]/.test(text)) {
    try {
      return readJson(text, limits.max_depth);
    } catch (error) {
      if (!(error instanceof JsonSyntaxError)) throw error;
      jsonError = error; // YAML allows more: comments, bare keys
    }
  }
  try {
    return await readYaml(text, limits);
  } catch (error) {
    // the reader that came further was reading the right language
    if (jsonError && error instanceof YamlSyntaxError && jsonError.at >= error.at) throw jsonError;
    throw error;
  }
}

/** Returns the text inside when the whole document is one JSON string, else the text itself. */
function innerText(text: string, limits: DocumentLimits): string {
  if (!/^[ \t\r\n]*"/.test(text)) return text;
  try {
    const root = readJson(text, limits.max_depth);
    return root.kind === "scalar" && typeof root.value === "string" ? root.value : text;
  } catch (error) {
    if (error instanceof JsonSyntaxError) return text;
    throw error;
  }
}

function located(error: unknown, what: string, position: (at: number) => Position): unknown {
  if (error instanceof LimitPassed) {
    const detail: ErrorDetail = {
      path: "",
      ...position(error.at),
      message: `Cannot read further: ${error.message}`,
    };
    return documentError("plan_limit_exceeded", what, [detail], error);
  }
  if (error instanceof JsonSyntaxError || error instanceof YamlSyntaxError) {
    const language = error instanceof JsonSyntaxError ? "JSON" : "YAML";
    const detail: ErrorDetail = {
      path: "",
      ...position(error.at),
      message: `Cannot read ${language}: ${error.message}`,
    };
    if (error instanceof YamlSyntaxError && error.hint !== undefined) detail.hint = error.hint;
    return documentError("plan_invalid", what, [detail], error);
  }
  return error;
}

function notAnObject(what: string, data: unknown, place: Position): PreampError {
  const message = `Cannot read ${what}: must be an object: received ${describe(data)}`;
  return documentError("plan_invalid", what, [{ path: "", ...place, message, hint: "start with session:" }]);
}
