/** Shortens what a tool returned or threw to `max_tool_result_bytes`. */
import { errorCode, errorMessage, errorName } from "../../sdk/errors.ts";
import { estimateJsonBytes, type JsonObject } from "../../sdk/json.ts";
import { serializeOutput, ToolResult } from "../../sdk/tools.ts";

/** Shortens output and error of a result to at most `limit` bytes each. */
export function boundedResult(result: ToolResult, limit: number): ToolResult {
  const { success, output, error } = result;
  if (fits(output, limit) && (error === null || fits(error, limit))) return result;
  const shorter = output === null ? null : cut(serializeOutput(result), limit);
  const brief = error === null ? null : briefError(error, limit);
  if (shorter === null && brief === error) return result;
  return ToolResult({ success, output: shorter ?? output, error: brief });
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
