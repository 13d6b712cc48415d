/** The tool `read`: lines of a text file, an image, or the entries of a folder. */
import type { CheckedFile, FileAccess } from "../files/access.ts";
import { FileError } from "../files/access.ts";
import { fileFailure, type FileSettings, pathOf, type SeenFiles } from "./shared.ts";
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
/** Bytes in which a NUL means that the file is no text. */
const SNIFFED_BYTES = 8192;
const NEWLINE = 10;

/** Returns the tool. */
export function readTool(
  access: FileAccess,
  settings: FileSettings,
  seen: SeenFiles,
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
        return await readFile(access, path, { offset: 1, ...input }, settings, seen, call?.signal);
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
  const lines = new LineWindow(wanted, settings);
  for (let at = 0;;) {
    const page: unknown = typeof read === "function" ? await read(name, at) : null;
    if (!isObject(page)) throw new FileError(`${name} is not kept, or not any longer: run the command again`);
    const chunk = Uint8Array.fromBase64(String(page.base64));
    lines.add(chunk);
    at += chunk.length;
    if (chunk.length === 0 || at >= Number(page.bytes)) return lines.text(name, false);
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
  seen: SeenFiles,
  signal: AbortSignal | undefined,
): Promise<unknown> {
  const { file, checked } = await access.open(path);
  try {
    const first = new Uint8Array(CHUNK_BYTES);
    const count = await file.read(first) ?? 0;
    const head = first.subarray(0, count);
    if (imageBlock(head.subarray(0, 12))) return await imageOf(access, path, checked);
    if (head.subarray(0, SNIFFED_BYTES).includes(0)) {
      throw new FileError(`${path} is a binary file of ${checked.info.size} bytes`);
    }
    const lines = new LineWindow(wanted, settings);
    lines.add(head);
    let read = count;
    while (read < MAX_COUNTED_BYTES) {
      signal?.throwIfAborted();
      const chunk = new Uint8Array(CHUNK_BYTES);
      const more = await file.read(chunk);
      if (more === null) break;
      read += more;
      lines.add(chunk.subarray(0, more));
    }
    seen.note(checked.path, checked.info);
    return lines.text(path, read >= MAX_COUNTED_BYTES);
  } finally {
    file.close();
  }
}

/** Collects the wanted lines of a file that is read in chunks, and counts all. */
class LineWindow {
  readonly #first: number;
  readonly #last: number;
  readonly #settings: FileSettings;
  /** Bytes of each wanted line, up to the most that is shown of one. */
  readonly #lines: Uint8Array[] = [];
  #line = 1;
  #bytes = 0;
  #open: number[] = [];
  #open_length = 0;
  /** Whether a line of the window was left out because of the bytes. */
  #full = false;

  constructor({ offset, limit }: Wanted, settings: FileSettings) {
    this.#first = offset;
    this.#last = offset + Math.min(limit ?? Infinity, settings.max_read_lines) - 1;
    this.#settings = settings;
  }

  add(chunk: Uint8Array): void {
    let from = 0;
    while (from < chunk.length) {
      const at = chunk.indexOf(NEWLINE, from);
      const to = at < 0 ? chunk.length : at;
      if (this.#wants()) this.#keep(chunk.subarray(from, to));
      this.#open_length += to - from;
      if (at < 0) return;
      this.#end();
      from = at + 1;
    }
  }

  #wants(): boolean {
    return this.#line >= this.#first && this.#line <= this.#last && !this.#full;
  }

  #keep(part: Uint8Array): void {
    const room = this.#settings.max_line_chars * 4 - this.#open.length; // a character has at most 4 bytes
    for (const byte of room < part.length ? part.subarray(0, Math.max(0, room)) : part) this.#open.push(byte);
  }

  #end(): void {
    if (this.#wants()) {
      this.#lines.push(new Uint8Array(this.#open));
      this.#bytes += this.#open.length + 1;
      this.#full = this.#bytes >= this.#settings.max_read_bytes;
    }
    this.#open = [];
    this.#open_length = 0;
    this.#line++;
  }

  text(path: string, cut: boolean): string {
    if (this.#open_length > 0) this.#end();
    const total = this.#line - 1;
    const last = this.#first + this.#lines.length - 1;
    if (total === 0) return `${path} is empty`;
    if (this.#lines.length === 0) {
      throw new FileError(`${path} has ${total} lines: offset must be at most that`);
    }
    const decoder = new TextDecoder();
    const { max_line_chars } = this.#settings;
    const numbered = this.#lines.map((bytes, index) => {
      const line = decoder.decode(bytes).replace(/\r$/, "");
      const shown = line.length > max_line_chars ? `${line.slice(0, max_line_chars)} […]` : line;
      return `${String(this.#first + index).padStart(6)}\t${shown}`;
    });
    if (this.#first === 1 && last === total) return numbered.join("\n");
    const of = `${cut ? "more than " : ""}${total}`;
    const next = last < total ? `; continue with offset ${last + 1}` : "";
    return `${numbered.join("\n")}\n(lines ${this.#first}-${last} of ${of}${next})`;
  }
}

async function imageOf(access: FileAccess, path: string, { info }: CheckedFile): Promise<ToolResult> {
  if (info.size > MAX_IMAGE_BYTES) {
    throw new FileError(
      `${path} is an image of ${info.size} bytes; at most ${MAX_IMAGE_BYTES} can be shown: make it smaller`,
    );
  }
  const { bytes } = await access.read(path, MAX_IMAGE_BYTES);
  const image = imageBlock(bytes);
  if (!image) throw new FileError(`${path} changed while it was read`);
  const output = `${path}: ${image.source.media_type}, ${bytes.length} bytes`;
  return ToolResult({ output, content: [{ type: "text", text: output }, image] });
}
