/** What the tools of this module share: settings, the files that were read, and writing with its diff. */
import { type AppliedChange, type FileAccess, FileError } from "../files/access.ts";
import { MAX_NUMBERED, type ShownChange, shownChange } from "../files/line_changes.ts";
import { parseTextFile, type TextFile } from "../files/text_file.ts";
import type { KnownFiles } from "./known_files.ts";
import { type Coordinator, type JsonObject, toolFailure, ToolResult } from "preamp/base";

/** Settings of the module, with defaults filled in. */
export interface FileSettings {
  /** Folder that relative paths start at. */
  root?: string;
  dialect: "auto" | "plain" | "patch";
  max_read_lines: number;
  max_read_bytes: number;
  max_line_chars: number;
}

/** Bytes of a file that can be edited or replaced. */
export const MAX_EDITED_BYTES = 32 * 1024 * 1024;

/** What the tools that write share. */
export interface Writing {
  readonly coordinator: Coordinator;
  readonly access: FileAccess;
  readonly known: KnownFiles;
  readonly queue: ChangeQueue;
}

/** Makes one call's changes at a time, so that each is planned on what the one before has left. */
export class ChangeQueue {
  #last: Promise<unknown> = Promise.resolve();

  async run<T>(body: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(body);
    this.#last = turn.catch(() => {}); // the caller gets it
    return await turn;
  }
}

/** Returns the path of an input. @throws {FileError} when it is missing. */
export function pathOf({ path, file_path }: { path?: string; file_path?: string }): string {
  const given = path ?? file_path;
  if (given === undefined || given === "") throw new FileError("path is required");
  return given;
}

/** Returns a failure that the model can act on. @throws an error of another kind. */
export function fileFailure(error: unknown): unknown {
  if (error instanceof FileError) return toolFailure(error.message, { type: "file_error" });
  throw error;
}

/** Reads a text file to change it. @throws {FileError} also when it is no text. */
export async function readText(
  access: FileAccess,
  path: string,
): Promise<{ file: TextFile; bytes: Uint8Array; info: Deno.FileInfo; real: string }> {
  const { bytes, checked: { info, path: real } } = await access.read(path, MAX_EDITED_BYTES);
  return { file: await parseTextFile(bytes, path), bytes, info, real };
}

/** A file of any bytes, or a link itself, which has none. */
export interface Entry extends Pick<FileChange, "path" | "real" | "before"> {
  readonly info: Deno.FileInfo;
  readonly isKnown: boolean;
}

/** Reads a file or a link to delete, move or replace it. @throws {FileError} when it is missing. */
export async function readEntry({ access, known }: Writing, path: string): Promise<Entry> {
  const { path: real, info } = await access.entry(path);
  if (info === null) throw new FileError(`${path} does not exist`);
  if (info.isSymlink) return { path, real, info, before: null, isKnown: false };
  const { bytes, checked } = await access.read(path, MAX_EDITED_BYTES);
  const isKnown = await known.checkUnchanged(real, bytes, path);
  return { path, real, info: checked.info, before: bytes, isKnown };
}

/** A change of a file, with what undo needs. */
export interface FileChange extends AppliedChange {
  readonly before: Uint8Array | null;
  /** Text of the link that is moved here. */
  readonly link?: string;
  /** Whether the model knows all of the new content. Default: false. */
  readonly isKnown?: boolean;
}

/** Changes that are made together or not at all. */
export interface PlannedChanges {
  readonly changes: readonly FileChange[];
  /** What is done to each file. */
  readonly done: readonly Done[];
}

/** What is done to a file: a sentence, and how its lines change. */
export interface Done extends ShownChange {
  readonly sentence: string;
}

/** Resolves to what is done to a file. */
export async function doneTo(
  sentence: string,
  before: readonly string[] = [""],
  after: readonly string[] = [""],
): Promise<Done> {
  return { sentence, ...await shownChange(before, after) };
}

/** Plans and makes the changes of a call, while no other call does. */
export async function makeChanges(writing: Writing, plan: () => Promise<PlannedChanges>): Promise<unknown> {
  const { coordinator, access, known, queue } = writing;
  try {
    return await queue.run(async () => {
      const { changes, done } = await plan();
      const notes: string[] = [];
      for (const { path, after } of changes) {
        if (after === null || after.length <= MAX_EDITED_BYTES) continue;
        throw new FileError(
          `${path} would have ${after.length} bytes: at most ${MAX_EDITED_BYTES} can be written`,
        );
      }
      for (const change of changes) {
        const refused = await storeUndo(coordinator, change);
        if (refused !== null) notes.push(`${change.path} cannot be undone: ${refused}`);
      }
      await access.apply(changes);
      for (const { real, after, isKnown } of changes) {
        if (after !== null && isKnown) await known.add(real, after);
        else known.delete(real);
      }
      const note = notes.length === 0 ? "" : `\n(${notes.join("; ")})`;
      return ToolResult({
        output: textForPerson(done) + note,
        content: [{ type: "text", text: textForModel(done) + note }],
      });
    });
  } catch (error) {
    return fileFailure(error);
  }
}

/** Resolves to what a call would do, for the person who is asked; its refusal, if it would be refused. */
export async function previewOf(plan: () => Promise<PlannedChanges>): Promise<string> {
  try {
    const { done } = await plan();
    return textForPerson(done.map((one) => ({ ...one, sentence: planned(one.sentence) })));
  } catch (error) {
    if (error instanceof FileError) return error.message;
    throw error;
  }
}

/** Verbs of sentences about changes, and those of changes that are not made yet. */
const WOULD: ReadonlyMap<string, string> = new Map([
  ["Created", "Would create"],
  ["Deleted", "Would delete"],
  ["Edited", "Would edit"],
  ["Moved", "Would move"],
  ["Replaced", "Would replace"],
]);

function planned(sentence: string): string {
  return sentence.replace(/^\w+/, (verb) => WOULD.get(verb) ?? verb);
}

function textForPerson(done: readonly Done[]): string {
  return done.map(({ sentence, diff }) => diff === "" ? sentence : `${sentence}\n${diff}`).join("\n");
}

function textForModel(done: readonly Done[]): string {
  let room = MAX_NUMBERED;
  return done.flatMap(({ sentence, numbered, left }) => {
    const shown = numbered.slice(0, room);
    room -= shown.length;
    const more = left + numbered.length - shown.length;
    return [sentence, ...shown, ...more > 0 ? [`(${more} more lines around the changes)`] : []];
  }).join("\n");
}

/** Stores a file's bytes from before a change with the run. Resolves to why not, or null. */
async function storeUndo(coordinator: Coordinator, change: FileChange): Promise<string | null> {
  const keep = coordinator.getCapability("session.keep_before");
  if (typeof keep !== "function") return null;
  const answer: unknown = await keep(
    {
      path: change.real,
      before: change.before?.toBase64() ?? null,
      after_sha256: change.after === null ? null : await sha256(change.after),
      after_link: change.link ?? null,
    } satisfies JsonObject,
  );
  return typeof answer === "string" ? answer : null;
}

async function sha256(bytes: Uint8Array): Promise<string> {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", bytes.slice())).toHex();
}
