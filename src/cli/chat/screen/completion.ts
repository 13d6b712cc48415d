/** Completion in the input line: `/command` at its start, `@file` anywhere. */
import {
  type AutocompleteItem,
  type AutocompleteProvider,
  type AutocompleteSuggestions,
  fuzzyFilter,
} from "@earendil-works/pi-tui";
import { printable } from "../../terminal/answer_writer.ts";
import type { CommandName } from "../slash_commands.ts";

/** Files of the folder that are known, and those that are shown. */
const MOST_FILES = 5_000, SHOWN_FILES = 20;
const SKIPPED: ReadonlySet<string> = new Set([
  ".git",
  "node_modules",
  "dist",
  "target",
  ".venv",
  "__pycache__",
]);
/** Milliseconds for which the list of files is used. */
const LIST_MS = 5_000;

/** Completes commands and files. */
export class Completion implements AutocompleteProvider {
  readonly triggerCharacters = ["@"];
  readonly #commands: readonly CommandName[];
  readonly #folder: string;
  #files: { at: number; list: Promise<string[]> } | null = null;

  /** @param folder Path of the folder of the files, ending in a slash. */
  constructor(commands: readonly CommandName[], folder: string) {
    this.#commands = commands;
    this.#folder = folder;
  }

  async getSuggestions(
    lines: string[],
    line: number,
    column: number,
    { signal }: { signal: AbortSignal },
  ): Promise<AutocompleteSuggestions | null> {
    const before = (lines[line] ?? "").slice(0, column);
    const command = line === 0 ? /^\/([\w-]*)$/.exec(before)?.[1] : undefined;
    if (command !== undefined) {
      const items = fuzzyFilter([...this.#commands], command, ({ name }) => name)
        .map(({ name, description }) => ({ value: `/${name}`, label: `/${name}`, description }));
      return items.length === 0 ? null : { items, prefix: before };
    }
    const part = /(?:^|\s)@(\S*)$/.exec(before)?.[1];
    if (part === undefined) return null;
    const files = await this.#list();
    if (signal.aborted) return null;
    if (files.includes(part)) return null; // it is whole, and Enter sends the message
    const items = fuzzyFilter(files, part, (file) => file).slice(0, SHOWN_FILES).map((file) => ({
      value: /\s/.test(file) ? `@"${file}"` : `@${file}`,
      label: printable(file),
    }));
    return items.length === 0 ? null : { items, prefix: `@${part}` };
  }

  applyCompletion(
    lines: string[],
    line: number,
    column: number,
    { value }: AutocompleteItem,
    prefix: string,
  ): { lines: string[]; cursorLine: number; cursorCol: number } {
    const text = lines[line] ?? "";
    const start = `${text.slice(0, column - prefix.length)}${value} `;
    return { lines: lines.with(line, start + text.slice(column)), cursorLine: line, cursorCol: start.length };
  }

  #list(): Promise<string[]> {
    if (this.#files === null || performance.now() - this.#files.at > LIST_MS) {
      this.#files = { at: performance.now(), list: listFiles(this.#folder) };
    }
    return this.#files.list;
  }
}

/** Resolves to the files of a folder and of the folders in it, the shortest paths first. */
async function listFiles(folder: string): Promise<string[]> {
  const found: string[] = [];
  const folders = [""];
  for (let at = 0; at < folders.length && found.length < MOST_FILES; at++) {
    try {
      for await (const { name, isDirectory } of Deno.readDir(`${folder}${folders[at]}`)) {
        if (SKIPPED.has(name) || /[\n"]/.test(name)) continue;
        if (isDirectory) folders.push(`${folders[at]}${name}/`);
        else found.push(`${folders[at]}${name}`);
      }
    } catch { /* a folder that cannot be read has no files to name */ }
  }
  return found.sort((a, b) => a.length - b.length || (a < b ? -1 : 1));
}
