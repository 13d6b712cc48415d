/** Bounds what a tool returned or threw: texts are shortened, images that are too large are left out. */
import { errorCode, errorMessage, errorName } from "../sdk/errors.ts";
import { estimateJsonBytes, type JsonObject } from "../sdk/json.ts";
import type { ImageBlock } from "../sdk/content_blocks.ts";
import { MAX_IMAGE_CHARS } from "../sdk/image_types.ts";
import type { ResultBlock } from "../sdk/result_content.ts";
import { serializeOutput, ToolResult } from "../sdk/tools.ts";
import type { KernelLimits } from "./session_context.ts";

/**
 * Shortens output, error and the texts of a result to at most `max_tool_result_bytes` each, and replaces
 * images beyond `max_tool_image_bytes` by a note.
 */
export function boundedResult(result: ToolResult, limits: ResultLimits): ToolResult {
  const { success, output, error } = result;
  const limit = limits.max_tool_result_bytes;
  const content = result.content && boundedContent(result.content, limits);
  if (content === result.content && fits(output, limit) && (error === null || fits(error, limit))) {
    return result;
  }
  const shorter = output === null ? null : cut(serializeOutput(result), limit);
  const brief = error === null ? null : briefError(error, limit);
  if (content === result.content && shorter === null && brief === error) return result;
  return ToolResult({ success, output: shorter ?? output, error: brief, content });
}

type ResultLimits = Pick<KernelLimits, "max_tool_result_bytes" | "max_tool_image_bytes">;

/** Returns content within its limits; the same content if it is. */
function boundedContent(content: ResultBlock[], limits: ResultLimits): ResultBlock[] {
  let text_left = limits.max_tool_result_bytes;
  let images_left = limits.max_tool_image_bytes;
  const bounded = content.map((block): ResultBlock => {
    if (block.type === "image") {
      const { media_type, data } = (block as ImageBlock).source;
      images_left -= data.length;
      const is_large = data.length > MAX_IMAGE_CHARS;
      if (!is_large && images_left >= 0) return block;
      images_left += data.length;
      const limit = is_large
        ? `an image may have ${MAX_IMAGE_CHARS} bytes in base64`
        : `max_tool_image_bytes is ${limits.max_tool_image_bytes}`;
      const text = `[An image (${media_type}, ${data.length} bytes in base64) is left out: ${limit}.]`;
      return { type: "text", text };
    }
    const text = String(block.text);
    const shorter = cut(text, text_left);
    if (shorter === null) text_left -= text.length; // characters: enough for a bound
    else text_left = 0;
    return shorter === null ? block : { type: "text", text: shorter };
  });
  return bounded.every((block, index) => block === content[index]) ? content : bounded;
}

/** Returns an error of the tool with a message of at most `limit` bytes. */
export function boundedError(error: unknown, limit: number): unknown {
  const message = cut(errorMessage(error), limit);
  if (message === null) return error;
  const code = errorCode(error);
  return Object.assign(new Error(message), { name: errorName(error) }, code === undefined ? {} : { code });
}

/**
 * Returns whether the text of a value is surely short enough, by its estimated size: a character is at most
 * three bytes, and at most six as an escape in JSON.
 */
function fits(value: unknown, limit: number): boolean {
  return typeof value === "string" ? value.length * 3 <= limit : estimateJsonBytes(value) * 6 <= limit;
}

/**
 * Returns the head and tail of a text with more than `limit` bytes, and a marker between them; null for a
 * shorter text.
 */
function cut(text: string, limit: number): string | null {
  if (text.length * 3 <= limit) return null;
  const bytes = new TextEncoder().encode(text);
  if (bytes.length <= limit) return null;
  const half = Math.floor(limit / 2);
  const decoder = new TextDecoder();
  const head = decoder.decode(bytes.subarray(0, half)).replace(/\ufffd+$/, ""); // half a character at the cut
  const tail = decoder.decode(bytes.subarray(bytes.length - half)).replace(/^\ufffd+/, "");
  return `${head}\n[... ${
    bytes.length - 2 * half
  } of ${bytes.length} bytes cut: max_tool_result_bytes is ${limit} ...]\n${tail}`;
}

/** Returns the error itself when it fits, else an error with only its shortened message. */
function briefError(error: JsonObject, limit: number): JsonObject {
  if (cut(JSON.stringify(error), limit) === null) return error;
  const message = errorMessage(error);
  return { message: cut(message, limit) ?? message };
}
