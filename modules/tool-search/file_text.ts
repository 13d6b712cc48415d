/** Reads the text of files that were found, synchronously: most are small, and match nothing. */

/** The text of a file; or why it is not searched. */
export type FileText = { readonly text: string; readonly is_binary: boolean } | "too large" | "unreadable";

const SNIFFED_BYTES = 8192;
const utf8 = new TextDecoder();
const strict_utf8 = new TextDecoder("utf-8", { fatal: true });

/** What most files fit into, so that they are read at once. */
const buffer = new Uint8Array(128 * 1024);

/** Returns the text of a file. */
export function textOf(path: string, maxBytes: number): FileText {
  try {
    using file = Deno.openSync(path);
    return textIn(file, maxBytes);
  } catch {
    return "unreadable"; // it was removed, or the operating system or the sandbox does not permit it
  }
}

/**
 * Returns the text of a file that matches. It is unreadable if it is another one than the walk has found,
 * because a link has taken the place of a folder of its path. Most files match nothing and need no such test.
 */
export function checkedTextOf(path: string, maxBytes: number): FileText {
  try {
    using file = Deno.openSync(path);
    const [opened, now] = [file.statSync(), Deno.lstatSync(path)];
    const isSame = opened.dev === now.dev && opened.ino === now.ino && Deno.realPathSync(path) === path;
    return isSame ? textIn(file, maxBytes) : "unreadable";
  } catch {
    return "unreadable";
  }
}

function textIn(file: Deno.FsFile, maxBytes: number): FileText {
  let bytes = buffer;
  let length = 0;
  for (let count; (count = file.readSync(bytes.subarray(length))) !== null;) {
    length += count;
    if (length < bytes.length) {
      if (bytes === buffer) break; // a short read is the end of a file
      continue;
    }
    if (length > maxBytes) return "too large";
    const larger = new Uint8Array(Math.min(4 * bytes.length, maxBytes + 1));
    larger.set(bytes);
    bytes = larger;
  }
  return length > maxBytes ? "too large" : decoded(bytes.subarray(0, length));
}

/** Returns the text of bytes: UTF-8, UTF-16 with its mark, or else one byte a character. */
function decoded(bytes: Uint8Array): FileText {
  const [first, second] = bytes;
  if (first === 0xff && second === 0xfe) return decodedAs("utf-16le", bytes);
  if (first === 0xfe && second === 0xff) return decodedAs("utf-16be", bytes);
  if (bytes.subarray(0, SNIFFED_BYTES).includes(0)) return { text: utf8.decode(bytes), is_binary: true };
  try {
    return { text: strict_utf8.decode(bytes), is_binary: false };
  } catch {
    return decodedAs("windows-1252", bytes);
  }
}

function decodedAs(encoding: string, bytes: Uint8Array): FileText {
  return { text: new TextDecoder(encoding).decode(bytes), is_binary: false };
}
