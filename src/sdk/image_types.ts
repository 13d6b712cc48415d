/** Sizes and kinds of images that models take. Imports nothing: the page for browsers reads it, too. */

/** Maximum characters of one image in base64: what every vendor takes that takes images. */
export const MAX_IMAGE_CHARS = 5 * 1024 * 1024;

/** Bytes of an image whose base64 has {@link MAX_IMAGE_CHARS}. */
export const MAX_IMAGE_BYTES: number = MAX_IMAGE_CHARS / 4 * 3;

/** Returns the media type of a PNG, JPEG, GIF or WebP image by its first bytes; undefined for other bytes. */
export function imageType(bytes: Uint8Array): string | undefined {
  const text = String.fromCharCode(...bytes.subarray(0, 12));
  if (text.startsWith("\x89PNG\r\n\x1a\n")) return "image/png";
  if (text.startsWith("\xff\xd8\xff")) return "image/jpeg";
  if (/^GIF8[79]a/.test(text)) return "image/gif";
  return text.startsWith("RIFF") && text.slice(8) === "WEBP" ? "image/webp" : undefined;
}

/** Longest side, in pixels, and tokens of an image by its size; vendors scale larger ones down. */
const SIZE_CLASSES: readonly (readonly [pixels: number, tokens: number])[] = [
  [512, 400],
  [1_100, 1_600],
  [Infinity, 3_000],
];

/** Returns the estimated tokens of an image whose longest side has a number of pixels. */
export function tokensOfSide(pixels: number): number {
  return SIZE_CLASSES.find(([most]) => pixels <= most)![1];
}
