/**
 * Parses a request body by its content type. Recognises a plan by its `session` key and knows nothing else of
 * plans.
 */
import type { TreeNode } from "../../plan/parse/document.ts";
import { PreampError } from "../../sdk/errors.ts";
import { isObject, type JsonValue } from "../../sdk/json.ts";
import type { RequestContext, ServerState } from "../context.ts";
import { parsePlainJson } from "./json.ts";
import { decodeUtf8, readBody } from "./read_bytes.ts";
import { quoteTruncated } from "../../text/escape.ts";
import { parseMediaType } from "../negotiation.ts";

/** A parsed body: the fields of a request, or the text of a plan that is the whole body. */
export type BodyDocument = { kind: "fields"; data: JsonValue } | { kind: "plan"; text: string };

/** A request whose body is read, the limits of the body, and the clock of its deadline. */
export type BodySource = Pick<RequestContext, "request" | "body"> & {
  readonly server: Pick<ServerState, "clock">;
};

/** Name of the body in errors. */
const LABEL = "the request body";
const JSON_TYPE = "application/json";
const YAML_TYPES: ReadonlySet<string> = new Set([
  "application/yaml",
  "application/x-yaml",
  "text/yaml",
  "text/x-yaml",
]);
const FORM_TYPE = "multipart/form-data";
/** Stated by `curl -d` and `--data-binary`, whatever the body is. */
const CURL_TYPE = "application/x-www-form-urlencoded";
/** Matches the body of `curl -d prompt=Hello` and `--data-urlencode`. */
const PAIRS = /^[A-Za-z_]\w*=[^\n]*$/;
/** Matches the begin of JSON that is an object, and not that of a plan such as `{session: …}`. */
const JSON_OBJECT = /^\s*\{\s*["}]/;

/**
 * Reads a body that may be JSON, YAML, a form, or itself a plan; with the type that curl states, any of
 * them. A plan is returned as text, so that the plan's own reader reports errors with their line. YAML that
 * cannot be parsed is returned as a plan too.
 *
 * @throws {PreampError} as {@link readBody}; `unsupported_media_type`; `request_invalid`; a plan's codes for
 * errors inside `plan`.
 */
export async function readDocument({ request, body: limits, server }: BodySource): Promise<BodyDocument> {
  const header = request.headers.get("content-type");
  const type = checkedType(header, true);
  const bytes = await readBody(request, limits, server.clock);
  if (type === FORM_TYPE) {
    const { readForm } = await import("./multipart.ts");
    // Bytes of a request are never shared memory; the header is present, since it named the type.
    return { kind: "fields", data: await readForm(bytes as Uint8Array<ArrayBuffer>, header!) as JsonValue };
  }
  const text = decodeUtf8(bytes, LABEL);
  if (type === CURL_TYPE && PAIRS.test(text)) {
    const { readPairs } = await import("./multipart.ts");
    return { kind: "fields", data: readPairs(text) as JsonValue };
  }
  const is_json = type === JSON_TYPE || type === CURL_TYPE && JSON_OBJECT.test(text);
  const data = is_json ? parsePlainJson(text, limits.plan) : undefined;
  if (data !== undefined) {
    return isObject(data) && Object.hasOwn(data, "session")
      ? { kind: "plan", text }
      : { kind: "fields", data };
  }
  const { readJsonTree, readYamlTree, treeData } = await import("./document.ts");
  const tree = is_json ? readJsonTree(text, LABEL, limits.plan) : await readYamlTree(text, limits.plan);
  if (tree === null && type === CURL_TYPE) throw unreadable();
  if (tree === null || isPlan(tree)) return { kind: "plan", text };
  return { kind: "fields", data: treeData(tree, text, LABEL, limits.plan) };
}

/**
 * Parses a JSON body; returns `empty` for an empty one.
 *
 * @throws {PreampError} as {@link readBody}; `unsupported_media_type`, `request_invalid`.
 */
export async function readJsonBody(
  { request, body: limits, server }: BodySource,
  empty?: JsonValue,
): Promise<JsonValue | undefined> {
  const header = request.headers.get("content-type");
  if (header !== null) checkedType(header, false);
  const bytes = await readBody(request, limits, server.clock);
  if (bytes.byteLength === 0) return empty;
  if (header === null) checkedType(header, false);
  const text = decodeUtf8(bytes, LABEL);
  if (!JSON_OBJECT.test(text) && parseMediaType(header).type === CURL_TYPE) throw unreadable();
  return parsePlainJson(text, limits.plan) ??
    (await import("./document.ts")).readJsonData(text, LABEL, limits.plan);
}

function checkedType(header: string | null, accepts_plans: boolean): string {
  const { type, charset } = parseMediaType(header);
  const known = type === JSON_TYPE || type === CURL_TYPE ||
    (accepts_plans && (type === FORM_TYPE || YAML_TYPES.has(type)));
  if (known && (charset === null || charset === "utf-8" || charset === "us-ascii")) return type;
  const accepted = accepts_plans ? `${JSON_TYPE}, application/yaml or ${FORM_TYPE}` : JSON_TYPE;
  throw new PreampError(
    "unsupported_media_type",
    `Cannot read ${LABEL}: Content-Type must be ${accepted}, in UTF-8: received ${
      header === null ? "none" : quoteTruncated(header)
    }`,
  );
}

/** Returns the error for a body of `curl -d` that is nothing that a request may be. */
function unreadable(): PreampError {
  return new PreampError(
    "request_invalid",
    `Cannot read ${LABEL}: it is neither JSON, nor a plan, nor fields such as prompt=Hello: with curl write ` +
      `--json '{"prompt": "Hello"}', and a plan as --data-binary @plan.yaml (-d removes its line ends)`,
  );
}

function isPlan(tree: TreeNode): boolean {
  return tree.kind === "map" && tree.entries.some(({ key }) => key === "session");
}
