/** What a server answers, as the result of a tool. */
import type { CallToolResult } from "@modelcontextprotocol/client";
import { ToolResult } from "preamp/base";

/** Media types of images that models take. */
const IMAGES: ReadonlySet<string> = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);

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
    default:
      return `(${block.type} of type ${block.mimeType}, which cannot be shown)`;
  }
}
