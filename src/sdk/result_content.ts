/**
 * The content of a tool's result that a model gets in place of its output: texts and images. Hooks and the
 * log see a text in the place of each image; the images themselves are beside it, and are put back for the
 * model.
 */
import { kindError } from "./checks.ts";
import type { ImageBlock } from "./content_blocks.ts";
import { BASE64 } from "./images.ts";
import { isObject, jsonEqual, type JsonObject, toFrozen } from "./json.ts";
import { isArray } from "./primordials.ts";
import type { TextBlock } from "./content_blocks.ts";

/** A block of a tool's result. */
export type ResultBlock = TextBlock | ImageBlock;

/** Text in the place of an image, for hooks and in the log. */
const IMAGE_OMITTED = "[Image omitted from tool event; original retained for model request if unmodified.]";

const MEDIA_TYPE = /^image\/[a-z0-9][a-z0-9.+-]*$/;

/**
 * Returns the content of a result, without fields that are not part of it; undefined for null, undefined and
 * an empty list.
 *
 * @throws {TypeError} when it is no list of texts and images in base64. The message quotes no content.
 */
export function readResultContent(value: unknown): ResultBlock[] | undefined {
  if (value === undefined || value === null) return undefined;
  if (!isArray(value)) throw kindError("ToolResult", "content", "must be a list of blocks", value);
  if (value.length === 0) return undefined;
  return toFrozen(value.map(readBlock)) as unknown as ResultBlock[]; // read block by block
}

function readBlock(block: unknown, index: number): ResultBlock {
  const at = `content[${index}]`;
  if (!isObject(block)) throw kindError("ToolResult", at, "must be a block {type: …}", block);
  const { type, text, source } = block;
  if (type === "text") {
    if (typeof text !== "string") throw kindError("ToolResult", `${at}.text`, "must be text", text);
    return { type, text };
  }
  if (type !== "image") throw kindError("ToolResult", `${at}.type`, "must be text or image", type);
  if (!isObject(source) || source.type !== "base64") {
    throw kindError("ToolResult", `${at}.source`, "must be {type: base64, media_type, data}", source);
  }
  const { media_type, data } = source;
  if (typeof media_type !== "string" || !MEDIA_TYPE.test(media_type)) {
    throw kindError(
      "ToolResult",
      `${at}.source.media_type`,
      "must be that of an image, such as image/png",
      media_type,
    );
  }
  if (typeof data !== "string" || data.length % 4 !== 0 || !BASE64.test(data)) {
    throw kindError("ToolResult", `${at}.source.data`, "must be base64", data);
  }
  return { type, source: { type: "base64", media_type, data } };
}

/**
 * Returns a value as content if it is a list of blocks with an image: tools may return such a list as it is.
 */
export function asResultContent(value: unknown): ResultBlock[] | undefined {
  if (!isArray(value) || !value.some((block) => isObject(block) && block.type === "image")) return undefined;
  try {
    return readResultContent(value);
  } catch {
    return undefined; // another list
  }
}

/** Returns the text of content, with a note in the place of each image. */
export function textOfContent(content: readonly ResultBlock[]): string {
  return content.map((block) =>
    block.type === "text" ? block.text : `[image: ${(block as ImageBlock).source.media_type}]`
  ).join("\n");
}

/** Returns content with a text in the place of each image, as hooks and the log see it. */
export function withoutImages(content: readonly unknown[]): unknown[] {
  return content.map((block) =>
    isObject(block) && block.type === "image" ? { type: "text", text: IMAGE_OMITTED } : block
  );
}

/** Returns the images of content. */
export function imagesOf(content: readonly ResultBlock[] | undefined): ImageBlock[] {
  return (content ?? []).filter((block) => block.type === "image") as ImageBlock[];
}

/** Returns whether content has a text in the place of each of these images. */
export function omitsImages(content: unknown, images: readonly ImageBlock[]): boolean {
  return images.length > 0 && Array.isArray(content) && content.filter(isOmitted).length === images.length;
}

/** Returns content with the images in their places; the content itself when it has no place for each. */
export function withImages(content: unknown, images: readonly ImageBlock[]): unknown {
  if (!omitsImages(content, images)) return content;
  let next = 0;
  return (content as unknown[]).map((block) => isOmitted(block) ? images[next++] : block);
}

function isOmitted(block: unknown): boolean {
  return isObject(block) && block.type === "text" && block.text === IMAGE_OMITTED;
}

/**
 * Returns the content of a result that a hook changed, with its images. A hook that changed the output alone
 * knows no content: its output replaces the texts.
 *
 * @param shown The result as the hook received it.
 * @param text Text of the changed output.
 */
export function changedContent(
  changed: JsonObject,
  shown: JsonObject,
  images: readonly ImageBlock[],
  text: () => string,
): unknown {
  const { content } = changed;
  if (content === undefined || content === null) return undefined;
  const is_old = jsonEqual(content, shown.content) && !jsonEqual(changed.output, shown.output);
  return is_old ? [{ type: "text", text: text() }, ...images] : withImages(content, images);
}
