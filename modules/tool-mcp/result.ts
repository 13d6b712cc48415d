/** What a server answers, as the result of a tool. */
import type { CallToolResult, GetPromptResult, ReadResourceResult } from "@modelcontextprotocol/client";
import { ToolResult } from "preamp/base";

/** Media types of images that models take. */
const IMAGES: ReadonlySet<string> = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);

/** Longest description in a list. */
const MAX_DESCRIPTION = 300;

/** Returns the result of a call: text as text, images as blocks, and words for what models do not take. */
export function resultOf({ content, structuredContent, isError }: CallToolResult): unknown {
  const blocks = content.map((block) => {
    if (block.type === "image" && IMAGES.has(block.mimeType)) {
      return { type: "image", source: { type: "base64", media_type: block.mimeType, data: block.data } };
    }
    return { type: "text", text: textOfBlock(block) };
  });
  const texts = blocks.flatMap((block) => "text" in block ? [block.text] : []);
  const text = texts.join("\n") || (structuredContent ? JSON.stringify(structuredContent) : "");
  if (isError === true) {
    return ToolResult({
      success: false,
      output: text || "The tool failed without a message",
      error: { message: "the server reports a failure", type: "mcp_tool_failed" },
    });
  }
  return texts.length === blocks.length ? text || "Success" : blocks;
}

/** Returns a line of a list: what a resource or prompt is called by, and what it is. */
export function lineOf(
  key: string,
  { title, description }: { title?: string | undefined; description?: string | undefined },
): string {
  const text = description ?? title ?? "";
  return text === "" ? key : `${key}: ${text.slice(0, MAX_DESCRIPTION)}`;
}

/** Returns the text of a resource. */
export function textOfContents({ contents }: ReadResourceResult): string {
  return contents.map((resource) => textOfBlock({ type: "resource", resource })).join("\n");
}

/** Returns the messages of a prompt as text. */
export function textOfPrompt({ messages }: GetPromptResult): string {
  return messages.map(({ role, content }) => `${role}: ${textOfBlock(content)}`).join("\n");
}

function textOfBlock(block: CallToolResult["content"][number]): string {
  switch (block.type) {
    case "text":
      return block.text;
    case "resource":
      return "text" in block.resource
        ? `${block.resource.uri}\n${block.resource.text}`
        : `(${block.resource.uri}: binary, ${block.resource.mimeType ?? "of unknown type"})`;
    case "resource_link":
      return `(resource ${block.uri}${block.description ? `: ${block.description}` : ""})`;
    case "image":
    case "audio":
      return `(${block.type} of type ${block.mimeType}, which cannot be shown)`;
    default:
      return "(a block that cannot be shown)";
  }
}
