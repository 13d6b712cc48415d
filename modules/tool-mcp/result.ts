/** What a server answers, as the result of a tool. */
import type { CallToolResult, GetPromptResult, ReadResourceResult } from "@modelcontextprotocol/client";
import { imageFromBase64, type ResultBlock, ToolResult } from "preamp/base";

type Block = CallToolResult["content"][number];

/** Longest description in a list. */
const MAX_DESCRIPTION = 300;

/** Returns the result of a call: text as text, images as blocks, and words for what models do not take. */
export function resultOf({ content, structuredContent, isError }: CallToolResult): unknown {
  const blocks = content.flatMap((block) => blocksOf(block));
  const result = resultOfBlocks(blocks, structuredContent ? JSON.stringify(structuredContent) : "");
  if (isError !== true) return result.content ? result : result.output || "Success";
  return ToolResult({
    ...result,
    success: false,
    output: result.output || "The tool failed without a message",
    error: { message: "the server reports a failure", type: "mcp_tool_failed" },
  });
}

/** Returns blocks as a result: its output is their text, and its content the blocks if one is an image. */
function resultOfBlocks(blocks: readonly ResultBlock[], otherwise = ""): ToolResult {
  const text = blocks.map((block) => block.type === "text" ? block.text : "(an image)").join("\n");
  const has_images = blocks.some(({ type }) => type === "image");
  return ToolResult({ output: text || otherwise, ...(has_images ? { content: blocks } : {}) });
}

/** Returns a line of a list: what a resource or prompt is called by, and what it is. */
export function lineOf(
  key: string,
  { title, description }: { title?: string | undefined; description?: string | undefined },
): string {
  const text = description ?? title ?? "";
  return text === "" ? key : `${key}: ${text.slice(0, MAX_DESCRIPTION)}`;
}

/** Returns a resource as a result. */
export function resultOfContents({ contents }: ReadResourceResult): unknown {
  return resultOf({ content: contents.map((resource) => ({ type: "resource", resource })) });
}

/** Returns the messages of a prompt as a result. */
export function resultOfPrompt({ messages }: GetPromptResult): unknown {
  const result = resultOfBlocks(messages.flatMap(({ role, content }) => blocksOf(content, `${role}: `)));
  return result.content ? result : result.output;
}

/** Returns a block as a text, or as an image with its name before it. `label` begins the text. */
function blocksOf(block: Block, label = ""): ResultBlock[] {
  const image = block.type === "image"
    ? imageFromBase64(block.data, block.mimeType)
    : block.type === "resource" && "blob" in block.resource
    ? imageFromBase64(block.resource.blob, block.resource.mimeType)
    : undefined;
  if (!image) return [{ type: "text", text: label + textOfBlock(block) }];
  const name = block.type === "resource" ? `${label}${block.resource.uri}` : label.trimEnd();
  return name === "" ? [image] : [{ type: "text", text: name }, image];
}

function textOfBlock(block: Block): string {
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
