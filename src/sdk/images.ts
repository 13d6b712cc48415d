/** Images as models take them: their formats, how they begin, and what they cost. */
import type { ImageBlock } from "./content_blocks.ts";
import { imageType, tokensOfSide } from "./image_types.ts";
import { isObject } from "./json.ts";

/** Returns an image as a block of content; undefined for bytes that are no PNG, JPEG, GIF or WebP. */
export function imageBlock(bytes: Uint8Array): ImageBlock | undefined {
  const media_type = imageType(bytes);
  if (media_type === undefined) return undefined;
  return { type: "image", source: { type: "base64", media_type, data: bytes.toBase64() } };
}

/** Media types of images that models take. */
const IMAGE_TYPES: ReadonlySet<string> = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);

/**
 * Returns an image in base64 as a block of content; white space and the beginning of a `data:` URL are
 * removed. Its media type is what its bytes say, else the stated one. Undefined for what is no base64, and
 * for other types than PNG, JPEG, GIF and WebP.
 */
export function imageFromBase64(text: string, stated = ""): ImageBlock | undefined {
  const data = text.replace(/^\s*data:[^,]*,/, "").replace(/\s+/g, "");
  const media_type = base64ImageType(data) ?? stated.toLowerCase().replace("image/jpg", "image/jpeg");
  if (data.length % 4 !== 0 || !BASE64.test(data) || !IMAGE_TYPES.has(media_type)) return undefined;
  return { type: "image", source: { type: "base64", media_type, data } };
}

/** Bytes in base64, with padding. */
export const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

/** Returns {@link imageType} of bytes in base64; undefined for text that is no base64, too. */
export function base64ImageType(data: string): string | undefined {
  return imageType(beginningOf(data, 12));
}

/** Returns whether a value is an image block in base64, without other fields, of bytes that are an image. */
export function isPlainImage(value: unknown): value is ImageBlock {
  if (!isObject(value) || value.type !== "image" || !isObject(value.source)) return false;
  const { type, data, media_type } = value.source;
  return type === "base64" && typeof data === "string" && media_type === base64ImageType(data) &&
    Object.keys(value).length === 2 && Object.keys(value.source).length === 3;
}

/** Tokens of an image or file whose size is not known. */
export const MEDIA_BLOCK_TOKENS = 1600;

/** Bytes in which the size of an image is looked for: that of a JPEG may follow a preview. */
const HEADER_BYTES = 192 * 1024;

/** Returns the estimated tokens of an image, by its size in pixels; its base64 does not count. */
export function imageTokens(data: unknown): number {
  if (typeof data !== "string") return MEDIA_BLOCK_TOKENS;
  const side = longestSide(beginningOf(data, HEADER_BYTES));
  return side > 0 ? tokensOfSide(side) : MEDIA_BLOCK_TOKENS;
}

/** Returns the first bytes of base64, at least `count` if there are as many; none of invalid text. */
function beginningOf(data: string, count: number): Uint8Array {
  try {
    return Uint8Array.fromBase64(data.slice(0, Math.ceil(count / 3) * 4));
  } catch {
    return new Uint8Array();
  }
}

/** Returns the longest side of an image in pixels; 0 when its first bytes do not say it. */
function longestSide(bytes: Uint8Array): number {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  try {
    switch (imageType(bytes)) {
      case "image/png":
        return Math.max(view.getUint32(16), view.getUint32(20));
      case "image/gif":
        return Math.max(view.getUint16(6, true), view.getUint16(8, true));
      case "image/jpeg":
        return longestSideOfJpeg(view);
      case "image/webp":
        return longestSideOfWebp(view);
      default:
        return 0;
    }
  } catch {
    return 0; // the bytes end before the size
  }
}

/** Reads the segments of a JPEG up to the start of a frame (ISO/IEC 10918-1, B.2.2). */
function longestSideOfJpeg(view: DataView): number {
  for (let at = 2;;) {
    const marker = view.getUint8(at + 1);
    const is_frame = marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 &&
      marker !== 0xcc;
    if (is_frame) return Math.max(view.getUint16(at + 5), view.getUint16(at + 7));
    at += marker === 0xff ? 1 : 2 + view.getUint16(at + 2); // 0xff fills
  }
}

/** Reads the first chunk of a WebP (RFC 9649). */
function longestSideOfWebp(view: DataView): number {
  const uint24 = (at: number) => view.getUint16(at, true) + (view.getUint8(at + 2) << 16);
  switch (view.getUint8(15)) {
    case 0x58: // VP8X
      return 1 + Math.max(uint24(24), uint24(27));
    case 0x4c: { // VP8L
      const bits = view.getUint32(21, true);
      return 1 + Math.max(bits & 0x3fff, (bits >>> 14) & 0x3fff);
    }
    default: // VP8 with a space
      return Math.max(view.getUint16(26, true) & 0x3fff, view.getUint16(28, true) & 0x3fff);
  }
}
