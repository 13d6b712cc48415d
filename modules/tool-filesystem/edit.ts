/** The tools `edit` and `write`: change parts of a file, or all of it. */
import { type FileAccess, FileError } from "../files/access.ts";
import { lineAt, nearestLines, placesOf, type Range, tolerantPlacesOf } from "./match.ts";
import {
  applyChanges,
  diffOf,
  type FileChange,
  fileFailure,
  type FileLocks,
  MAX_EDITED_BYTES,
  pathOf,
  readText,
  type SeenFiles,
} from "./shared.ts";
import { type Coordinator, defineTool, type JsonSchema, type Tool } from "preamp/base";

/** What the tools that write share. */
export interface Writing {
  readonly coordinator: Coordinator;
  readonly access: FileAccess;
  readonly seen: SeenFiles;
  readonly locks: FileLocks;
}

interface Replacement {
  old_string: string;
  new_string: string;
  replace_all?: boolean;
}

interface EditInput extends Partial<Replacement> {
  path?: string;
  file_path?: string;
  edits?: Replacement[];
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
        return await changed(writing, pathOf, input, (path) => planEdit(writing, path, input));
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
      description: "Create a file, or replace all of it. Use edit to change parts of a file.",
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
        return await changed(writing, pathOf, input, (path) => planWrite(writing, path, input.content));
      },
    }),
    preview: (input) => previewOf(() => planWrite(writing, pathOf(input), String(input.content ?? ""))),
  };
}

/** Plans and makes one change while no other changes the file. */
async function changed<Input>(
  { coordinator, access, seen, locks }: Writing,
  pathIn: (input: Input) => string,
  input: Input,
  plan: (path: string) => Promise<PlannedChange>,
): Promise<unknown> {
  try {
    const path = pathIn(input);
    const { path: real } = await access.writable(path);
    return await locks.run([real], async () => {
      const change = await plan(path);
      const note = await applyChanges(coordinator, access, [change], seen);
      return `${change.summary}${note}`;
    });
  } catch (error) {
    return fileFailure(error);
  }
}

/** Resolves to what a change would do, for the person who is asked; its refusal, if it would be refused. */
export async function previewOf(plan: () => Promise<{ summary: string }>): Promise<string> {
  try {
    return (await plan()).summary;
  } catch (error) {
    if (error instanceof FileError) return error.message;
    throw error;
  }
}

interface PlannedChange extends FileChange {
  /** What was done, with the diff. */
  readonly summary: string;
}

async function planEdit({ access, seen }: Writing, path: string, input: EditInput): Promise<PlannedChange> {
  const edits = [...input.edits ?? []];
  const { old_string, new_string, replace_all } = input;
  if (old_string !== undefined && new_string !== undefined) {
    edits.push({ old_string, new_string, ...(replace_all === undefined ? {} : { replace_all }) });
  }
  if (edits.length === 0) throw new FileError("edits is required: a list of { old_string, new_string }");
  await access.writable(path);
  const { text, bytes, info, real } = await readText(access, path);
  seen.check(real, info, path);
  const after = editedText(text, edits, path);
  const summary = `Edited ${access.display(real)}\n${await diffOf(text, after)}`;
  return { path, real, before: bytes, after, summary };
}

/**
 * Returns a text with replacements.
 *
 * @throws {FileError} when one is not found, not unique, overlaps another, or changes nothing.
 */
export function editedText(text: string, edits: readonly Replacement[], path: string): string {
  const crlf = text.includes("\r\n");
  const found = edits.flatMap((edit, index) => {
    const name = edits.length === 1 ? "old_string" : `old_string of edit ${index + 1}`;
    const written = (part: string) => crlf && !part.includes("\r") ? part.replaceAll("\n", "\r\n") : part;
    return rangesOf(text, written(edit.old_string), edit, name, path).map((range) => ({
      ...range,
      name,
      put: written(edit.new_string),
    }));
  }).sort((a, b) => a.start - b.start);
  const parts: string[] = [];
  let end = 0;
  for (const [index, range] of found.entries()) {
    if (range.start < end) {
      throw new FileError(`${range.name} overlaps ${found[index - 1]!.name}: make them one edit`);
    }
    parts.push(text.slice(end, range.start), range.put);
    end = range.end;
  }
  const after = parts.join("") + text.slice(end);
  if (after === text) throw new FileError("The edits change nothing: new_string is the same as old_string");
  return after;
}

function rangesOf(
  text: string,
  wanted: string,
  { replace_all }: Replacement,
  name: string,
  path: string,
): Range[] {
  if (wanted === "") throw new FileError(`${name} is empty: use write for a new file`);
  const exact = placesOf(text, wanted);
  const places = exact.length > 0 ? exact : tolerantPlacesOf(text, wanted);
  if (places.length === 1 || places.length > 1 && replace_all && exact.length > 0) return places;
  if (places.length === 0) {
    throw new FileError(
      `${name} is not in ${path}. The nearest lines are:\n${nearestLines(text, wanted)}`,
    );
  }
  const lines = places.slice(0, 10).map(({ start }) => lineAt(text, start)).join(", ");
  throw new FileError(
    `${name} is ${places.length} times in ${path} (lines ${lines}): add lines around it, or set replace_all`,
  );
}

async function planWrite({ access, seen }: Writing, path: string, content: string): Promise<PlannedChange> {
  const target = await access.writable(path);
  const name = access.display(target.path);
  const size = new TextEncoder().encode(content).length;
  if (size > MAX_EDITED_BYTES) {
    throw new FileError(`content has ${size} bytes; at most ${MAX_EDITED_BYTES} can be written`);
  }
  const lines = content === "" ? 0 : content.replace(/\n$/, "").split("\n").length;
  if (target.info === null) {
    const shown = await diffOf("", content);
    return {
      path,
      real: target.path,
      before: null,
      after: content,
      summary: `Created ${name} (${lines} lines)\n${shown}`,
    };
  }
  seen.check(target.path, target.info, path);
  const { bytes } = await access.read(path, MAX_EDITED_BYTES);
  const shown = await diffOf(new TextDecoder().decode(bytes), content);
  return {
    path,
    real: target.path,
    before: bytes,
    after: content,
    summary: `Replaced ${name} (${lines} lines)\n${shown}`,
  };
}
