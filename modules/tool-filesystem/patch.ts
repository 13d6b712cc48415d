/**
 * The tool `apply_patch`: several files in one patch of the V4A form, with which some models were trained.
 * Lines are found by their text, not by numbers, and only lines with `-` and `+` change the file.
 */
import { FileError, isSameFile } from "../files/access.ts";
import { decodeText } from "../files/encoding.ts";
import type { LineChange } from "../files/line_changes.ts";
import {
  bytesOf,
  lineAt,
  linesOf,
  replaced,
  type Replacement,
  startsOf,
  type TextFile,
  wholeLines,
} from "../files/text_file.ts";
import { planWrite } from "./edit.ts";
import { fitted, LineMatcher, nearestLines } from "./match.ts";
import {
  type Done,
  doneTo,
  type FileChange,
  makeChanges,
  type PlannedChanges,
  previewOf,
  readEntry,
  readText,
  type Writing,
} from "./shared.ts";
import { defineTool, isWithinFolder, type Tool } from "preamp/base";

/** A line of a change: of the file and kept, of the file and deleted, or new. */
interface Row {
  readonly mark: " " | "-" | "+";
  readonly text: string;
  /** Whether the line is empty, without a mark: models leave some between parts of a patch. */
  readonly isBare: boolean;
}

/** One part of an update. */
interface Chunk {
  /** Lines that stand before the part, each in its place; from `@@ …`. */
  readonly anchors: string[];
  readonly rows: Row[];
  at_end: boolean;
}

type Operation =
  | { readonly kind: "add"; readonly path: string; readonly lines: string[]; bare: number }
  | { readonly kind: "delete"; readonly path: string }
  | Update;

interface Update {
  readonly kind: "update";
  readonly path: string;
  move_to?: string;
  readonly chunks: Chunk[];
}

/** Returns the tool. */
export function applyPatchTool(writing: Writing): Tool {
  return {
    ...defineTool({
      name: "apply_patch",
      description: "Change files by a patch: *** Begin Patch, then *** Add File: P, *** Delete File: P or " +
        "*** Update File: P (with *** Move to: P) and hunks of lines that begin with @@, space, - or +, then " +
        "*** End Patch.",
      input: {
        type: "object",
        properties: { patch: { type: "string", description: "The whole patch" } },
        required: ["patch"],
      },
      risk: "medium",
      async execute({ patch }: { patch: string }) {
        return await makeChanges(writing, () => planPatch(writing, parsePatch(patch)));
      },
    }),
    preview: ({ patch }) => previewOf(() => planPatch(writing, parsePatch(String(patch ?? "")))),
  };
}

const HEADER = /^\*\*\* (Add|Delete|Update) File: (.+)$/;

/** Returns the operations of a patch. @throws {FileError} with the number of the line that cannot be read. */
export function parsePatch(patch: string): Operation[] {
  const lines = patch.replaceAll("\r\n", "\n").trim().split("\n");
  // models wrap the patch as they would for a shell
  if (/^<<\s*['"]?\w+['"]?$/.test(lines[0]!.trim())) lines.splice(0, 1), lines.pop();
  if (lines[0]?.trim() !== "*** Begin Patch") {
    throw new FileError('The patch must begin with "*** Begin Patch"');
  }
  if (lines.at(-1)?.trim() !== "*** End Patch") {
    throw new FileError('The patch must end with "*** End Patch"');
  }
  const operations: Operation[] = [];
  for (const [index, line] of lines.slice(0, -1).entries()) {
    if (index === 0) continue;
    const problem = addLine(operations, line);
    if (problem !== null) {
      throw new FileError(`Line ${index + 1} of the patch ${problem}: ${line.slice(0, 200)}`);
    }
  }
  if (operations.length === 0) throw new FileError("The patch names no file");
  return operations;
}

/** Adds a line to the last operation, or begins another one. Returns what is wrong, or null. */
function addLine(operations: Operation[], line: string): string | null {
  const last = operations.at(-1);
  // in an update, a line that begins with a space is one of the file
  const header = HEADER.exec(last?.kind === "update" ? line.trimEnd() : line.trim());
  if (header) {
    const path = header[2]!.trim();
    if (header[1] === "Add") operations.push({ kind: "add", path, lines: [], bare: 0 });
    else if (header[1] === "Delete") operations.push({ kind: "delete", path });
    else operations.push({ kind: "update", path, chunks: [] });
    return null;
  }
  if (last?.kind === "update") return addUpdateLine(last, line);
  if (line.trim() === "") {
    if (last?.kind === "add") last.bare++;
    return null;
  }
  if (!last) return "must be *** Add File, *** Delete File or *** Update File";
  if (last.kind === "delete") return "follows a deleted file";
  if (!line.startsWith("+")) return "of a new file must begin with +";
  for (; last.bare > 0; last.bare--) last.lines.push("");
  last.lines.push(line.slice(1));
  return null;
}

function addUpdateLine(update: Update, line: string): string | null {
  const { chunks } = update;
  let chunk = chunks.at(-1);
  const moved = /^\*\*\* Move to: (.+)$/.exec(line.trimEnd());
  if (moved) {
    if (chunk) return "must stand before the changes";
    update.move_to = moved[1]!.trim();
    return null;
  }
  if (line === "" && !chunk) return null;
  const begin = () => chunks.push(chunk = { anchors: [], rows: [], at_end: false });
  if (line.startsWith("@@")) {
    if (!chunk || !chunk.rows.every(({ isBare }) => isBare)) begin();
    // "-1,3 +1,4" of a unified diff is no line of the file
    const anchor = line.slice(2).trim().replace(/^-\d+(,\d+)? \+\d+(,\d+)?(?: @@|$)/, "").replace(
      /\s*@@$/,
      "",
    );
    chunk!.rows.length = 0;
    if (anchor.trim() !== "") chunk!.anchors.push(anchor.trim());
    return null;
  }
  if (line.trimEnd() === "*** End of File") {
    if (chunk) chunk.at_end = true;
    return chunk ? null : "follows no change";
  }
  if (!chunk) begin();
  const mark = line[0] ?? " ";
  if (mark !== " " && mark !== "-" && mark !== "+") return "must begin with @@, space, - or +";
  chunk!.rows.push({ mark, text: line.slice(1), isBare: line === "" });
  return null;
}

/** Works out the changes of a patch without making them. @throws {FileError} */
async function planPatch(writing: Writing, operations: readonly Operation[]): Promise<PlannedChanges> {
  const changes: FileChange[] = [];
  const done: Done[] = [];
  for (const operation of operations) {
    const planned = operation.kind === "add"
      ? await planWrite(writing, operation.path, operation.lines.map((line) => `${line}\n`).join(""))
      : operation.kind === "delete"
      ? await planDelete(writing, operation.path)
      : await planUpdate(writing, operation);
    for (const { path, real, after } of planned.changes) {
      for (const other of changes) {
        if (other.real === real) {
          throw new FileError(`${path} is changed twice by the patch: make it one *** Update File`);
        }
        const isBelow = isWithinFolder(other.real, real) || isWithinFolder(real, other.real);
        if (isBelow && after !== null && other.after !== null) {
          throw new FileError(`${path} and ${other.path} cannot both be files: one is below the other`);
        }
      }
    }
    changes.push(...planned.changes);
    done.push(...planned.done);
  }
  return { changes, done };
}

async function planDelete(writing: Writing, path: string): Promise<PlannedChanges> {
  const old = await readEntry(writing, path);
  const name = writing.access.display(old.real);
  const text = old.isLink ? null : await decodeText(old.before);
  const said = old.isLink ? `Deleted the link ${name}` : `Deleted ${name} (${old.info.size} bytes)`;
  return {
    changes: [{ ...old, after: null }],
    done: [await doneTo(said, text === null ? undefined : linesOf(text.text).lines)],
  };
}

async function planUpdate(writing: Writing, { path, chunks, move_to }: Update): Promise<PlannedChanges> {
  const { access, known } = writing;
  if (chunks.length === 0) {
    if (move_to === undefined) throw new FileError(`The patch changes nothing in ${path}`);
    return await planMove(writing, path, move_to, null);
  }
  await access.writable(path);
  const { file, bytes, real } = await readText(access, path);
  const isKnown = await known.checkUnchanged(real, bytes, path);
  const now = await updated(file, chunks, path);
  const after = bytesOf(now, path);
  if (move_to !== undefined) {
    const { changes, done: [moved] } = await planMove(writing, path, move_to, after);
    return { changes, done: [await doneTo(moved!.sentence, file.lines, now.lines)] };
  }
  return {
    changes: [{ path, real, before: bytes, after, isKnown }],
    done: [await doneTo(`Edited ${access.display(real)}`, file.lines, now.lines)],
  };
}

/** Plans to move a file or a link itself; `after`: with other bytes. */
async function planMove(
  writing: Writing,
  path: string,
  move_to: string,
  after: Uint8Array | null,
): Promise<PlannedChanges> {
  const { access, known } = writing;
  const from = await readEntry(writing, path);
  if (from.isLink && after !== null) {
    throw new FileError(`${path} is a link: change the file that it leads to, or move it without changes`);
  }
  const to = await access.entry(move_to);
  const over = to.info && await readEntry(writing, move_to);
  if (to.path === from.real || over && isSameFile(over.info, from.info)) {
    throw new FileError(`${move_to} is ${path} itself: leave out *** Move to`);
  }
  if (over?.before) await known.checkKnown(over.real, over.before, move_to);
  const { mode } = from.info;
  const moved = {
    path: move_to,
    real: to.path,
    before: over?.before ?? null,
    isKnown: from.isKnown,
    isLink: from.isLink || over?.isLink === true,
    ...(after === null
      ? { after: from.before, from: from.real }
      : { after, ...(mode === null ? {} : { mode }) }),
  };
  return {
    changes: [moved, { ...from, after: null }],
    done: [
      await doneTo(
        `Moved ${access.display(from.real)} ${over ? "over" : "to"} ${access.display(to.path)}` +
          (over ? ` (which had ${over.info.size} bytes)` : ""),
      ),
    ],
  };
}

/** A chunk with the lines that were found for it. */
interface Placed extends Chunk {
  readonly at: number;
  readonly old: readonly string[];
  /** Where the search began. */
  readonly from: number;
  /** Whether it is at the end of the file, as the patch says. */
  readonly isFixed: boolean;
}

/**
 * Resolves to a file with the changes of chunks, which follow each other in it.
 *
 * @throws {FileError} when one is not there, could be in several places, or cannot be fitted.
 */
export async function updated(file: TextFile, chunks: readonly Chunk[], path: string): Promise<TextFile> {
  const places = new ChunkPlaces(wholeLines(file), path);
  const first = places.first(chunks);
  const last = places.last(first);
  const result = await changed(file, first, path);
  const other = first.find(({ at }, index) => at !== last[index]);
  // which one of several is deleted may make no difference
  if (
    other &&
    !isSameText(result, await changed(file, first.map((one, at) => ({ ...one, at: last[at]! })), path))
  ) {
    const lines = [other.at, last[first.indexOf(other)]!].map((line) => line + 1).join(" and ");
    throw new FileError(
      `These lines are in ${path} more than once (such as at lines ${lines}): add lines around them, or a ` +
        `line above them after @@:\n${other.old.join("\n")}`,
    );
  }
  if (result.lines.join("\n") === file.lines.join("\n")) {
    throw new FileError(`The patch changes nothing in ${path}`);
  }
  return result;
}

function isSameText(one: TextFile, other: TextFile): boolean {
  const textOf = ({ lines, ends }: TextFile) => lines.map((line, at) => line + ends[at]).join("");
  return textOf(one) === textOf(other);
}

async function changed(file: TextFile, placed: readonly Placed[], path: string): Promise<TextFile> {
  const starts = startsOf(file.lines);
  const length = starts.at(-1)! + file.lines.at(-1)!.length;
  const replacements: Replacement[] = [];
  for (const { rows, at: place, old } of placed) {
    const changes = changesOf(rows);
    const now = rows.filter(({ mark }) => mark !== "-").map(({ text }) => text);
    const lines = fitted(wholeLines(file), place, { old, now, changes, name: "The patch" }, path);
    for (const [index, { at, count }] of changes.entries()) {
      const put = lines[index]!;
      const [first, next] = [starts[place + at], starts[place + at + count]];
      if (next !== undefined) {
        replacements.push({
          start: first!,
          end: next,
          put: put.map((line) => `${line}\n`).join(""),
        });
      } // the last line has no line end, and so has what takes its place or follows it
      else if (count > 0) replacements.push({ start: first!, end: length, put: put.join("\n") });
      else replacements.push({ start: length, end: length, put: `\n${put.join("\n")}` });
    }
  }
  return await replaced(file, replacements.toSorted((a, b) => a.start - b.start));
}

/** Returns the changes of a chunk: lines with `-` and `+` that follow each other. */
function changesOf(rows: readonly Row[]): LineChange[] {
  const changes: { at: number; count: number; put: number }[] = [];
  let [at, isOpen] = [0, false];
  for (const { mark } of rows) {
    if (mark === " ") at++;
    else {
      if (!isOpen) changes.push({ at, count: 0, put: 0 });
      if (mark === "+") changes.at(-1)!.put++;
      else {
        changes.at(-1)!.count++;
        at++;
      }
    }
    isOpen = mark !== " ";
  }
  return changes;
}

/** Finds the chunks of an update in the lines of a file. */
class ChunkPlaces {
  readonly #lines: readonly string[];
  readonly #matcher: LineMatcher;
  readonly #path: string;

  constructor(lines: readonly string[], path: string) {
    this.#lines = lines;
    this.#matcher = new LineMatcher(lines);
    this.#path = path;
  }

  /** Returns the first place of each chunk after those before it. @throws {FileError} */
  first(chunks: readonly Chunk[]): Placed[] {
    let from = 0;
    return chunks.map((chunk) => {
      const anchors = chunk.anchors.map((anchor) => this.#matcher.placesOf([anchor], from));
      const start = anchors.length === 0 ? from : startAfter(anchors, firstFrom(anchors[0]!, from));
      if (start === undefined) {
        throw new FileError(
          `The patch needs these lines of its @@ in ${this.#path}, where they are not, or not in this order: ` +
            chunk.anchors.join(", "),
        );
      }
      const bare = chunk.rows.map(({ isBare }) => isBare);
      const trimmed = chunk.rows.slice(Math.max(0, bare.indexOf(false)), bare.lastIndexOf(false) + 1);
      for (const rows of [chunk.rows, trimmed]) {
        const old = oldLines(rows);
        const placed = { ...chunk, rows, old, from };
        // without a place of its own it is at the end, and later chunks may be before it
        if (old.length === 0 && (anchors.length === 0 || chunk.at_end)) {
          return { ...placed, at: this.#lines.length, isFixed: true };
        }
        const places = old.length === 0 ? [start] : this.#matcher.placesOf(old, start);
        const end = this.#lines.length - old.length;
        const isFixed = chunk.at_end && end >= start && places.includes(end);
        const at = isFixed ? end : firstFrom(places, start);
        if (at === undefined) continue;
        from = at + old.length;
        return { ...placed, at, isFixed };
      }
      const lines = oldLines(trimmed);
      throw new FileError(
        `The patch does not match ${this.#path}: these lines are not there:\n${lines.join("\n")}\n` +
          `The nearest lines are:\n${nearestLines(this.#lines, lines)}`,
      );
    });
  }

  /** Returns the last place of each chunk before those after it. */
  last(placed: readonly Placed[]): number[] {
    let limit = this.#lines.length;
    return placed.toReversed().map(({ anchors, old, at, from, isFixed }) => {
      if (isFixed) {
        if (old.length > 0) limit = at;
        return at;
      }
      const places = old.length === 0 ? null : this.#matcher.placesOf(old, at);
      const lists = anchors.map((anchor) => this.#matcher.placesOf([anchor], from));
      for (const place of (lists[0] ?? places!).toReversed()) {
        const start = lists.length === 0 ? place : startAfter(lists, place);
        const found = start === undefined || places === null ? start : firstFrom(places, start);
        if (found === undefined || found + old.length > limit) continue;
        limit = place;
        return found;
      }
      return at;
    }).reverse();
  }
}

function oldLines(rows: readonly Row[]): string[] {
  return rows.filter(({ mark }) => mark !== "+").map(({ text }) => text);
}

/** Returns the line after several lines, each found after the one before; undefined: one is missing. */
function startAfter(lists: readonly (readonly number[])[], first: number | undefined): number | undefined {
  return lists.slice(1).reduce(
    (start, places) => {
      const place = start === undefined ? undefined : firstFrom(places, start);
      return place === undefined ? undefined : place + 1;
    },
    first === undefined ? undefined : first + 1,
  );
}

/** Returns the first of ascending places that is at or after `start`. */
function firstFrom(places: readonly number[], start: number): number | undefined {
  return places[0]! >= start ? places[0] : places[lineAt(places, start - 1) + 1];
}
