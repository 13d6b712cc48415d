/** Collects the results of a search as text, until there are enough. */
import { counted } from "../files/find.ts";
import type { FileText } from "./file_text.ts";
import { matchesIn } from "./matches.ts";
import type { TextPattern } from "./pattern.ts";

export const OUTPUTS = ["content", "files", "count"] as const;

/** How the results are asked for. */
export interface ResultsInput {
  pattern: string;
  glob?: string;
  context?: number;
  output?: (typeof OUTPUTS)[number];
  limit?: number;
  offset?: number;
}

const MAX_RESULT_CHARS = 60_000;
/** Maximum lines of one match. */
const MAX_MATCH_LINES = 200;
const MAX_NAMES = 3;

export class Results {
  full = false;
  readonly #input: ResultsInput;
  readonly #max_line_chars: number;
  readonly #limit: number;
  readonly #lines: string[] = [];
  /** Results that were left out before the offset, and shown. */
  #skipped = 0;
  #shown = 0;
  #chars = 0;
  readonly #too_large: string[] = [];
  readonly #binary: string[] = [];
  #unreadable = 0;

  constructor(input: ResultsInput, maxLineChars: number, defaultLimit: number) {
    this.#input = input;
    this.#max_line_chars = maxLineChars;
    this.#limit = input.limit ?? defaultLimit;
  }

  /** Adds the matches in a file. Resolves to whether more results are wanted. */
  async add(
    file: string,
    read: FileText,
    pattern: TextPattern,
    signal: AbortSignal | undefined,
  ): Promise<boolean> {
    if ("problem" in read) {
      if (read.problem === "too large") this.#too_large.push(file);
      else this.#unreadable++;
    } else if (read.is_binary) {
      for await (const _ of matchesIn(read.text, pattern, signal)) {
        this.#binary.push(file);
        break;
      }
    } else if (this.#input.output === "files" || this.#input.output === "count") {
      await this.#addFile(file, matchesIn(read.text, pattern, signal));
    } else await this.#addLines(file, read.text, matchesIn(read.text, pattern, signal));
    return !this.full;
  }

  async #addFile(file: string, matches: AsyncIterable<unknown>): Promise<void> {
    let count = 0;
    for await (const _ of matches) {
      count++;
      if (this.#input.output === "files") break;
    }
    if (count > 0 && this.#take()) this.#show([this.#input.output === "files" ? file : `${file}:${count}`]);
  }

  async #addLines(file: string, text: string, matches: ReturnType<typeof matchesIn>): Promise<void> {
    const { context = 0 } = this.#input;
    const all = context > 0 ? text.replace(/\n$/, "").split("\n") : [];
    /** Index of the next line that may be shown. */
    let next = 0;
    for await (const { at, lines, found } of matches) {
      if (!this.#take()) {
        if (this.full) return;
        continue;
      }
      const from = Math.max(next, at - context);
      const shown: string[] = context > 0 && next > 0 && from > next ? ["--"] : [];
      for (let near = from; near < at; near++) shown.push(this.#line(file, "-", near, all[near]!));
      for (const [index, line] of lines.slice(0, MAX_MATCH_LINES).entries()) {
        shown.push(this.#line(file, ":", at + index, line, index === 0 ? found : 0));
      }
      const more = lines.length - MAX_MATCH_LINES;
      if (more > 0) shown.push(`[… ${counted(more, "more line")} of this match]`);
      const after = at + lines.length;
      next = Math.min(all.length, after + context);
      for (let near = after; near < next; near++) shown.push(this.#line(file, "-", near, all[near]!));
      this.#show(shown);
      if (this.full) return;
    }
  }

  /** Returns whether a result is shown: it is not before the offset, and not beyond the limit. */
  #take(): boolean {
    if (this.#skipped < (this.#input.offset ?? 0)) {
      this.#skipped++;
      return false;
    }
    if (this.#shown === this.#limit) this.full = true;
    return !this.full;
  }

  #show(lines: readonly string[]): void {
    this.#chars += lines.reduce((sum, line) => sum + line.length + 1, 0);
    if (this.#chars > MAX_RESULT_CHARS && this.#shown > 0) {
      this.full = true;
      return;
    }
    this.#shown++;
    this.#lines.push(...lines);
  }

  /** Returns a line as it is shown: the part around a match. */
  #line(file: string, mark: string, at: number, whole: string, found = 0): string {
    const line = whole.endsWith("\r") ? whole.slice(0, -1) : whole;
    const max = this.#max_line_chars;
    const from = Math.max(0, Math.min(found - max / 4, line.length - max) | 0);
    const part = line.slice(from, from + max).toWellFormed();
    const cut = `${from > 0 ? "[…] " : ""}${part}${from + max < line.length ? " […]" : ""}`;
    return `${file}${mark}${at + 1}${mark}${cut}`;
  }

  /** Returns the results, and what was left out. */
  text({ folder, count, notes, hint }: {
    folder: string;
    count: number;
    notes: readonly string[];
    hint: string | null;
  }): string {
    const { pattern, glob, offset = 0 } = this.#input;
    const all = [
      ...this.full ? [`there are more results: continue with offset ${offset + this.#shown}`] : [],
      ...named(this.#binary, "binary, with a match that is not shown"),
      ...named(this.#too_large, "too large to search"),
      ...this.#unreadable > 0 ? [`${counted(this.#unreadable, "file")} cannot be read`] : [],
      ...this.#lines.length === 0 && count > 0 && hint !== null ? [hint] : [],
      ...notes,
    ];
    const note = all.length === 0 ? "" : `\n(${all.join("; ")})`;
    if (this.#lines.length > 0) return this.#lines.join("\n") + note;
    if (this.#skipped > 0) return `There are only ${counted(this.#skipped, "result")}${note}`;
    if (count > 0) return `Nothing matches ${pattern} in ${folder}${note}`;
    return glob === undefined
      ? `There are no files to search in ${folder}${note}`
      : `No file in ${folder} matches the glob ${glob}, so nothing was searched${note}`;
  }
}

function named(files: readonly string[], what: string): string[] {
  if (files.length === 0) return [];
  const more = files.length > MAX_NAMES ? ` and ${files.length - MAX_NAMES} more` : "";
  return [`${what}: ${files.slice(0, MAX_NAMES).join(", ")}${more}`];
}
