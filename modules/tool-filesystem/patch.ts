/**
 * The tool `apply_patch`: several files in one patch of the V4A form, with which some models were trained.
 * Lines are found by their text, not by numbers.
 */
import { FileError } from "../files/access.ts";
import { previewOf, type Writing } from "./edit.ts";
import { applyChanges, diffOf, type FileChange, fileFailure, readText } from "./shared.ts";
import { defineTool, type Tool } from "preamp/base";

/** One part of an update: lines that are replaced by others. */
interface Chunk {
  /** Lines that stand before the part, each in its place; from `@@ …`. */
  readonly anchors: string[];
  readonly old: string[];
  readonly put: string[];
  at_end: boolean;
}

type Operation =
  | { readonly kind: "add"; readonly path: string; readonly lines: string[] }
  | { readonly kind: "delete"; readonly path: string }
  | { readonly kind: "update"; readonly path: string; move_to?: string; readonly chunks: Chunk[] };

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
        const { coordinator, access, seen, locks } = writing;
        try {
          const operations = parsePatch(patch);
          const paths = await Promise.all(
            pathsOf(operations).map(async (path) => (await access.writable(path)).path),
          );
          return await locks.run([...new Set(paths)].sort(), async () => {
            const { changes, summary } = await planPatch(writing, operations);
            return summary + await applyChanges(coordinator, access, changes, seen);
          });
        } catch (error) {
          return fileFailure(error);
        }
      },
    }),
    preview: ({ patch }) => previewOf(() => planPatch(writing, parsePatch(String(patch ?? "")))),
  };
}

function pathsOf(operations: readonly Operation[]): string[] {
  return operations.flatMap((operation) =>
    operation.kind === "update" && operation.move_to !== undefined
      ? [operation.path, operation.move_to]
      : [operation.path]
  );
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
  // in an update, a line that begins with a space is one of the file
  const header = HEADER.exec(operations.at(-1)?.kind === "update" ? line.trimEnd() : line.trim());
  if (header) {
    const path = header[2]!.trim();
    if (header[1] === "Add") operations.push({ kind: "add", path, lines: [] });
    else if (header[1] === "Delete") operations.push({ kind: "delete", path });
    else operations.push({ kind: "update", path, chunks: [] });
    return null;
  }
  const last = operations.at(-1);
  if (!last) return "must be *** Add File, *** Delete File or *** Update File";
  if (last.kind === "delete") return "follows a deleted file";
  if (last.kind === "add") {
    if (!line.startsWith("+")) return "of a new file must begin with +";
    last.lines.push(line.slice(1));
    return null;
  }
  return addUpdateLine(last, line);
}

function addUpdateLine(update: Operation & { kind: "update" }, line: string): string | null {
  const { chunks } = update;
  const moved = /^\*\*\* Move to: (.+)$/.exec(line.trimEnd());
  if (moved) {
    if (chunks.length > 0) return "must stand before the changes";
    update.move_to = moved[1]!.trim();
    return null;
  }
  let chunk = chunks.at(-1);
  if (line.startsWith("@@")) {
    const anchor = line.slice(2).trim().replace(/\s*@@$/, "");
    const is_open = chunk !== undefined && chunk.old.length === 0 && chunk.put.length === 0;
    if (!is_open) chunks.push(chunk = { anchors: [], old: [], put: [], at_end: false });
    // "-1,3 +1,4" of a unified diff is no line of the file
    if (anchor !== "" && !/^-\d+(,\d+)? \+\d+(,\d+)?$/.test(anchor)) chunk!.anchors.push(anchor);
    return null;
  }
  if (line.trimEnd() === "*** End of File") {
    if (chunk) chunk.at_end = true;
    return chunk ? null : "follows no change";
  }
  if (!chunk) chunks.push(chunk = { anchors: [], old: [], put: [], at_end: false });
  const [mark, text] = [line[0] ?? " ", line.slice(1)];
  if (mark !== " " && mark !== "-" && mark !== "+") return "must begin with @@, space, - or +";
  if (mark !== "+") chunk.old.push(text);
  if (mark !== "-") chunk.put.push(text);
  return null;
}

/** Works out the changes of a patch without making them. @throws {FileError} */
async function planPatch(
  { access, seen }: Writing,
  operations: readonly Operation[],
): Promise<{ changes: FileChange[]; summary: string }> {
  const changes: FileChange[] = [];
  const parts: string[] = [];
  const add = async (change: FileChange, word: string, before: string) => {
    if (changes.some(({ real }) => real === change.real)) {
      throw new FileError(`${change.path} is changed twice by the patch: make it one *** Update File`);
    }
    changes.push(change);
    parts.push(`${word} ${access.display(change.real)}\n${await diffOf(before, change.after ?? "")}`);
  };
  for (const operation of operations) {
    const { path } = operation;
    if (operation.kind === "add") {
      const { path: real, info } = await access.writable(path);
      const old = info === null ? null : await readText(access, path);
      if (old) seen.check(real, old.info, path);
      const after = operation.lines.map((line) => `${line}\n`).join("");
      await add(
        { path, real, before: old?.bytes ?? null, after },
        old ? "Replaced" : "Created",
        old?.text ?? "",
      );
      continue;
    }
    await access.writable(path);
    const { text, bytes, info, real } = await readText(access, path);
    seen.check(real, info, path);
    if (operation.kind === "delete") {
      await add({ path, real, before: bytes, after: null }, "Deleted", text);
      continue;
    }
    const { move_to, chunks } = operation;
    if (chunks.length === 0 && move_to === undefined) {
      throw new FileError(`The patch changes nothing in ${path}`);
    }
    const after = updatedText(text, chunks, path);
    if (move_to === undefined) {
      await add({ path, real, before: bytes, after }, "Edited", text);
      continue;
    }
    const target = await access.writable(move_to);
    if (target.path === real) throw new FileError(`${move_to} is ${path} itself: leave out *** Move to`);
    const old = target.info === null ? null : await readText(access, move_to);
    if (old) seen.check(old.real, old.info, move_to);
    // the new file is written before the old one is deleted
    await add(
      { path: move_to, real: target.path, before: old?.bytes ?? null, after },
      `Moved ${access.display(real)} ${old ? "over" : "to"}`,
      old?.text ?? text,
    );
    changes.push({ path, real, before: bytes, after: null });
  }
  return { changes, summary: parts.join("\n") };
}

/** Returns a text with the changes of chunks, which follow each other in it. @throws {FileError} */
export function updatedText(text: string, chunks: readonly Chunk[], path: string): string {
  const newline = text.includes("\r\n") ? "\r\n" : "\n";
  const lines = text.split(/\r?\n/);
  const ends_with_newline = lines.at(-1) === "";
  if (ends_with_newline) lines.pop();
  const found: { readonly at: number; readonly count: number; readonly put: readonly string[] }[] = [];
  let from = 0;
  for (const { anchors, old, put, at_end } of chunks) {
    let start = from;
    for (const anchor of anchors) {
      const at = find(lines, [anchor], start, false);
      if (at < 0) throw new FileError(`The patch needs the line "${anchor}" in ${path}: it is not there`);
      start = at + 1;
    }
    if (old.length === 0 && (anchors.length === 0 || at_end)) {
      found.push({ at: lines.length, count: 0, put }); // later parts may be before it
      continue;
    }
    const at = old.length === 0 ? start : find(lines, old, start, at_end);
    if (at < 0) {
      throw new FileError(`The patch does not match ${path}: these lines are not there:\n${old.join("\n")}`);
    }
    found.push({ at, count: old.length, put });
    from = at + old.length;
  }
  const result: string[] = [];
  let end = 0;
  for (const { at, count, put } of found.toSorted((a, b) => a.at - b.at)) {
    for (const line of lines.slice(end, at)) result.push(line);
    for (const line of put) result.push(line);
    end = at + count;
  }
  for (const line of lines.slice(end)) result.push(line);
  return result.length === 0 ? "" : result.join(newline) + newline;
}

/** Forms in which lines are compared, the strictest first. */
const FORMS: readonly ((line: string) => string)[] = [
  (line) => line,
  (line) => line.trimEnd(),
  (line) => line.trim(),
  (line) =>
    line.trim().replace(/[\u2018-\u201b]/g, "'").replace(/[\u201c-\u201f]/g, '"').replace(
      /[\u2010-\u2015\u2212]/g,
      "-",
    )
      .replace(/[\u00a0\u2000-\u200a\u202f\u3000]/g, " "),
];

/** Returns where lines stand at or after `from`, preferably at the end with `at_end`; -1 if nowhere. */
function find(lines: readonly string[], wanted: readonly string[], from: number, at_end: boolean): number {
  const last = lines.length - wanted.length;
  for (const form of FORMS) {
    const sought = wanted.map(form);
    if (at_end && last >= from && sought.every((line, index) => form(lines[last + index]!) === line)) {
      return last;
    }
    const at = indexOfAll(lines, sought, from, form);
    if (at >= 0) return at;
  }
  return -1;
}

/**
 * Returns the first place of a list of lines at or after `from`; -1: nowhere. In linear time: after a
 * mismatch, lines that are known to match are not compared again (the algorithm of Knuth, Morris and Pratt).
 */
function indexOfAll(
  lines: readonly string[],
  sought: readonly string[],
  from: number,
  form: (line: string) => string,
): number {
  const back = [0];
  for (let at = 1, length = 0; at < sought.length; at++) {
    while (length > 0 && sought[at] !== sought[length]) length = back[length - 1]!;
    if (sought[at] === sought[length]) length++;
    back.push(length);
  }
  for (let at = from, length = 0; at < lines.length; at++) {
    const line = form(lines[at]!);
    while (length > 0 && line !== sought[length]) length = back[length - 1]!;
    if (line === sought[length]) length++;
    if (length === sought.length) return at - length + 1;
  }
  return -1;
}
