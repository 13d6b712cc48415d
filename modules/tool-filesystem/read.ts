/** The tool `read`: lines of a text file, an image, or the entries of a folder. */
import type { CheckedFile, FileAccess } from "../files/access.ts";
import { FileError, readUpTo } from "../files/access.ts";
import { decodeText, UTF_8 } from "../files/encoding.ts";
import { numberedLine } from "../files/line_changes.ts";
import { notText, separatorOf } from "../files/text_file.ts";
import { fileFailure, type FileSettings, MAX_EDITED_BYTES, pathOf } from "./shared.ts";
import type { KnownFiles } from "./known_files.ts";
import { listFolder, nearNames } from "./list.ts";
import {
  type Coordinator,
  defineTool,
  imageBlock,
  isObject,
  MAX_IMAGE_BYTES,
  type Tool,
  ToolResult,
} from "preamp/base";

/** Bytes that are read to count the lines of a file. */
const MAX_COUNTED_BYTES = 256 * 1024 * 1024;
const CHUNK_BYTES = 256 * 1024;

/** Returns the tool. */
export function readTool(
  access: FileAccess,
  settings: FileSettings,
  known: KnownFiles,
  coordinator: Coordinator,
): Tool {
  return defineTool({
    name: "read",
    description: `Read a file. Text has line numbers; at most ${settings.max_read_lines} lines or ` +
      `${Math.round(settings.max_read_bytes / 1024)} KB at once, continue with offset. ` +
      "An image is shown. A folder is listed.",
    input: {
      type: "object",
      properties: {
        path: { type: "string", description: "File, absolute or relative to the working folder" },
        file_path: { type: "string", description: "The same as path" },
        offset: { type: "integer", minimum: 1, description: "First line, from 1" },
        limit: { type: "integer", minimum: 1, description: "Number of lines" },
      },
    },
    risk: "low",
    idempotent: true,
    async execute(input, call) {
      try {
        const path = pathOf(input);
        if (path.startsWith(OUTPUT)) {
          return await readOutput(coordinator, path, { offset: 1, ...input }, settings);
        }
        const found = await access.readable(path).catch(async (error) => {
          throw error instanceof FileError
            ? new FileError(error.message + await nearNames(access, path))
            : error;
        });
        if (found.info.isDirectory) return await listFolder(access, found.path);
        return await readFile(access, path, { offset: 1, ...input }, settings, known, call?.signal);
      } catch (error) {
        return fileFailure(error);
      }
    },
  });
}

/** Begins the names of outputs of commands, as `tool-bash` gives them. */
const OUTPUT = "output:";

/** Reads lines of the output of a command, which `tool-bash` keeps. */
async function readOutput(
  coordinator: Coordinator,
  name: string,
  wanted: Wanted,
  settings: FileSettings,
): Promise<string> {
  const read = coordinator.getCapability("tool-bash.output");
  const lines = new LineWindow(wanted, settings, "\n");
  const decoder = new TextDecoder();
  for (let at = 0;;) {
    const page: unknown = typeof read === "function" ? await read(name, at) : null;
    if (!isObject(page)) throw new FileError(`${name} is not kept, or not any longer: run the command again`);
    const chunk = Uint8Array.fromBase64(String(page.base64));
    at += chunk.length;
    const isLast = chunk.length === 0 || at >= Number(page.bytes);
    lines.add(decoder.decode(chunk, { stream: !isLast }));
    if (isLast) return lines.text(name);
  }
}

interface Wanted {
  offset: number;
  limit?: number;
}

async function readFile(
  access: FileAccess,
  path: string,
  wanted: Wanted,
  settings: FileSettings,
  known: KnownFiles,
  signal: AbortSignal | undefined,
): Promise<unknown> {
  const { file, checked } = await access.open(path);
  try {
    const head = await readUpTo(file, MAX_EDITED_BYTES);
    if (imageBlock(head.bytes.subarray(0, 12))) return await imageOf(path, head.bytes, checked, known);
    const decoded = await decodeText(head.bytes, !head.isWhole);
    if (decoded === null) throw notText(path, Math.max(checked.info.size, head.bytes.length));
    const { text, encoding: { name } } = decoded;
    const lines = new LineWindow(wanted, settings, separatorOf(text));
    const decoder = new TextDecoder(name);
    let part = head;
    for (let read = 0;; part = await readUpTo(file, CHUNK_BYTES)) {
      signal?.throwIfAborted();
      lines.add(decoder.decode(part.bytes, { stream: !part.isWhole }));
      read += part.bytes.length;
      if (part.isWhole || read >= MAX_COUNTED_BYTES) break;
    }
    lines.isCut = !part.isWhole;
    if (head.isWhole) await known.add(checked.path, head.bytes);
    return lines.text(path, [
      ...name === UTF_8.name ? [] : [`encoded as ${name}`],
      ...head.isWhole ? [] : [`\ufffd may stand for bytes that are not ${name}`],
    ]);
  } finally {
    file.close();
  }
}

/** Collects the wanted lines of a text that comes in chunks, and counts all. */
class LineWindow {
  /** Whether more lines follow that are not counted. */
  isCut = false;
  readonly #first: number;
  readonly #last: number;
  readonly #settings: FileSettings;
  readonly #separator: string;
  /** The wanted lines, up to the most that is shown of one. */
  readonly #lines: string[] = [];
  #line = 1;
  #bytes = 0;
  #open = "";
  /** Whether the last line has no line end, and begins here. */
  #isOpen = false;
  /** Whether a line of the window was left out because of the bytes. */
  #isFull = false;

  constructor({ offset, limit }: Wanted, settings: FileSettings, separator: string) {
    this.#first = offset;
    this.#last = offset + Math.min(limit ?? Infinity, settings.max_read_lines) - 1;
    this.#settings = settings;
    this.#separator = separator;
  }

  add(chunk: string): void {
    for (let from = 0; from < chunk.length;) {
      const at = chunk.indexOf(this.#separator, from);
      const to = at < 0 ? chunk.length : at;
      // one more than is shown, and the first half of a line end
      const room = this.#settings.max_line_chars + 2 - this.#open.length;
      if (this.#wants()) this.#open += chunk.slice(from, Math.min(to, from + Math.max(0, room)));
      this.#isOpen = true;
      if (at < 0) return;
      this.#end();
      from = at + 1;
    }
  }

  #wants(): boolean {
    return this.#line >= this.#first && this.#line <= this.#last && !this.#isFull;
  }

  #end(): void {
    if (this.#wants()) {
      this.#lines.push(this.#open.replace(/\r$/, ""));
      this.#bytes += new TextEncoder().encode(this.#open).length + 1;
      this.#isFull = this.#bytes >= this.#settings.max_read_bytes;
    }
    this.#open = "";
    this.#isOpen = false;
    this.#line++;
  }

  /** Returns the numbered lines, with notes about the file. @throws {FileError} when it has fewer lines. */
  text(path: string, notes: readonly string[] = []): string {
    if (this.#isOpen) this.#end();
    const total = this.#line - 1;
    const last = this.#first + this.#lines.length - 1;
    if (total === 0) return `${path} is empty`;
    if (this.#lines.length === 0) {
      throw new FileError(`${path} has ${total} lines: offset must be at most that`);
    }
    const numbered = this.#lines.map((line, index) =>
      numberedLine(line, this.#first + index, this.#settings.max_line_chars)
    );
    const said = [...notes];
    if (this.#first > 1 || last < total) {
      const of = `${this.isCut ? "more than " : ""}${total}`;
      const next = last < total ? `; continue with offset ${last + 1}` : "";
      said.unshift(`lines ${this.#first}-${last} of ${of}${next}`);
    }
    return [...numbered, ...said.length === 0 ? [] : [`(${said.join("; ")})`]].join("\n");
  }
}

async function imageOf(
  path: string,
  bytes: Uint8Array,
  { info, path: real }: CheckedFile,
  known: KnownFiles,
): Promise<ToolResult> {
  if (bytes.length > MAX_IMAGE_BYTES) {
    const size = Math.max(info.size, bytes.length);
    throw new FileError(
      `${path} is an image of ${size} bytes; at most ${MAX_IMAGE_BYTES} can be shown: make it smaller`,
    );
  }
  const image = imageBlock(bytes)!; // its type was read
  await known.add(real, bytes);
  const output = `${path}: ${image.source.media_type}, ${bytes.length} bytes`;
  return ToolResult({ output, content: [{ type: "text", text: output }, image] });
}
