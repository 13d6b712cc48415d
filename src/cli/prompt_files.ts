/** The files that go along with a message: those that it names as `@path`, and those of flags. */
import { errorMessage } from "../sdk/errors.ts";
import { imageBlock, imageTokens } from "../sdk/images.ts";
import { MAX_IMAGE_BYTES } from "../sdk/image_types.ts";
import { estimateTokens } from "../sdk/text_tokens.ts";
import type { ContentBlock, ImageBlock } from "../sdk/types.ts";
import { UsageError } from "./arguments.ts";
import { locate } from "../settings/paths.ts";

/** Files of one message. */
const MAX_FILES = 20;
/** Bytes of one file that go along; the model can read the rest. */
const MAX_FILE_BYTES = 128 * 1024;

/** A name of a file in a text: at its start or behind white space. */
const MENTION = /(?<=^|\s)@(?:"([^"\n]+)"|(\S+))/g;
/** What ends a sentence behind a name. */
const SENTENCE_END = /[,;:!?)\].]+$/;

/** A file that goes along with a message. */
export interface AttachedFile {
  /** The name as it was typed. */
  readonly name: string;
  /** Size in bytes, and how many of them go along; a picture goes whole. */
  readonly bytes: number;
  readonly sent_bytes: number;
  /** Estimated tokens. */
  readonly tokens: number;
  readonly block: ContentBlock;
}

/** Which files go along, beside the pictures that a text names. */
export interface FilesOf {
  /** Folder of relative paths. */
  readonly folder: URL;
  /** Whether the text names files in that folder too, as `@src/a.ts`: that of a script may not. */
  readonly names_texts: boolean;
  /** Names of files and of pictures, such as those of flags. */
  readonly files?: readonly string[];
  readonly images?: readonly string[];
}

/**
 * Resolves to the files that go along with a text, once each. A name of no file stays a part of the text.
 *
 * @throws {UsageError} for a picture that cannot be read, a file that is no text or is missing, and too many.
 */
export async function attachedFiles(
  text: string,
  { folder, names_texts, files = [], images = [] }: FilesOf,
): Promise<AttachedFile[]> {
  const names = new Map<string, "file" | "picture">();
  for (const name of images) names.set(name, "picture");
  for (const name of files) names.set(name, isPictureName(name) ? "picture" : "file");
  for (const [, quoted, plain] of text.matchAll(MENTION)) {
    const word = quoted ?? plain!; // one of both
    const name = await nameOf(word, { folder, names_texts, is_quoted: quoted !== undefined });
    if (name !== null && !names.has(name)) names.set(name, isPictureName(name) ? "picture" : "file");
  }
  if (names.size > MAX_FILES) {
    throw new UsageError(`Cannot send ${names.size} files: a message may have ${MAX_FILES}`);
  }
  const attached: AttachedFile[] = [];
  for (const [name, kind] of names) {
    attached.push(
      kind === "picture" ? await attachedPicture(name, folder) : await attachedText(name, folder),
    );
  }
  return attached;
}

/** Resolves to a name without what ends a sentence, unless there is such a file; null: it names none. */
async function nameOf(
  word: string,
  { folder, names_texts, is_quoted }: { folder: URL; names_texts: boolean; is_quoted: boolean },
): Promise<string | null> {
  for (const name of is_quoted ? [word] : [word, word.replace(SENTENCE_END, "")]) {
    if (isPictureName(name)) return name;
    if (names_texts && await isIn(name, folder)) return name;
  }
  return null;
}

/** Resolves to whether a name is one of a file in the folder: a text that was pasted may name any path. */
async function isIn(name: string, folder: URL): Promise<boolean> {
  if (!await isFile(name, folder)) return false;
  const [path, root] = await Promise.all([Deno.realPath(locate(name, folder)), Deno.realPath(folder)]);
  return path.startsWith(root.endsWith("/") ? root : `${root}/`);
}

async function isFile(name: string, folder: URL): Promise<boolean> {
  const info = await Deno.stat(locate(name, folder)).catch(() => null);
  return info?.isFile === true;
}

async function attachedPicture(name: string, folder: URL): Promise<AttachedFile> {
  const block = await readPicture(name, folder);
  const { data } = block.source as { data: string }; // it was made of bytes
  const bytes = Math.floor(data.length * 3 / 4);
  return { name, bytes, sent_bytes: bytes, tokens: imageTokens(data), block };
}

/** Returns whether a name is that of a picture. */
function isPictureName(name: string): boolean {
  return /\.(?:png|jpe?g|gif|webp)$/i.test(name);
}

/** Resolves to the block of a picture. @throws {UsageError} for a file that is no picture or too large. */
async function readPicture(name: string, folder: URL): Promise<ImageBlock> {
  const refuse = (fact: string, cause?: unknown) =>
    new UsageError(`Cannot send the picture ${JSON.stringify(name)}: ${fact}`, { cause });
  const url = locate(name, folder);
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

async function attachedText(name: string, folder: URL): Promise<AttachedFile> {
  const refuse = (fact: string, cause?: unknown) =>
    new UsageError(`Cannot send the file ${JSON.stringify(name)}: ${fact}`, { cause });
  if (!await isFile(name, folder)) throw refuse("there is no such file");
  let bytes: number;
  let start: Uint8Array;
  try {
    using file = await Deno.open(locate(name, folder));
    bytes = (await file.stat()).size;
    const buffer = new Uint8Array(Math.min(bytes, MAX_FILE_BYTES));
    let read = 0;
    for (let count: number | null = 0; read < buffer.length; read += count) {
      count = await file.read(buffer.subarray(read));
      if (count === null) break;
    }
    start = buffer.subarray(0, read);
  } catch (error) {
    throw refuse(errorMessage(error), error);
  }
  if (start.includes(0)) throw refuse("it is no text");
  const text = new TextDecoder().decode(start, { stream: start.length < bytes }); // without half a character
  const cut = start.length < bytes ? `, its first ${start.length} of ${bytes} bytes` : "";
  const block = { type: "text", text: `File ${name}${cut}:\n\n${fenced(text)}` } as const;
  return { name, bytes, sent_bytes: start.length, tokens: estimateTokens(block.text), block };
}

/** Returns files for a person: their names, sizes and tokens. */
export function filesText(files: readonly AttachedFile[]): string {
  if (files.length === 0) return "";
  const tokens = files.reduce((sum, file) => sum + file.tokens, 0);
  const names = files.map(({ name, bytes, sent_bytes }) =>
    `${name} (${sent_bytes < bytes ? `${sizeText(sent_bytes)} of ${sizeText(bytes)}` : sizeText(bytes)})`
  );
  return `${names.join(", ")}: about ${tokens.toLocaleString("en-US")} tokens`;
}

function sizeText(bytes: number): string {
  return bytes < 1024
    ? `${bytes} bytes`
    : bytes < 1024 * 1024
    ? `${(bytes / 1024).toFixed(1)} KB`
    : `${(bytes / 1024 / 1024).toFixed(1)} MB`;
}

/** Returns text in a fence that the text cannot close. @param language What the fence says of it. */
export function fenced(text: string, language = "text"): string {
  const longest = (text.match(/`{3,}/g) ?? []).reduce((most, { length }) => Math.max(most, length), 2);
  const fence = "`".repeat(longest + 1);
  return `${fence}${language}\n${text.replace(/\r?\n$/, "")}\n${fence}`;
}
