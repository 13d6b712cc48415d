/** The tools `edit` and `write`: change parts of a file, or all of it. */
import { FileError } from "../files/access.ts";
import { counted } from "../files/find.ts";
import { changesBetween } from "../files/line_changes.ts";
import {
  bytesOf,
  formatOf,
  lineAt,
  linesOf,
  newTextFile,
  normalText,
  replaced,
  type Replacement,
  startsOf,
  type TextFile,
  wholeLines,
} from "../files/text_file.ts";
import { fitted, LineMatcher, nearestLines } from "./match.ts";
import {
  doneTo,
  makeChanges,
  MAX_EDITED_BYTES,
  pathOf,
  type PlannedChanges,
  previewOf,
  readText,
  type Writing,
} from "./shared.ts";
import { defineTool, type JsonSchema, type Tool } from "preamp/base";

interface Edit {
  old_string: string;
  new_string: string;
  replace_all?: boolean;
}

interface EditInput extends Partial<Edit> {
  path?: string;
  file_path?: string;
  edits?: Edit[];
}

const PATH_FIELDS = {
  path: { type: "string", description: "File, absolute or relative to the working folder" },
  file_path: { type: "string", description: "The same as path" },
};

const REPLACEMENT_FIELDS = {
  old_string: { type: "string", description: "Text of the file, unique in it, with its indentation" },
  new_string: { type: "string", description: "Text to put in its place" },
  replace_all: { type: "boolean", description: "Replace every place of old_string" },
};

const EDIT_INPUT: JsonSchema = {
  type: "object",
  properties: {
    ...PATH_FIELDS,
    edits: {
      type: "array",
      minItems: 1,
      maxItems: 200,
      description: "Replacements; each old_string is searched in the file as it is now",
      items: {
        type: "object",
        properties: REPLACEMENT_FIELDS,
        required: ["old_string", "new_string"],
      },
    },
    ...REPLACEMENT_FIELDS,
  },
};

/** Returns the tool `edit`. */
export function editTool(writing: Writing): Tool {
  return {
    ...defineTool({
      name: "edit",
      description:
        "Replace parts of a text file. All edits are searched in the file as it is, and all are made or none.",
      input: EDIT_INPUT,
      risk: "medium",
      async execute(input: EditInput) {
        return await makeChanges(writing, () => planEdit(writing, pathOf(input), input));
      },
    }),
    preview: (input) => previewOf(() => planEdit(writing, pathOf(input), input as EditInput)),
  };
}

/** Returns the tool `write`. */
export function writeTool(writing: Writing): Tool {
  return {
    ...defineTool({
      name: "write",
      description: "Create a file, or replace all of one that was read. Use edit to change parts of a file.",
      input: {
        type: "object",
        properties: {
          ...PATH_FIELDS,
          content: { type: "string", description: "The whole text of the file" },
        },
        required: ["content"],
      },
      risk: "medium",
      async execute(input: { path?: string; file_path?: string; content: string }) {
        return await makeChanges(writing, () => planWrite(writing, pathOf(input), input.content));
      },
    }),
    preview: (input) => previewOf(() => planWrite(writing, pathOf(input), String(input.content ?? ""))),
  };
}

async function planEdit({ access, known }: Writing, path: string, input: EditInput): Promise<PlannedChanges> {
  const edits = [...input.edits ?? []];
  const { old_string, new_string, replace_all } = input;
  if (old_string !== undefined && new_string !== undefined) {
    edits.push({ old_string, new_string, ...(replace_all === undefined ? {} : { replace_all }) });
  }
  if (edits.length === 0) throw new FileError("edits is required: a list of { old_string, new_string }");
  await access.writable(path);
  const { file, bytes, real } = await readText(access, path);
  const isKnown = await known.checkUnchanged(real, bytes, path);
  const after = await edited(file, edits, path);
  return {
    changes: [{ path, real, before: bytes, after: bytesOf(after, path), isKnown }],
    done: [await doneTo(`Edited ${access.display(real)}`, file.lines, after.lines)],
  };
}

/**
 * Resolves to a file with replacements.
 *
 * @throws {FileError} when one is not there, not unique, overlaps another or cannot be fitted, or when
 * nothing changes.
 */
export async function edited(file: TextFile, edits: readonly Edit[], path: string): Promise<TextFile> {
  const source = new EditedText(file, path);
  const found: (Replacement & { name: string })[] = [];
  for (const [index, edit] of edits.entries()) {
    const name = edits.length === 1 ? "old_string" : `old_string of edit ${index + 1}`;
    for (const place of await source.placesOf(edit, name)) found.push({ ...place, name });
  }
  found.sort((a, b) => a.start - b.start);
  let chars = source.text.length;
  for (const [index, { start, end, put, name }] of found.entries()) {
    const before = found[index - 1];
    if (before && start < before.end) {
      throw new FileError(`${name} overlaps ${before.name}: make them one edit`);
    }
    chars += put.length - (end - start);
  }
  if (chars > MAX_EDITED_BYTES) {
    throw new FileError(
      `The file would have ${chars} characters; at most ${MAX_EDITED_BYTES} can be written`,
    );
  }
  if (found.every(({ start, end, put }) => put === source.text.slice(start, end))) {
    throw new FileError(
      "The edits change nothing: new_string is the same as old_string (line ends stay those of the file)",
    );
  }
  return await replaced(file, found);
}

/** Places of one text that are named in a refusal, and that can be replaced. */
const MAX_NAMED = 10;
const MAX_REPLACED = 200_000;

/** A file in which the texts of edits are searched. */
class EditedText {
  readonly text: string;
  readonly #file: TextFile;
  readonly #lines: readonly string[];
  readonly #starts: readonly number[];
  readonly #matcher: LineMatcher;
  readonly #path: string;

  constructor(file: TextFile, path: string) {
    this.text = file.lines.join("\n");
    this.#file = file;
    this.#lines = wholeLines(file);
    this.#starts = startsOf(file.lines);
    this.#matcher = new LineMatcher(this.#lines);
    this.#path = path;
  }

  /** Resolves to where an edit's text is, and what it puts there. @throws {FileError} */
  async placesOf({ old_string, new_string, replace_all }: Edit, name: string): Promise<Replacement[]> {
    const [old, put] = [normalText(old_string, this.#file), normalText(new_string, this.#file)];
    if (old === "") throw new FileError(`${name} is empty: use write for a new file`);
    const exact = this.#exactPlaces(old, replace_all === true);
    if (exact.length === 0) return [await this.#tolerantPlace(old, put, name)];
    if (exact.length > 1 && !replace_all) {
      throw this.#ambiguous(name, exact.map((start) => lineAt(this.#starts, start)), ", or set replace_all");
    }
    if (exact.length > MAX_REPLACED) {
      throw new FileError(`${name} is more than ${MAX_REPLACED} times in ${this.#path}: use a command`);
    }
    return exact.map((start) => ({ start, end: start + old.length, put }));
  }

  /** Returns all places, without overlaps; or, with overlaps, as many as a refusal names. */
  #exactPlaces(wanted: string, isAll: boolean): number[] {
    const places: number[] = [];
    for (let at = this.text.indexOf(wanted); at >= 0;) {
      places.push(at);
      if (places.length > (isAll ? MAX_REPLACED : MAX_NAMED)) break;
      at = this.text.indexOf(wanted, at + (isAll ? wanted.length : 1));
    }
    return places;
  }

  /** Resolves to the only place of whole lines up to white space, quotes and dashes. @throws {FileError} */
  async #tolerantPlace(wanted: string, put: string, name: string): Promise<Replacement> {
    const isEnded = wanted.endsWith("\n");
    const old = wanted.slice(0, isEnded ? -1 : undefined).split("\n");
    const places = old.every((line) => line.trim() === "") ? [] : this.#matcher.placesOf(old);
    const [place] = places;
    if (place === undefined) {
      throw new FileError(
        `${name} is not in ${this.#path}. The nearest lines are:\n${nearestLines(this.#lines, old)}`,
      );
    }
    if (places.length > 1) throw this.#ambiguous(name, places, "");
    const end = place + old.length;
    if (isEnded && put !== "" && !put.endsWith("\n")) {
      throw new FileError(`${name} ends with a line end: new_string must end with one too`);
    }
    const now = put.split("\n").slice(0, isEnded ? -1 : undefined);
    const changes = await changesBetween(old, now);
    const found = this.#lines.slice(place, end);
    const lines = fitted(this.#lines, place, { old, now, changes, name }, this.#path);
    for (const [index, { at, count }] of [...changes.entries()].reverse()) {
      found.splice(at, count, ...lines[index]!);
    }
    const start = this.#starts[place]!;
    if (found.length === 0) return { start, end: this.#starts[end] ?? this.text.length, put: "" };
    return { start, end: this.#starts[end - 1]! + this.#lines[end - 1]!.length, put: found.join("\n") };
  }

  #ambiguous(name: string, places: readonly number[], or: string): FileError {
    const lines = places.slice(0, MAX_NAMED).map((line) => line + 1).join(", ");
    const count = places.length > MAX_NAMED ? `more than ${MAX_NAMED}` : places.length;
    return new FileError(
      `${name} is ${count} times in ${this.#path} (lines ${lines}): add lines around it${or}`,
    );
  }
}

/** Works out what `write` does. @throws {FileError} */
export async function planWrite(
  { access, known }: Writing,
  path: string,
  content: string,
): Promise<PlannedChanges> {
  const target = await access.writable(path);
  const name = access.display(target.path);
  const old = target.info === null ? null : await readText(access, path);
  if (old) await known.checkKnown(target.path, old.bytes, path);
  const after = old ? await rewritten(old.file, content) : newTextFile(content);
  const format = old ? formatOf(after) : "";
  const size = counted(wholeLines(after).length, "line");
  const shown = await doneTo(
    `${old ? "Replaced" : "Created"} ${name} (${size}${format && `; ${format}`})`,
    old?.file.lines,
    after.lines,
  );
  return {
    changes: [
      { path, real: target.path, before: old?.bytes ?? null, after: bytesOf(after, path), isKnown: true },
    ],
    done: [{ ...shown, numbered: [], left: 0 }], // the model wrote all of it
  };
}

/** Resolves to a file with all of its text replaced. Its format stays; a `\r\n` of the text does, too. */
async function rewritten(file: TextFile, content: string): Promise<TextFile> {
  const text = file.encoding.mark.length > 0 ? content.replace(/^\ufeff/, "") : content;
  const { ends } = linesOf(text);
  const end = file.lines.join("\n").length;
  const after = await replaced(file, [{ start: 0, end, put: normalText(text, file) }]);
  return { ...after, ends: after.ends.map((end, at) => ends[at] === "\r\n" ? "\r\n" : end) };
}
