/** Parses forms to the fields of a request: see src/docs/http.md#start-a-run. */
import { documentError } from "../../plan/check/findings.ts";
import { DOCUMENT_LIMITS } from "../../plan/parse/document_limits.ts";
import { PreampError } from "../../sdk/errors.ts";
import { imageBlock } from "../../sdk/images.ts";
import type { ImageBlock } from "../../sdk/content_blocks.ts";
import type { JsonObject } from "../../sdk/json.ts";
import { readJsonData } from "./document.ts";
import { parsePlainJson } from "./json.ts";
import { decodeUtf8 } from "./read_bytes.ts";
import { quoteTruncated } from "../../text/escape.ts";
import { parseMediaType } from "../negotiation.ts";

/** Fields that contain JSON; the others contain text. */
const JSON_FIELDS: ReadonlySet<string> = new Set(["limits", "metadata", "lock", "background"]);

/** The field of files that are pictures of the prompt. */
const IMAGE = "image";

/**
 * Parses `multipart/form-data`. `limits`, `metadata`, `lock`, `background` and files of type
 * `application/json` are parsed as JSON. `plan` stays text, for the plan's own reader. Files of the field
 * `image` become pictures of the prompt.
 *
 * @throws {PreampError} `request_invalid` for a malformed form, a duplicate field, invalid JSON or invalid
 * UTF-8, and a picture of another type than PNG, JPEG, GIF and WebP.
 */
export async function readForm(bytes: Uint8Array<ArrayBuffer>, contentType: string): Promise<JsonObject> {
  // formData() takes 0.3 s for 16,000 parts, so they are counted before
  checkParts(new TextDecoder("latin1").decode(bytes), contentType);
  const fields: JsonObject = {};
  const images: ImageBlock[] = [];
  for (const [name, value] of await parseForm(bytes, contentType)) {
    if (name === IMAGE && typeof value !== "string") images.push(await readImage(value));
    else {
      const label = `field ${JSON.stringify(name)}`;
      const text = typeof value === "string"
        ? wellDecoded(value, label)
        : decodeUtf8(await value.bytes(), label);
      const has_json = name !== "plan" && typeof value !== "string" && value.type === "application/json";
      addField(fields, name, text, has_json);
    }
  }
  return images.length === 0 ? fields : { ...fields, prompt: withImages(fields.prompt, images) };
}

/** Parses the pairs of `application/x-www-form-urlencoded`. @throws {PreampError} as {@link readForm}. */
export function readPairs(text: string): JsonObject {
  const fields: JsonObject = {};
  const pairs = [...new URLSearchParams(text.trimEnd())];
  if (pairs.length > MAX_PARTS) throw tooManyParts();
  for (const [name, value] of pairs) {
    addField(fields, name, wellDecoded(value, `field ${JSON.stringify(name)}`), false);
  }
  return fields;
}

function addField(fields: JsonObject, name: string, text: string, has_json: boolean): void {
  if (name in fields) throw invalidField(name); // also names that every object has
  const is_json = has_json || JSON_FIELDS.has(name);
  fields[name] = is_json
    ? parsePlainJson(text, DOCUMENT_LIMITS) ?? readJsonData(text, `field ${JSON.stringify(name)}`)
    : text;
}

/** Returns text that a form's parser has decoded: it replaces bytes that are no UTF-8. */
function wellDecoded(text: string, label: string): string {
  if (!text.includes("\uFFFD")) return text;
  throw new PreampError("request_invalid", `Cannot read ${label}: it is not valid UTF-8`);
}

async function readImage(file: File): Promise<ImageBlock> {
  const image = imageBlock(await file.bytes());
  if (image) return image;
  const name = quoteTruncated(file.name, 80);
  const message = `Cannot read field image: ${name} is no PNG, JPEG, GIF or WebP`;
  throw documentError("request_invalid", "the request body", [{ path: IMAGE, message }]);
}

/** Returns a prompt with pictures; without a text, the check of the request reports that. */
function withImages(prompt: unknown, images: readonly ImageBlock[]): unknown {
  return typeof prompt === "string" ? [{ type: "text", text: prompt }, ...images] : prompt;
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
    if (++parts > MAX_PARTS) throw tooManyParts();
  }
}

function tooManyParts(): PreampError {
  return new PreampError(
    "request_invalid",
    `Cannot read the request body: a form may have at most ${MAX_PARTS} parts`,
  );
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
