/** Parses `multipart/form-data` to the fields of a request: see src/docs/http.md#start-a-run. */
import { documentError } from "../../plan/check/findings.ts";
import { DOCUMENT_LIMITS } from "../../plan/parse/document_limits.ts";
import { PreampError } from "../../sdk/errors.ts";
import type { JsonObject } from "../../sdk/json.ts";
import { readJsonData } from "./document.ts";
import { parsePlainJson } from "./json.ts";
import { decodeUtf8 } from "./read_bytes.ts";
import { quoteTruncated } from "../../text/escape.ts";
import { parseMediaType } from "../negotiation.ts";

/** Fields that contain JSON; the others contain text. */
const JSON_FIELDS: ReadonlySet<string> = new Set(["limits", "metadata", "lock", "background"]);

/**
 * Parses a form. `limits`, `metadata`, `lock`, `background` and files of type `application/json` are parsed
 * as JSON. `plan` stays text, for the plan's own reader.
 *
 * @throws {PreampError} `request_invalid` for a malformed form, a duplicate field, invalid JSON or invalid
 * UTF-8.
 */
export async function readForm(bytes: Uint8Array<ArrayBuffer>, contentType: string): Promise<JsonObject> {
  // formData() replaces invalid UTF-8 by U+FFFD and takes 0.3 s for 16,000 parts, so both are checked before.
  checkParts(decodeUtf8(bytes, "the request body"), contentType);
  const fields: JsonObject = {};
  for (const [name, value] of await parseForm(bytes, contentType)) {
    if (Object.hasOwn(fields, name) || name in fields) throw invalidField(name);
    const text = typeof value === "string"
      ? value
      : decodeUtf8(await value.bytes(), `field ${JSON.stringify(name)}`);
    const isJson = JSON_FIELDS.has(name) ||
      (name !== "plan" && typeof value !== "string" && value.type === "application/json");
    fields[name] = isJson
      ? parsePlainJson(text, DOCUMENT_LIMITS) ?? readJsonData(text, `field ${JSON.stringify(name)}`)
      : text;
  }
  return fields;
}

/** More than the fields of any request. */
const MAX_PARTS = 64;
/** RFC 2046 §5.1.1. */
const MAX_BOUNDARY = 70;

function checkParts(text: string, contentType: string): void {
  const boundary = parseMediaType(contentType).boundary ?? "";
  if (boundary === "" || boundary.length > MAX_BOUNDARY) {
    throw new PreampError(
      "request_invalid",
      `Cannot read the request body: its Content-Type must name a boundary of 1 to ${MAX_BOUNDARY} characters`,
    );
  }
  const delimiter = `--${boundary}`;
  let parts = 0;
  for (let at = text.indexOf(delimiter); at !== -1; at = text.indexOf(delimiter, at + delimiter.length)) {
    if (++parts > MAX_PARTS) {
      throw new PreampError(
        "request_invalid",
        `Cannot read the request body: a form may have at most ${MAX_PARTS} parts`,
      );
    }
  }
}

async function parseForm(bytes: Uint8Array<ArrayBuffer>, contentType: string): Promise<FormData> {
  try {
    return await new Response(bytes, { headers: { "content-type": contentType } }).formData();
  } catch (cause) {
    throw new PreampError(
      "request_invalid",
      "Cannot read the request body: it is not valid multipart/form-data",
      { cause },
    );
  }
}

/** Creates the error for a duplicate field or a name such as `__proto__`. */
function invalidField(name: string): PreampError {
  const message = `Cannot read field ${quoteTruncated(name, 80)}: the name is duplicate or not allowed`;
  return documentError("request_invalid", "the request body", [{ path: name, message }]);
}
