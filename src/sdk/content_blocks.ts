/** The blocks of content: texts, reasoning, tool calls, images. */
import type { JsonObject } from "./json.ts";

/** Text. */
export interface TextBlock {
  /** Kind of block. */
  type: "text";
  /** The text. */
  text: string;
  /** Other fields of the provider. */
  [key: string]: unknown;
}

/** Reasoning of the model. */
export interface ThinkingBlock {
  /** Kind of block. */
  type: "thinking";
  /** The reasoning. */
  thinking: string;
  /** The provider's signature of the reasoning; sent back unchanged. */
  signature?: string;
  /** Other fields of the provider. */
  [key: string]: unknown;
}

/** A tool call inside the content of an assistant message. */
export interface ToolCallBlock {
  /** Kind of block. */
  type: "tool_call";
  /** Id of the call. */
  id: string;
  /** Name of the tool. */
  name: string;
  /** Arguments of the call. */
  input: JsonObject;
  /** Other fields of the provider. */
  [key: string]: unknown;
}

/** An image inside of content, in base64. */
export interface ImageBlock {
  /** Kind of block. */
  type: "image";
  /** The image. */
  source: {
    /** Form of the image. */
    type: "base64";
    /** Media type, such as `image/png`. */
    media_type: string;
    /** The bytes in base64. */
    data: string;
  };
  /** Other fields of the provider. */
  [key: string]: unknown;
}

/** Any other block: redacted_thinking, tool_result, reasoning, and blocks of one provider. */
export interface OtherBlock {
  /** Kind of block. */
  type: string;
  /** Its fields. */
  [key: string]: unknown;
}

/** One block of content. Unknown types and extra fields are kept. */
export type ContentBlock = TextBlock | ThinkingBlock | ToolCallBlock | ImageBlock | OtherBlock;
