/**
 * Parses text into data: YAML 1.2 or JSON, or either of them inside a JSON string. Refuses documents beyond
 * the limits, duplicate keys and forbidden keys, with line and column. Independent of plans.
 */
import { documentError, type Locate, toDetail } from "../check/findings.ts";
import { LimitPassed, lineIndex, offsetOf, type Position, toData, type TreeNode } from "./document.ts";
import { DOCUMENT_LIMITS, type DocumentLimits, exceedsBytes } from "./document_limits.ts";
import { JsonSyntaxError, readJson } from "./json_tree.ts";
import { readYaml, YamlSyntaxError } from "./yaml_tree.ts";
import { describe, parsePath } from "../../sdk/value_path.ts";
import { type ErrorCode, type ErrorDetail, PreampError } from "../../sdk/errors.ts";
import { isObject, type JsonObject } from "../../sdk/json.ts";

export interface ParsedDocument {
  /** Plain data that is not shared. */
  data: JsonObject;
  /** Returns line and column of the value at a path, or of its nearest ancestor. */
  locate: Locate;
}

/** Options of {@link parseDocument}. */
export interface ParseOptions {
  /** Name of the document in error messages. Default `the plan`. */
  label?: string;
  /** What to write instead of a document that is not an object. */
  hint?: string;
  /** Limits; default {@link DOCUMENT_LIMITS}. */
  limits?: DocumentLimits;
}

/**
 * Parses a plan, or another document of the same form.
 *
 * @throws {PreampError} `plan_invalid` with the place of every problem; `plan_limit_exceeded` if it has too
 * many bytes, values, levels or aliases.
 */
export async function parseDocument(text: string, options: ParseOptions = {}): Promise<ParsedDocument> {
  const limits = options.limits ?? DOCUMENT_LIMITS;
  const label = options.label ?? "the plan";
  if (exceedsBytes(text, limits.max_bytes)) throw tooLarge(label, limits.max_bytes);
  const source = innerText(text.startsWith("\uFEFF") ? text.slice(1) : text, limits);
  const position = lineIndex(source);
  try {
    const root = await read(source, limits);
    if (!root) throw new YamlSyntaxError("the document is empty", 0);
    const data = objectOf(root, { ...options, label, limits }, position);
    return { data, locate: (path) => position(offsetOf(root, path)) };
  } catch (error) {
    throw located(error, label, position);
  }
}

function objectOf(
  root: TreeNode,
  { label, hint, limits }: ParseOptions & { label: string; limits: DocumentLimits },
  position: (offset: number) => Position,
): JsonObject {
  const { data, problems } = toData(root, limits);
  if (problems.length > 0) {
    const details = problems.map((problem) => ({ ...toDetail(problem), ...position(problem.at) }));
    throw documentError("plan_invalid", label, details);
  }
  if (isObject(data)) return data;
  const message = `Cannot read ${label}: must be an object: received ${describe(data)}`;
  const detail = { path: "", ...position(root.at), message, ...(hint === undefined ? {} : { hint }) };
  throw documentError("plan_invalid", label, [detail]);
}

/** Parses a mount plan with {@link parseDocument}. `name` is its name in errors. */
export function parsePlanText(
  text: string,
  { name, limits }: { name?: string; limits?: DocumentLimits } = {},
): Promise<ParsedDocument> {
  return parseDocument(text, {
    label: name === undefined ? "the plan" : `the plan "${name}"`,
    hint: "start with session:",
    ...(limits ? { limits } : {}),
  });
}

/** Returns the error for a document with too many bytes. */
function tooLarge(label: string, max_bytes: number): PreampError {
  return new PreampError(
    "plan_limit_exceeded",
    `Cannot accept ${label}: it has more than ${max_bytes} bytes`,
  );
}

async function read(text: string, limits: DocumentLimits): Promise<TreeNode | undefined> {
  let jsonError: JsonSyntaxError | undefined;
  if (/^[ \t\r\n]*[{["]/.test(text)) {
    try {
      return readJson(text, limits.max_depth);
    } catch (error) {
      if (!(error instanceof JsonSyntaxError)) throw error;
      jsonError = error; // it may be YAML, which allows comments and bare keys
    }
  }
  try {
    return await readYaml(text, limits);
  } catch (error) {
    // the error of the parser that got further is the useful one
    if (jsonError && error instanceof YamlSyntaxError && jsonError.at >= error.at) throw jsonError;
    throw error;
  }
}

/** Returns the inner text if the whole document is one JSON string, else the text itself. */
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

function located(error: unknown, label: string, position: (offset: number) => Position): unknown {
  const report = (code: ErrorCode, at: number, message: string, hint?: string) => {
    const detail = { path: "", ...position(at), message, ...(hint === undefined ? {} : { hint }) };
    return documentError(code, label, [detail], error);
  };
  if (error instanceof LimitPassed) {
    return report("plan_limit_exceeded", error.at, `Cannot read further: ${error.message}`);
  }
  if (error instanceof JsonSyntaxError) {
    return report("plan_invalid", error.at, `Cannot read JSON: ${error.message}`);
  }
  if (error instanceof YamlSyntaxError) {
    return report("plan_invalid", error.at, `Cannot read YAML: ${error.message}`, error.hint);
  }
  return error;
}

/**
 * Returns the details with their places in the text of the plan. Details that have a place, or are
 * about the request, are not changed.
 *
 * @param limits The limits that the text was parsed with.
 */
export async function withPlaces<T extends ErrorDetail>(
  details: readonly T[],
  text: string,
  limits?: DocumentLimits,
): Promise<(T & ErrorDetail)[]> {
  const isPlaced = ({ line, file, path }: ErrorDetail) =>
    line !== undefined || file !== undefined || path.startsWith("request."); // such as a limit of the request
  if (details.every(isPlaced)) return [...details];
  const { locate } = await parsePlanText(text, limits ? { limits } : {}); // the text was parsed before, so it is valid
  return details.map((detail) => {
    const path = isPlaced(detail) ? undefined : parsePath(detail.path);
    if (path === undefined) return detail;
    return Object.assign({ path: detail.path, ...locate(path) }, detail);
  });
}
