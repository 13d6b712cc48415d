/** Reads images and files in the block formats of vendors. */
import { isObject, type JsonObject } from "../json.ts";
import type { MediaPart } from "./conversation.ts";

const IMAGES: ReadonlySet<string> = new Set(["image", "image_url", "input_image"]);
const FILES: ReadonlySet<string> = new Set(["file", "document", "input_file"]);
const DATA_URL = /^data:([^;,]+)(?:;[^,]*)?;base64,/;

/**
 * Returns a block as a part; undefined when it is no image or file, or has no content. Reads `source`
 * (`{type: base64, media_type, data}`, `{type: url, url}`, `{type: file, file_id}`, `{type: text, data}`),
 * `image_url`, `file_data`, `file_url` and `file_id`, also within `file`. A `data:` URL becomes `data`.
 */
export function mediaPart(block: JsonObject): MediaPart | undefined {
  const kind = IMAGES.has(String(block.type)) ? "image" : FILES.has(String(block.type)) ? "file" : undefined;
  if (kind === undefined) return undefined;
  const fields = { ...block, ...(isObject(block.file) ? block.file : {}) };
  const source = isObject(block.source) ? block.source : {};
  const url = text(source.url) ?? urlOf(fields.image_url) ?? text(fields.file_url) ??
    text(fields.file_data) ??
    text(fields.url);
  const name = text(fields.filename) ?? text(fields.name) ?? text(fields.title);
  const content = contentOf(source, fields, url, kind);
  return content && { type: kind, ...content, ...(name === undefined ? {} : { name: name.toWellFormed() }) };
}

type Content = Pick<MediaPart, "data" | "media_type" | "url" | "file_id">;

function contentOf(
  source: JsonObject,
  fields: JsonObject,
  url: string | undefined,
  kind: MediaPart["type"],
): Content | undefined {
  const stated = text(source.media_type) ?? text(fields.media_type) ?? text(fields.mime_type);
  const data = text(source.data) ?? text(fields.data);
  if (data !== undefined && source.type === "text") {
    return { data: new TextEncoder().encode(data).toBase64(), media_type: "text/plain" };
  }
  if (data !== undefined) {
    return { data, media_type: stated ?? (kind === "image" ? "image/png" : "application/pdf") };
  }
  if (url !== undefined) {
    const media_type = DATA_URL.exec(url)?.[1];
    if (media_type !== undefined) return { data: url.slice(url.indexOf(",") + 1), media_type };
    return stated === undefined ? { url } : { url, media_type: stated };
  }
  const file_id = text(source.file_id) ?? text(fields.file_id);
  return file_id === undefined ? undefined : { file_id };
}

function urlOf(value: unknown): string | undefined {
  return text(isObject(value) ? value.url : value);
}

function text(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}
