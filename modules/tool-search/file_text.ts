/** Reads the text of files that were found; of most synchronously, as they are small, and match nothing. */
import { isSameFile } from "../files/access.ts";
import { decodeText } from "../files/encoding.ts";

/** The text of a file; or why it is not searched. */
export type FileText =
  | { readonly text: string; readonly is_binary: boolean }
  | { readonly problem: "too large" | "unreadable" };

const TOO_LARGE: FileText = { problem: "too large" };
const UNREADABLE: FileText = { problem: "unreadable" };

const SNIFFED_BYTES = 8192;
const utf8 = new TextDecoder("utf-8", { fatal: true });
const lossy = new TextDecoder();

/** What most files fit into, so that they are read at once. */
const buffer = new Uint8Array(128 * 1024);

/** Returns the text of a file. */
export function textOf(path: string, maxBytes: number): FileText | Promise<FileText> {
  try {
    using file = Deno.openSync(path);
    return textIn(file, maxBytes);
  } catch {
    return UNREADABLE; // it was removed, or the operating system or the sandbox does not permit it
  }
}

/**
 * Returns the text of a file that matches. It is unreadable if it is another one than the walk has found,
 * because a link has taken the place of a folder of its path. Most files match nothing and need no such test.
 */
export function checkedTextOf(path: string, maxBytes: number): FileText | Promise<FileText> {
  try {
    using file = Deno.openSync(path);
    const [opened, now] = [file.statSync(), Deno.lstatSync(path)];
    const isSame = isSameFile(opened, now) && Deno.realPathSync(path) === path;
    return isSame ? textIn(file, maxBytes) : UNREADABLE;
  } catch {
    return UNREADABLE;
  }
}

function textIn(file: Deno.FsFile, maxBytes: number): FileText | Promise<FileText> {
  let bytes = buffer;
  let length = 0;
  for (let count; (count = file.readSync(bytes.subarray(length))) !== null;) {
    length += count;
    if (length < bytes.length) {
      if (bytes === buffer) break; // a short read is the end of a file
      continue;
    }
    if (length > maxBytes) return TOO_LARGE;
    const larger = new Uint8Array(Math.min(4 * bytes.length, maxBytes + 1));
    larger.set(bytes);
    bytes = larger;
  }
  return length > maxBytes ? TOO_LARGE : decoded(bytes.subarray(0, length));
}

function decoded(bytes: Uint8Array): FileText | Promise<FileText> {
  if (!bytes.subarray(0, SNIFFED_BYTES).includes(0)) {
    try {
      return { text: utf8.decode(bytes), is_binary: false };
    } catch {
      // another encoding, or no text
    }
  }
  return otherText(bytes.slice()); // the buffer is used again
}

async function otherText(bytes: Uint8Array): Promise<FileText> {
  const head = bytes.subarray(0, SNIFFED_BYTES);
  const isText = await decodeText(head, head.length < bytes.length) !== null;
  const found = isText ? await decodeText(bytes) : null; // which takes longer for a large file
  return found === null
    ? { text: lossy.decode(bytes), is_binary: true }
    : { text: found.text, is_binary: false };
}
