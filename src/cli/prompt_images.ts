/** The pictures of a prompt: those of `--image`, and those that the text names as `@file.png`. */
import { errorMessage } from "../sdk/errors.ts";
import { imageBlock, MAX_IMAGE_BYTES } from "../sdk/images.ts";
import type { ImageBlock, Prompt } from "../sdk/types.ts";
import { UsageError } from "./arguments.ts";
import { locate } from "../settings/paths.ts";

/** Pictures of one prompt. */
const MAX_IMAGES = 20;

/** A name of a file in a text: at its start or behind white space, without the marks that end a sentence. */
const MENTION =
  /(?<=^|\s)@(?:"([^"\n]+\.(?:png|jpe?g|gif|webp))"|(\S+?\.(?:png|jpe?g|gif|webp)))(?=[\s,;:!?)\]]|\.(?:\s|$)|$)/gi;

/**
 * Resolves to a prompt with its pictures, in the order of the files and then of the text; the text itself
 * without any.
 *
 * @param said What the person wrote: only there a name is one of a picture, not in text that was piped in.
 * @param cwd Folder of relative paths.
 * @throws {UsageError} when a file cannot be read, is no picture, or is too large.
 */
export async function withPictures(
  text: string,
  said: string,
  files: readonly string[],
  cwd: URL,
): Promise<Prompt> {
  const mentioned = [...said.matchAll(MENTION)].map(([, quoted, plain]) => quoted ?? plain!); // one of both
  const names = [...new Set([...files, ...mentioned])];
  if (names.length === 0) return text;
  if (names.length > MAX_IMAGES) {
    throw new UsageError(`Cannot send ${names.length} pictures: a prompt may have ${MAX_IMAGES}`);
  }
  const images = [];
  for (const name of names) images.push(await readPicture(name, cwd));
  return [{ type: "text", text }, ...images];
}

/** Returns whether a name is that of a picture. */
export function isPictureName(name: string): boolean {
  return /\.(?:png|jpe?g|gif|webp)$/i.test(name);
}

/** Resolves to the block of a picture. @throws {UsageError} for a file that is no picture or too large. */
export async function readPicture(name: string, cwd: URL): Promise<ImageBlock> {
  const refuse = (fact: string, cause?: unknown) =>
    new UsageError(`Cannot send the picture ${JSON.stringify(name)}: ${fact}`, { cause });
  const url = locate(name, cwd);
  try {
    const { size, isFile } = await Deno.stat(url);
    if (!isFile) throw refuse("it is no file");
    if (size > MAX_IMAGE_BYTES) {
      throw refuse(`it has ${size} bytes, and models take ${MAX_IMAGE_BYTES}; make it smaller`);
    }
    const image = imageBlock(await Deno.readFile(url));
    if (image) return image;
  } catch (error) {
    if (error instanceof UsageError) throw error;
    const fact = error instanceof Deno.errors.NotFound ? "there is no such file" : errorMessage(error);
    throw refuse(fact, error);
  }
  throw refuse("it is no PNG, JPEG, GIF or WebP");
}
