/**
 * The form of a history that vendors' converters read. {@link toConversation} makes it from any list of
 * messages.
 */
import type { JsonObject } from "../json.ts";

/** Text. */
export interface TextPart {
  /** Kind of part. */
  readonly type: "text";
  /** The text; never only white space. */
  readonly text: string;
  /** Whether a prompt cache may end after this part. */
  readonly cache?: true;
  /** The stored block, when this provider wrote it and it has more fields. */
  readonly block?: JsonObject;
}

/** An image or a file: `data` with `media_type`, or `url`, or `file_id`. */
export interface MediaPart {
  /** Kind of part; a file is a PDF or a text. */
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
  /** Whether a prompt cache may end after this part. */
  readonly cache?: true;
}

/** Result of a tool call. */
export interface ToolResultPart {
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
  /** Whether a prompt cache may end after this part. */
  readonly cache?: true;
}

/** A tool call of the model. */
export interface ToolCallPart {
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
  /** Whether a prompt cache may end after this part. */
  readonly cache?: true;
}

/** A block that only this provider understands, such as thinking with a signature; to be sent back unchanged. */
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
