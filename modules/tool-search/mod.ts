/** `tool-search`: searches the text of files inside of the plan's grant, by patterns in linear time. */
import { FileAccess, FileError } from "../files/access.ts";
import { type FileQuery, type FileSearch, findFiles } from "../files/find.ts";
import { type FoundFile, Slices } from "../files/walk.ts";
import { checkedTextOf, type FileText, textOf } from "./file_text.ts";
import { readPattern, type TextPattern } from "./pattern.ts";
import { BLOCK_CHARS } from "./matches.ts";
import { OUTPUTS, Results, type ResultsInput } from "./results.ts";
import { Ripgrep } from "./ripgrep.ts";
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
      description: "Larger files are left out, and named in the result",
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
  const search = new Search(
    new FileAccess(permissions, settings.root),
    settings,
    Ripgrep.granted(permissions.run),
  );
  const tool = grepTool(search);
  await coordinator.mount("tools", tool, tool.name);
  return { name: module.id, version: module.version, provides: [tool.name] };
}

const DEFAULT_LIMIT = 100;
const MAX_PATTERN_CHARS = 2000;

interface GrepInput extends ResultsInput {
  path?: string;
  ignore_case?: boolean;
  literal?: boolean;
}

function grepTool(search: Search): Tool {
  return defineTool({
    name: "grep",
    description:
      "Search the text of files for a regular expression (RE2 syntax). A pattern with \\n, [\\s\\S] or (?s) may " +
      "match several lines. Binary files, and what .gitignore names, are left out; what path or glob names is " +
      "searched.",
    input: {
      type: "object",
      properties: {
        pattern: { type: "string", maxLength: MAX_PATTERN_CHARS },
        path: { type: "string", description: "Folder or file; default: the working folder" },
        glob: {
          type: "string",
          description: 'Only files that match, such as "*.ts", "src/**" or "!*.md" (all others)',
        },
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
      additionalProperties: false,
    },
    risk: "low",
    idempotent: true,
    async execute(input: GrepInput, call) {
      try {
        return await search.run(input, call?.signal);
      } catch (error) {
        if (error instanceof FileError) return toolFailure(error.message, { type: "file_error" });
        throw error;
      }
    },
  });
}

/** Maximum characters of the paths that ripgrep gets at once: systems limit the arguments of a program. */
const BATCH_CHARS = 500_000;

/** Searches files, with ripgrep where the plan grants it: with the same results, in less time. */
class Search {
  readonly #access: FileAccess;
  readonly #settings: SearchSettings;
  readonly #ripgrep: Ripgrep | null;

  constructor(access: FileAccess, settings: SearchSettings, ripgrep: Ripgrep | null) {
    this.#access = access;
    this.#settings = settings;
    this.#ripgrep = ripgrep;
  }

  /** @throws {FileError} when the path or a pattern cannot be read. */
  async run(input: GrepInput, signal: AbortSignal | undefined): Promise<string> {
    const pattern = await readPattern(input);
    const results = new Results(input, this.#settings.max_line_chars, DEFAULT_LIMIT);
    const query = { path: input.path, pattern: input.glob || undefined, signal };
    const found = pattern.ripgrep === null || this.#ripgrep === null
      ? await findFiles(this.#access, query, ({ path }) => this.#searchFile(path, pattern, results, signal))
      : await this.#runWith(this.#ripgrep, pattern.ripgrep, query, pattern, results);
    return results.text({ ...found, folder: this.#access.display(found.start.path), hint: pattern.hint });
  }

  async #runWith(
    ripgrep: Ripgrep,
    args: readonly string[],
    query: FileQuery,
    pattern: TextPattern,
    results: Results,
  ): Promise<FileSearch> {
    let batch: string[] = [];
    let chars = 0;
    let isUsable = true;
    /** The batch that ripgrep searches while the next one is collected. */
    let running: Promise<string[]> | null = null;
    const candidatesOf = async (paths: string[]): Promise<string[]> => {
      const found = isUsable ? await ripgrep.candidates(paths, args, query.signal) : null;
      isUsable = found !== null;
      return found ?? paths;
    };
    const startBatch = async (): Promise<boolean> => {
      const before = running;
      running = candidatesOf(batch);
      running.catch(() => {}); // awaited with the next batch, unless the search ends
      batch = [];
      chars = 0;
      const slices = new Slices();
      for (const path of await before ?? []) {
        if (!await this.#searchFile(path, pattern, results, query.signal)) return false;
        await slices.pause(query.signal);
      }
      return true;
    };
    const search = await findFiles(this.#access, query, ({ path }: FoundFile) => {
      batch.push(path);
      chars += path.length + 1;
      return chars < BATCH_CHARS ? undefined : startBatch();
    });
    if (!results.full && await startBatch()) await startBatch();
    return search;
  }

  /** Returns (a promise of) whether more results are wanted. */
  #searchFile(
    path: string,
    pattern: TextPattern,
    results: Results,
    signal: AbortSignal | undefined,
  ): boolean | Promise<boolean> {
    const read = textOf(path, this.#settings.max_file_bytes);
    if ("text" in read && !mayMatch(normal(read, pattern), pattern)) return true; // most files
    return this.#addMatches(path, read, pattern, results, signal);
  }

  async #addMatches(
    path: string,
    read: FileText | Promise<FileText>,
    pattern: TextPattern,
    results: Results,
    signal: AbortSignal | undefined,
  ): Promise<boolean> {
    let text = normal(await read, pattern);
    if ("text" in text) {
      if (!mayMatch(text, pattern)) return true;
      text = normal(await checkedTextOf(path, this.#settings.max_file_bytes), pattern);
    }
    return await results.add(this.#access.display(path), text, pattern, signal);
  }
}

/** Returns whether a text must be searched: one that is short enough is tested as a whole. */
function mayMatch({ text }: { text: string }, pattern: TextPattern): boolean {
  return text.length > pattern.chars || text.length > BLOCK_CHARS || pattern.maybe(text);
}

/** Returns a text with `\n` at the ends of lines, unless the pattern has `\r`. */
function normal<Read extends FileText>(read: Read, { keeps_cr }: TextPattern): Read {
  if (!("text" in read) || keeps_cr || !read.text.includes("\r\n")) return read;
  return { ...read, text: read.text.replaceAll("\r\n", "\n") };
}
