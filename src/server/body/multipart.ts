/** `multipart/form-data` → the fields of a request, each sent as text or as a file (http.md, Runs). */
import { documentError } from "../../plan/check/findings.ts";
import { PreampError } from "../../sdk/errors.ts";
import type { JsonObject } from "../../sdk/json.ts";
import { parseJsonData } from "./json.ts";
import { parseMediaType } from "../negotiation.ts";

/** Fields whose text is JSON; the rest is text as it is. */
const JSON_FIELDS: ReadonlySet<string> = new Set(["limits", "metadata", "lock", "background"]);

/**
 * Returns the fields of a form. `limits`, `metadata`, `lock` and `background` are read as JSON, and so is any file that
 * says it is `application/json`, but for `plan`, whose text the plan's own reader takes.
 *
 * @throws {PreampError} `request_invalid` for a broken form, a field sent twice, JSON that is none, bytes that are not UTF-8.
 */
export async function readForm(bytes: Uint8Array<ArrayBuffer>, contentType: string): Promise<JsonObject> {
  // The form's own decoder would put U+FFFD for what is no UTF-8, and takes 0.3 s for 16,000 parts.
  checkParts(decodeUtf8(bytes, "the request body"), contentType);
  const fields: JsonObject = {};
  for (const [name, value] of await parseForm(bytes, contentType)) {
    if (Object.hasOwn(fields, name) || name in fields) throw unusable(name);
    const text = typeof value === "string"
      ? value
      : decodeUtf8(await value.bytes(), `field ${JSON.stringify(name)}`);
    const isJson = JSON_FIELDS.has(name) ||
      (name !== "plan" && typeof value !== "string" && value.type === "application/json");
    fields[name] = isJson ? parseJsonData(text, `field ${JSON.stringify(name)}`) : text;
  }
  return fields;
}

/** More than any request has fields. */
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
        `Cannot read the request body: a form may have ${MAX_PARTS} parts: received more`,
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
      "Cannot read the request body: it must be a form as its Content-Type says: received something else",
      { cause },
    );
  }
}

/** Sent twice, or a name that every object has already, such as `__proto__`. */
function unusable(name: string): PreampError {
  const message = `Cannot read field ${
    JSON.stringify(name.slice(0, 80))
  }: it may be sent once, under a name of this request`;
  return documentError("request_invalid", "the request body", [{ path: name, message }]);
}

/**
 * Returns bytes as text, without a byte order mark.
 *
 * @throws {PreampError} `request_invalid` when they are not UTF-8.
 */
export function decodeUtf8(bytes: Uint8Array, what: string): string {
  try {
    return STRICT.decode(bytes);
  } catch (cause) {
    throw new PreampError("request_invalid", `Cannot read ${what}: it must be UTF-8: received other bytes`, {
      cause,
    });
  }
}

const STRICT = new TextDecoder("utf-8", { fatal: true });
