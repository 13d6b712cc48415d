/**
 * The tool `apply_patch`: several files in one patch of the V4A form, with which some models were trained.
 * Lines are found by their text, not by numbers, and only lines with `-` and `+` change a file.
 */
import { FileError, isSameFile } from "../files/access.ts";
import { decodeText } from "../files/encoding.ts";
import { bytesOf, isSameText, linesOf } from "../files/text_file.ts";
import { planWrite } from "./edit.ts";
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
import { type Chunk, updated } from "./update.ts";
import { defineTool, isWithinFolder, type Tool } from "preamp/base";

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
  const text = old.before && await decodeText(old.before);
  const said = old.info.isSymlink ? `Deleted the link ${name}` : `Deleted ${name} (${old.info.size} bytes)`;
  return {
    changes: [{ ...old, after: null }],
    done: [await doneTo(said, text === null ? undefined : linesOf(text.text).lines)],
  };
}

async function planUpdate(writing: Writing, { path, chunks, move_to }: Update): Promise<PlannedChanges> {
  const { access, known } = writing;
  let update: TextUpdate | undefined;
  if (chunks.length > 0) {
    await access.writable(path);
    const { file, bytes, real } = await readText(access, path);
    const isKnown = await known.checkUnchanged(real, bytes, path);
    const now = await updated(file, chunks, path);
    const change = { path, real, before: bytes, after: bytesOf(now, path), isKnown };
    if (!isSameText(file, now)) update = { change, before: file.lines, after: now.lines };
  }
  if (move_to !== undefined) return await planMove(writing, path, move_to, update);
  if (!update) throw new FileError(`The patch changes nothing in ${path}`);
  const sentence = `Edited ${access.display(update.change.real)}`;
  return { changes: [update.change], done: [await doneTo(sentence, update.before, update.after)] };
}

/** A change of the text of a file. */
interface TextUpdate {
  readonly change: FileChange;
  readonly before: readonly string[];
  readonly after: readonly string[];
}

/** Plans to move a file, with its update if any, or a link itself. */
async function planMove(
  writing: Writing,
  path: string,
  move_to: string,
  update: TextUpdate | undefined,
): Promise<PlannedChanges> {
  const { access, known } = writing;
  const from = await readEntry(writing, path);
  if (from.info.isSymlink && update) {
    throw new FileError(`${path} is a link: change the file that it leads to, or move it without changes`);
  }
  const to = await access.entry(move_to);
  const over = to.info && await readEntry(writing, move_to);
  if (to.path === from.real || over && isSameFile(over.info, from.info)) {
    throw new FileError(`${move_to} is ${path} itself: leave out *** Move to`);
  }
  if (over?.before) await known.checkKnown(over.real, over.before, move_to);
  const moved: FileChange = {
    path: move_to,
    real: to.path,
    before: over?.before ?? null,
    isKnown: from.isKnown,
    ...(from.info.isSymlink ? { link: await Deno.readLink(from.real) } : {}),
    ...(update
      ? { after: update.change.after, ...(from.info.mode === null ? {} : { mode: from.info.mode }) }
      : { after: from.before, from: from.real }),
  };
  const sentence = `Moved ${access.display(from.real)} ${over ? "over" : "to"} ${access.display(to.path)}` +
    (over ? ` (which had ${over.info.size} bytes)` : "");
  return {
    changes: [moved, { ...from, after: null }],
    done: [await doneTo(sentence, update?.before, update?.after)],
  };
}
