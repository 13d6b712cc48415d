/** Files and pictures that go along with a prompt. */
import type { Data } from "preamp/client";
import { imageType, MAX_IMAGE_BYTES, tokensOfSide } from "../../../../sdk/image_types.ts";

/** A file as it will be sent. */
export interface Attachment {
  readonly name: string;
  readonly bytes: number;
  /** Estimate of what it costs in each model call. */
  readonly tokens: number;
  /** The block of content. */
  readonly block: Data;
}

/** What is needed of a file that a person chose. */
export interface ChosenFile {
  readonly name: string;
  readonly size: number;
  arrayBuffer(): Promise<ArrayBuffer>;
}

/** Bytes of a text: what is longer is better read by a tool, in parts. */
const MAX_TEXT_BYTES = 256 * 1024;
/**
 * Reads a file: a picture as one, anything else as text.
 *
 * @param longestSide Returns the longest side of a picture in pixels; of one that it cannot read, Infinity.
 * @throws {Error} that says why the file cannot be sent.
 */
export async function readAttachment(
  file: ChosenFile,
  longestSide: (bytes: Uint8Array<ArrayBuffer>, type: string) => Promise<number>,
): Promise<Attachment> {
  const { name, size } = file;
  const refuse = (fact: string) => new Error(`Cannot attach ${name}: ${fact}`);
  if (size > MAX_IMAGE_BYTES) throw refuse(`it has ${size} bytes; pictures may have ${MAX_IMAGE_BYTES}`);
  const bytes = new Uint8Array(await file.arrayBuffer());
  const media_type = imageType(bytes);
  if (media_type !== undefined) {
    const tokens = tokensOfSide(await longestSide(bytes, media_type));
    const source = { type: "base64", media_type, data: base64(bytes) };
    return { name, bytes: size, tokens, block: { type: "image", source } };
  }
  if (size > MAX_TEXT_BYTES) throw refuse(`it has ${size} bytes; texts may have ${MAX_TEXT_BYTES}`);
  const text = textOf(bytes);
  if (text === null) throw refuse("it is neither text in UTF-8 nor a PNG, JPEG, GIF or WebP");
  const block = { type: "text", text: `The file ${name}:\n\n${text}` };
  return { name, bytes: size, tokens: Math.ceil(size / 4), block };
}

function textOf(bytes: Uint8Array): string | null {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return text.includes("\0") ? null : text;
  } catch {
    return null;
  }
}

/** Returns bytes in base64, in parts: a call takes a limited number of arguments. */
function base64(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += 8_192) {
    text += String.fromCharCode(...bytes.subarray(at, at + 8_192));
  }
  return btoa(text);
}
