/** `tool-search`: searches the text of files inside of the plan's grant, by patterns in linear time. */
import { FileAccess, FileError } from "../files/access.ts";
import { globMatcher } from "../files/glob.ts";
import { Slices, walkFiles } from "../files/walk.ts";
import {
  type Coordinator,
  defineTool,
  type JsonObject,
  type JsonSchema,
  type ModuleInfo,
  type MountReturn,
  PreampError,
  readConfig,
  type Tool,
  toolFailure,
} from "preamp/base";

const CONFIG_SCHEMA: JsonSchema = {
  type: "object",
  properties: {
    root: {
      type: "string",
      format: "path",
      minLength: 1,
      description: "Folder that relative paths start at; default: the first readable folder",
    },
    max_file_bytes: {
      type: "integer",
      minimum: 1024,
      default: 16 * 1024 * 1024,
      description: "Larger files are left out, and counted in the result",
    },
    max_line_chars: {
      type: "integer",
      minimum: 20,
      default: 500,
      description: "Characters of a line that are shown, around the match",
    },
  },
};

export const module: ModuleInfo = {
  id: "tool-search",
  type: "tool",
  version: "1.0.0",
  description: "Searches the text of files inside of the folders that the plan grants.",
  config_schema: CONFIG_SCHEMA,
  permissions: { read: ["${WORKSPACE}"] },
};

interface SearchSettings {
  root?: string;
  max_file_bytes: number;
  max_line_chars: number;
}

/**
 * Mounts `grep`.
 *
 * @throws {PreampError} `module_invalid` when the plan grants no `read`.
 */
export async function mount(coordinator: Coordinator, config: JsonObject): Promise<MountReturn> {
  const settings = readConfig<SearchSettings>(CONFIG_SCHEMA, config);
  const { permissions } = coordinator;
  if (permissions.read === false || Array.isArray(permissions.read) && permissions.read.length === 0) {
    throw new PreampError(
      "module_invalid",
      `Cannot mount ${module.id}: the plan grants it no files: give its entry permissions such as ` +
        "{ read: [${WORKSPACE}] }",
    );
  }
  const tool = grepTool(new FileAccess(permissions, settings.root), settings);
  await coordinator.mount("tools", tool, tool.name);
  return { name: module.id, version: module.version, provides: [tool.name] };
}

const OUTPUTS = ["content", "files", "count"] as const;
const DEFAULT_LIMIT = 100;
const MAX_PATTERN_CHARS = 2000;

interface GrepInput {
  pattern: string;
  path?: string;
  glob?: string;
  ignore_case?: boolean;
  literal?: boolean;
  context?: number;
  output?: (typeof OUTPUTS)[number];
  limit?: number;
  offset?: number;
}

function grepTool(access: FileAccess, settings: SearchSettings): Tool {
  return defineTool({
    name: "grep",
    description:
      "Search the text of files for a regular expression (RE2 syntax). Binary files and what .gitignore " +
      "names are left out.",
    input: {
      type: "object",
      properties: {
        pattern: { type: "string", maxLength: MAX_PATTERN_CHARS },
        path: { type: "string", description: "Folder or file; default: the working folder" },
        glob: { type: "string", description: 'Only files that match, such as "*.ts" or "src/**"' },
        ignore_case: { type: "boolean" },
        literal: { type: "boolean", description: "pattern is a text, not an expression" },
        context: { type: "integer", minimum: 0, maximum: 20, description: "Lines before and after a match" },
        output: {
          type: "string",
          enum: [...OUTPUTS],
          description: "content: lines (default); files: paths; count: matching lines of each file",
        },
        limit: {
          type: "integer",
          minimum: 1,
          maximum: 2000,
          description: `Results; default ${DEFAULT_LIMIT}`,
        },
        offset: { type: "integer", minimum: 0, description: "Results to leave out first" },
      },
      required: ["pattern"],
    },
    risk: "low",
    idempotent: true,
    async execute(input: GrepInput, call) {
      try {
        return await search(access, settings, input, call?.signal);
      } catch (error) {
        if (error instanceof FileError) return toolFailure(error.message, { type: "file_error" });
        throw error;
      }
    },
  });
}

async function search(
  access: FileAccess,
  settings: SearchSettings,
  input: GrepInput,
  signal: AbortSignal | undefined,
): Promise<string> {
  const { path = ".", glob, limit = DEFAULT_LIMIT, offset = 0 } = input;
  const start = await access.readable(path);
  const matcher = await lineMatcher(input);
  const wanted = glob === undefined ? () => true : globMatcher(glob);
  const results = new Results(input, settings, offset, limit);
  const searchFile = (file: string): Promise<boolean> | void => {
    const text = textOf(file, settings.max_file_bytes, results);
    if (text === null || text.length <= matcher.chars && text.length <= BLOCK_CHARS && !matcher.maybe(text)) {
      return;
    }
    const checked = checkedTextOf(file, settings.max_file_bytes, results);
    if (checked !== null) return results.add(access.display(file), checked, matcher, signal);
  };
  if (start.info.isFile) await searchFile(start.path);
  else if (start.info.isDirectory) {
    await walkFiles(
      start.path,
      ({ path: file, relative }) => wanted(relative) ? searchFile(file) : undefined,
      { root: access.root, signal },
    );
  } else throw new FileError(`${path} is neither a file nor a folder`);
  return results.text(input.pattern, access.display(start.path));
}

/** Tests lines, and several at once before they are split. */
interface LineMatcher {
  /** Characters that can be searched without a pause. */
  readonly chars: number;
  /** Returns false when no line of a text matches. */
  maybe(text: string): boolean;
  /** Returns where a line matches; -1: nowhere. */
  find(line: string): number;
}

/** Instructions of a compiled pattern; a character takes a step for each. Steps without a pause. */
const MAX_PATTERN_SIZE = 1000;
const MAX_STEPS = 1_000_000;

/** @throws {FileError} when the pattern cannot be read. */
async function lineMatcher(
  { pattern, literal = false, ignore_case = false }: GrepInput,
): Promise<LineMatcher> {
  if (literal && !ignore_case) {
    return {
      chars: Infinity,
      maybe: (text) => text.includes(pattern),
      find: (line) => line.indexOf(pattern),
    };
  }
  const { RE2JS } = await import("re2js");
  const flags = RE2JS.MULTILINE | (ignore_case ? RE2JS.CASE_INSENSITIVE : 0);
  try {
    const compiled = RE2JS.compile(literal ? RE2JS.quote(pattern) : pattern, flags);
    const size = compiled.programSize();
    if (size > MAX_PATTERN_SIZE) {
      throw new FileError("pattern repeats too much: use smaller numbers in {…}, or * and +");
    }
    return {
      chars: Math.ceil(MAX_STEPS / size),
      maybe: (text) => compiled.matcher(text).find(),
      find: (line) => {
        const found = compiled.matcher(line);
        return found.find() ? found.start() : -1;
      },
    };
  } catch (error) {
    if (error instanceof FileError) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    throw new FileError(`pattern cannot be read: ${reason}; set literal to search for it as text`);
  }
}

const SNIFFED_BYTES = 8192;
const decoder = new TextDecoder();

/** What most files fit into, so that they are read at once. */
const buffer = new Uint8Array(128 * 1024);

/** Returns the text of a file; null for a binary file, and for one that cannot be read or is too large. */
function textOf(path: string, maxBytes: number, results: Results): string | null {
  try {
    using file = Deno.openSync(path);
    return textIn(file, maxBytes, results);
  } catch {
    return null; // it was removed, or the operating system or the sandbox does not permit it
  }
}

/**
 * Returns the text of a file that matches; null if it is another one than the walk has found, because a link
 * has taken the place of a folder of its path. Most files match nothing and need no such test.
 */
function checkedTextOf(path: string, maxBytes: number, results: Results): string | null {
  try {
    using file = Deno.openSync(path);
    const [opened, now] = [file.statSync(), Deno.lstatSync(path)];
    const isSame = opened.dev === now.dev && opened.ino === now.ino && Deno.realPathSync(path) === path;
    return isSame ? textIn(file, maxBytes, results) : null;
  } catch {
    return null;
  }
}

function textIn(file: Deno.FsFile, maxBytes: number, results: Results): string | null {
  let bytes = buffer;
  let length = 0;
  for (let count; (count = file.readSync(bytes.subarray(length))) !== null;) {
    length += count;
    if (length < bytes.length) {
      if (bytes === buffer) break; // a short read is the end of a file
      continue;
    }
    if (length > maxBytes) {
      results.left_out++;
      return null;
    }
    const larger = new Uint8Array(Math.min(4 * bytes.length, maxBytes + 1));
    larger.set(bytes);
    bytes = larger;
  }
  if (length > maxBytes) {
    results.left_out++;
    return null;
  }
  const read = bytes.subarray(0, length);
  if (read.subarray(0, SNIFFED_BYTES).includes(0)) return null;
  return decoder.decode(read).replaceAll("\r\n", "\n");
}

/** Characters that are searched without a pause. */
const BLOCK_CHARS = 64 * 1024;
/** Characters of a line that are searched; fewer for a large pattern. */
const MAX_SEARCHED_CHARS = 256 * 1024;

/** A line that matches: its index, and where it matches. */
interface LineMatch {
  readonly at: number;
  readonly line: string;
  readonly found: number;
}

/** Yields the lines of a text that match; most blocks of lines are passed over without splitting them. */
async function* matchesIn(
  text: string,
  matcher: LineMatcher,
  signal: AbortSignal | undefined,
): AsyncGenerator<LineMatch> {
  const slices = new Slices();
  const block_chars = Math.min(BLOCK_CHARS, matcher.chars);
  const line_chars = Math.min(MAX_SEARCHED_CHARS, 4 * matcher.chars);
  let line = 0;
  for (let start = 0; start < text.length;) {
    const pause = slices.pause(signal);
    if (pause) await pause;
    const newline = text.indexOf("\n", Math.min(start + block_chars, text.length));
    const end = newline < 0 ? text.length : newline;
    const block = text.slice(start, Math.min(end, start + line_chars));
    if (matcher.maybe(block)) {
      const lines = text.slice(start, end).split("\n");
      for (const [index, one] of lines.entries()) {
        const found = matcher.find(one.length > line_chars ? one.slice(0, line_chars) : one);
        if (found >= 0) yield { at: line + index, line: one, found };
      }
      line += lines.length;
    } else line += linesIn(text, start, end);
    start = end + 1;
  }
}

function linesIn(text: string, start: number, end: number): number {
  let count = 1;
  for (let at = text.indexOf("\n", start); at >= 0 && at < end; at = text.indexOf("\n", at + 1)) count++;
  return count;
}

const MAX_RESULT_CHARS = 60_000;

/** Collects matches until there are enough. */
class Results {
  /** Files that are too large. */
  left_out = 0;
  full = false;
  readonly #input: GrepInput;
  readonly #settings: SearchSettings;
  readonly #lines: string[] = [];
  #skip: number;
  readonly #limit: number;
  #shown = 0;
  #chars = 0;

  constructor(input: GrepInput, settings: SearchSettings, offset: number, limit: number) {
    this.#input = input;
    this.#settings = settings;
    this.#skip = offset;
    this.#limit = limit;
  }

  /** Adds the matches in a text. Resolves to whether more results are wanted. */
  async add(
    file: string,
    text: string,
    matcher: LineMatcher,
    signal: AbortSignal | undefined,
  ): Promise<boolean> {
    const { output = "content", context = 0 } = this.#input;
    let lines: string[] | undefined;
    let count = 0;
    /** Index of the next line that may be shown. */
    let next = 0;
    for await (const { at, line, found } of matchesIn(text, matcher, signal)) {
      count++;
      if (output === "files") {
        this.#put(file);
        return !this.full;
      }
      if (output !== "content" || !this.#take()) continue;
      if (context === 0) this.#show(`${file}:${at + 1}:${this.#cut(line, found)}`);
      else {
        lines ??= text.split("\n");
        const from = Math.max(next, at - context);
        if (next > 0 && from > next) this.#lines.push("--");
        const to = Math.min(lines.length, at + context + 1);
        for (let near = from; near < to; near++) {
          const mark = near === at ? ":" : "-";
          this.#show(`${file}${mark}${near + 1}${mark}${this.#cut(lines[near]!, near === at ? found : 0)}`);
        }
        next = to;
      }
      if (this.full) return false;
    }
    if (output === "count" && count > 0) this.#put(`${file}:${count}`);
    return !this.full;
  }

  /** Returns whether a result is shown, and not before the offset. */
  #take(): boolean {
    if (this.#skip > 0) {
      this.#skip--;
      return false;
    }
    if (this.#shown === this.#limit) this.full = true;
    else this.#shown++;
    return !this.full;
  }

  #put(line: string): void {
    if (this.#take()) this.#show(line);
  }

  #show(line: string): void {
    this.#chars += line.length;
    if (this.#chars > MAX_RESULT_CHARS) this.full = true;
    else this.#lines.push(line);
  }

  /** Returns the part of a line around a match. */
  #cut(line: string, found: number): string {
    const { max_line_chars } = this.#settings;
    if (line.length <= max_line_chars) return line;
    const from = Math.max(0, Math.min(found - max_line_chars / 4, line.length - max_line_chars) | 0);
    const to = from + max_line_chars;
    return `${from > 0 ? "[…] " : ""}${line.slice(from, to)}${to < line.length ? " […]" : ""}`;
  }

  text(pattern: string, folder: string): string {
    const notes = [];
    const next = (this.#input.offset ?? 0) + this.#shown;
    if (this.full) notes.push(`there are more results: continue with offset ${next}`);
    if (this.left_out > 0) notes.push(`${this.left_out} files are too large and were left out`);
    const note = notes.length === 0 ? "" : `\n(${notes.join("; ")})`;
    if (this.#lines.length === 0) return `Nothing matches ${pattern} in ${folder}${note}`;
    return this.#lines.join("\n") + note;
  }
}
