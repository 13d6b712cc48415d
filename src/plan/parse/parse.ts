/**
 * Parses text into data: YAML 1.2 or JSON, or either of them inside a JSON string. Refuses documents beyond
 * the limits, duplicate keys and forbidden keys, with line and column. Independent of plans.
 */
import { documentError, type Locate, toDetail } from "../check/findings.ts";
import { DOCUMENT_LIMITS, type DocumentLimits, exceedsBytes } from "./document_limits.ts";
import { LimitPassed, offsetOf, toData, type TreeNode } from "./document_tree.ts";
import { JsonSyntaxError, readJson } from "./json_tree.ts";
import { lineIndex, type Position } from "./line_index.ts";
import { readYaml, YamlSyntaxError } from "./yaml_tree.ts";
import { describe, parsePath } from "../../sdk/value_path.ts";
import { type ErrorDetail, PreampError } from "../../sdk/errors.ts";
import { isObject, type JsonObject } from "../../sdk/json.ts";

/** A parsed document. */
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
    const { data, problems } = toData(root, limits);
    if (problems.length > 0) {
      const details = problems.map((problem) => ({ ...toDetail(problem), ...position(problem.at) }));
      throw documentError("plan_invalid", label, details);
    }
    if (!isObject(data)) throw notAnObject(label, data, position(root.at));
    return { data, locate: (path) => position(offsetOf(root, path)) };
  } catch (error) {
    throw located(error, label, position);
  }
}

/** Parses a mount plan with {@link parseDocument}. `name` is its name in errors. */
export function parsePlanText(
  text: string,
  { name, limits }: { name?: string; limits?: DocumentLimits } = {},
): Promise<ParsedDocument> {
  return parseDocument(text, {
    label: name === undefined ? "the plan" : `the plan "${name}"`,
    ...(limits ? { limits } : {}),
  });
}

/** Returns the error for a document with too many bytes. */
export function tooLarge(label: string, max_bytes: number): PreampError {
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

function located(error: unknown, label: string, position: (at: number) => Position): unknown {
  if (error instanceof LimitPassed) {
    const detail: ErrorDetail = {
      path: "",
      ...position(error.at),
      message: `Cannot read further: ${error.message}`,
    };
    return documentError("plan_limit_exceeded", label, [detail], error);
  }
  if (error instanceof JsonSyntaxError || error instanceof YamlSyntaxError) {
    const language = error instanceof JsonSyntaxError ? "JSON" : "YAML";
    const detail: ErrorDetail = {
      path: "",
      ...position(error.at),
      message: `Cannot read ${language}: ${error.message}`,
    };
    if (error instanceof YamlSyntaxError && error.hint !== undefined) detail.hint = error.hint;
    return documentError("plan_invalid", label, [detail], error);
  }
  return error;
}

function notAnObject(label: string, data: unknown, place: Position): PreampError {
  const message = `Cannot read ${label}: must be an object: received ${describe(data)}`;
  return documentError("plan_invalid", label, [{ path: "", ...place, message, hint: "start with session:" }]);
}

/**
 * Returns the details with their places in the text of the plan. Details that have a place are not changed.
 *
 * @param limits The limits that the text was parsed with.
 */
export async function withPlaces<T extends ErrorDetail>(
  details: readonly T[],
  text: string,
  limits?: DocumentLimits,
): Promise<(T & ErrorDetail)[]> {
  const isPlaced = ({ line, file }: ErrorDetail) => line !== undefined || file !== undefined;
  if (details.every(isPlaced)) return [...details];
  const { locate } = await parsePlanText(text, limits ? { limits } : {}); // the text was parsed before, so it is valid
  return details.map((detail) => {
    const path = isPlaced(detail) ? undefined : parsePath(detail.path);
    if (path === undefined) return detail;
    return Object.assign({ path: detail.path, ...locate(path) }, detail);
  });
}
