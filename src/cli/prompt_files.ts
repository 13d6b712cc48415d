/** The files that a message names as `@path`: their text goes along, and pictures do. */
import { imageTokens } from "../sdk/images.ts";
import { errorMessage } from "../sdk/errors.ts";
import { estimateTokens } from "../sdk/text_tokens.ts";
import type { ContentBlock } from "../sdk/types.ts";
import { UsageError } from "./arguments.ts";
import { locate } from "../settings/paths.ts";
import { isPictureName, readPicture } from "./prompt_images.ts";

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

/**
 * Resolves to the files that a text names, once each. A name of no file stays a part of the text.
 *
 * @throws {UsageError} for a picture that cannot be read, a file that is no text, and too many files.
 */
export async function attachedFiles(text: string, folder: URL): Promise<AttachedFile[]> {
  const names = new Set<string>();
  for (const [, quoted, plain] of text.matchAll(MENTION)) {
    const name = quoted ?? await nameOf(plain!, folder); // one of both
    if (name !== null) names.add(name);
  }
  if (names.size > MAX_FILES) {
    throw new UsageError(`Cannot send ${names.size} files: a message may have ${MAX_FILES}`);
  }
  const files: AttachedFile[] = [];
  for (const name of names) {
    const file = isPictureName(name) ? await attachedPicture(name, folder) : await attachedText(name, folder);
    if (file) files.push(file);
  }
  return files;
}

/** Resolves to a name without what ends a sentence, unless there is such a file; null: it names none. */
async function nameOf(word: string, folder: URL): Promise<string | null> {
  if (await isFile(word, folder)) return word;
  const name = word.replace(SENTENCE_END, "");
  return isPictureName(name) || await isFile(name, folder) ? name : null;
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

async function attachedText(name: string, folder: URL): Promise<AttachedFile | null> {
  if (!await isFile(name, folder)) return null;
  const refuse = (fact: string, cause?: unknown) =>
    new UsageError(`Cannot send the file ${JSON.stringify(name)}: ${fact}`, { cause });
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

/** Returns text in a fence that the text cannot close. */
export function fenced(text: string): string {
  const longest = (text.match(/`{3,}/g) ?? []).reduce((most, { length }) => Math.max(most, length), 2);
  const fence = "`".repeat(longest + 1);
  return `${fence}text\n${text.replace(/\r?\n$/, "")}\n${fence}`;
}
