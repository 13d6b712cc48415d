/** A request body → data, in every form a body may have. Knows a plan by its `session` key and nothing else of plans. */
import { DOCUMENT_LIMITS, type DocumentLimits, exceedsBytes } from "../../plan/parse/document_limits.ts";
import { readYaml, YamlSyntaxError } from "../../plan/parse/yaml_tree.ts";
import { LimitPassed, type TreeNode } from "../../plan/parse/document_tree.ts";
import { PreampError } from "../../sdk/errors.ts";
import { isObject, type JsonValue } from "../../sdk/json.ts";
import { type BodyLimits, readBody } from "./read_bytes.ts";
import type { ServerClock } from "../clock.ts";
import { decodeUtf8, readForm } from "./multipart.ts";
import { parseJsonData, parseSimpleJson, readJsonTree, treeData } from "./json.ts";
import { parseMediaType } from "../negotiation.ts";

/** A body that was read: a request's fields, or the text of a plan that is the whole body. */
export type BodyDocument = { kind: "fields"; data: JsonValue } | { kind: "plan"; text: string };

/** How errors call a body. */
const WHAT = "the request body";
const JSON_TYPE = "application/json";
const YAML_TYPES: ReadonlySet<string> = new Set([
  "application/yaml",
  "application/x-yaml",
  "text/yaml",
  "text/x-yaml",
]);
const FORM_TYPE = "multipart/form-data";

/**
 * Reads a body that may be JSON, YAML, a form, or itself a plan. The text of a plan is handed on as it came, so that the
 * plan's own reader finds its errors and tells their line; YAML that cannot be read is taken for one.
 *
 * @throws {PreampError} as {@link readBody}; `unsupported_media_type`; `request_invalid`, and the plan's codes for what is
 * wrong inside `plan`.
 */
export async function readDocument(
  request: Request,
  limits: BodyLimits,
  clock: ServerClock,
): Promise<BodyDocument> {
  const header = request.headers.get("content-type");
  const type = checkedType(header, true);
  const bytes = await readBody(request, limits, clock);
  if (type === FORM_TYPE) {
    // Bytes of a request are never shared memory; header is there, it named the type.
    return { kind: "fields", data: await readForm(bytes as Uint8Array<ArrayBuffer>, header!) as JsonValue };
  }
  const text = decodeUtf8(bytes, WHAT);
  const data = type === JSON_TYPE ? parseSimpleJson(text) : undefined;
  if (data !== undefined) {
    return isObject(data) && Object.hasOwn(data, "session")
      ? { kind: "plan", text }
      : { kind: "fields", data };
  }
  const tree = type === JSON_TYPE
    ? readJsonTree(text, WHAT, limits.plan)
    : await readYamlTree(text, limits.plan);
  if (tree === null || isPlan(tree)) return { kind: "plan", text };
  return { kind: "fields", data: treeData(tree, text, WHAT, limits.plan) };
}

/**
 * Reads a JSON body; undefined when it is empty.
 *
 * @throws {PreampError} as {@link readBody}; `unsupported_media_type`, `request_invalid`.
 */
export async function readJsonBody(
  request: Request,
  limits: BodyLimits,
  clock: ServerClock,
): Promise<JsonValue | undefined> {
  const header = request.headers.get("content-type");
  if (header !== null) checkedType(header, false);
  const bytes = await readBody(request, limits, clock);
  if (bytes.byteLength === 0) return undefined;
  if (header === null) checkedType(header, false);
  return parseJsonData(decodeUtf8(bytes, WHAT), WHAT, limits.plan);
}

function checkedType(header: string | null, plans: boolean): string {
  const { type, charset } = parseMediaType(header);
  const known = type === JSON_TYPE || (plans && (type === FORM_TYPE || YAML_TYPES.has(type)));
  if (known && (charset === null || charset === "utf-8" || charset === "us-ascii")) return type;
  const takes = plans ? `${JSON_TYPE}, application/yaml or ${FORM_TYPE}` : JSON_TYPE;
  throw new PreampError(
    "unsupported_media_type",
    `Cannot read ${WHAT}: Content-Type must be ${takes}, in UTF-8: received ${
      header === null ? "none" : JSON.stringify(header.slice(0, 200))
    }`,
  );
}

/** Resolves to the tree of a YAML text, or null when only the plan's reader can tell what is wrong with it. */
async function readYamlTree(text: string, plan: DocumentLimits): Promise<TreeNode | null> {
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

function isPlan(tree: TreeNode): boolean {
  return tree.kind === "map" && tree.entries.some(({ key }) => key === "session");
}
