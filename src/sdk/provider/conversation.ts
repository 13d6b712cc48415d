/**
 * The form of a history that vendors' converters read, and its images and files. {@link toConversation} makes
 * it from any list of messages.
 */
import { base64ImageType } from "../images.ts";
import { isObject, type JsonObject } from "../json.ts";

/** A part after which a prompt cache may end. */
export interface CachedPart {
  /** Whether a prompt cache may end after this part. */
  readonly cache?: true;
}

/** Text. */
export interface TextPart extends CachedPart {
  /** Kind of part. */
  readonly type: "text";
  /** The text; never only white space. */
  readonly text: string;
  /** The stored block, when this provider wrote it and it has more fields. */
  readonly block?: JsonObject;
}

/** An image or a file: `data` with `media_type`, or `url`, or `file_id`. */
export interface MediaPart extends CachedPart {
  /** A file is a PDF or a text. */
  readonly type: "image" | "file";
  /** Media type, such as `image/png`; for a URL only when it is known. */
  readonly media_type?: string;
  /** Content in base64. */
  readonly data?: string;
  /** Address of the content. */
  readonly url?: string;
  /** The vendor's id of an uploaded file. */
  readonly file_id?: string;
  /** File name. */
  readonly name?: string;
}

/** Result of a tool call. */
export interface ToolResultPart extends CachedPart {
  /** Kind of part. */
  readonly type: "tool_result";
  /** Id of the call. */
  readonly tool_call_id: string;
  /** Name of the tool. */
  readonly name: string;
  /** Output: text, possibly empty, or parts when it has images or files. */
  readonly content: string | readonly (TextPart | MediaPart)[];
  /** Whether the call failed; false when that is unknown. */
  readonly is_error: boolean;
}

/** A tool call of the model. */
export interface ToolCallPart extends CachedPart {
  /** Kind of part. */
  readonly type: "tool_call";
  /** Id: unique in the conversation, 1 to 64 letters, digits, `_` and `-`. */
  readonly id: string;
  /** Name of the tool: 1 to 64 letters, digits, `_` and `-`. */
  readonly name: string;
  /** Arguments; `{}` when they were not a JSON object. */
  readonly input: JsonObject;
  /** The stored block, when this provider wrote it and it has more fields. */
  readonly block?: JsonObject;
}

/**
 * A block that only this provider understands, such as thinking with a signature; to be sent back unchanged.
 */
export interface NativePart {
  /** Kind of part. */
  readonly type: "native";
  /** The stored block, without the fields that the provider layer adds. */
  readonly block: JsonObject;
}

/** Part of a user turn. Results come first. */
export type UserPart = TextPart | MediaPart | ToolResultPart;

/** Part of an assistant turn. */
export type AssistantPart = TextPart | ToolCallPart | NativePart;

/** Consecutive messages of one side. */
export type Turn =
  | { readonly role: "user"; readonly parts: readonly UserPart[] }
  | { readonly role: "assistant"; readonly parts: readonly AssistantPart[] };

/**
 * A history: `turns` alternate between user and assistant, and start and end with a user turn. Every tool
 * call has exactly one result, at the start of the next turn, in the order of the calls. No part and no turn
 * is empty. Text is well-formed Unicode.
 */
export interface Conversation {
  /** Texts of the system messages at the beginning. */
  readonly system: readonly TextPart[];
  /** The turns, oldest first; at least one. */
  readonly turns: readonly Turn[];
}

/** A call without a result, for which one was added. */
export interface Repair {
  /** Id of the call. */
  tool_call_id: string;
  /** Name of its tool. */
  tool_name: string;
}

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
  const data = text(source.data) ?? text(fields.data);
  const stated = mediaType(text(source.media_type) ?? text(fields.media_type) ?? text(fields.mime_type));
  if (data !== undefined && source.type === "text") {
    return { data: new TextEncoder().encode(data).toBase64(), media_type: "text/plain" };
  }
  if (data !== undefined) return ofBytes(data, kind, stated);
  if (url !== undefined) {
    const media_type = mediaType(DATA_URL.exec(url)?.[1]);
    if (media_type !== undefined) return ofBytes(url.slice(url.indexOf(",") + 1), kind, media_type);
    return stated === undefined ? { url } : { url, media_type: stated };
  }
  const file_id = text(source.file_id) ?? text(fields.file_id);
  return file_id === undefined ? undefined : { file_id };
}

/** Vendors refuse an image whose type is not what its bytes say. */
function ofBytes(data: string, kind: MediaPart["type"], stated: string | undefined): Content {
  const found = kind === "image" ? base64ImageType(data) : undefined;
  return { data, media_type: found ?? stated ?? (kind === "image" ? "image/png" : "application/pdf") };
}

/**
 * Returns the registered name of a type, without parameters: vendors refuse `image/jpg`, which tools write.
 */
function mediaType(stated: string | undefined): string | undefined {
  const type = stated?.replace(/;.*/s, "").trim().toLowerCase();
  return type === "image/jpg" ? "image/jpeg" : type;
}

function urlOf(value: unknown): string | undefined {
  return text(isObject(value) ? value.url : value);
}

function text(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** Returns the content of a text file; undefined for other files, and for data that is not base64. */
export function textOfFile({ type, media_type, data }: MediaPart): string | undefined {
  if (type !== "file" || data === undefined || !media_type?.startsWith("text/")) return undefined;
  try {
    return new TextDecoder().decode(Uint8Array.fromBase64(data));
  } catch {
    return undefined;
  }
}
