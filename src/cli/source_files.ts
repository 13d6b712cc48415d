/** The files with source overrides of the project and of the user. */
import { formatOverrides, type Overrides, readOverrides, type SourcesFile } from "../app/source_overrides.ts";
import { type Arguments, type Flag, UsageError } from "./arguments.ts";
import { inDocument } from "./errors.ts";
import { changeSources } from "./folder/folder.ts";
import { SOURCES_FILE } from "./folder/folder_files.ts";
import { type Environment, homeOf, replaceFile } from "../settings/paths.ts";
import type { Io } from "./terminal/io.ts";

/** The flag that names the file. */
export const USER_FLAG: Flag = {
  name: "user",
  help:
    "for all projects of this user ($PREAMP_HOME/sources.yaml) instead of this folder (.preamp/sources.yaml)",
};

/** A file of source overrides, with its name in messages and its scope. */
export interface NamedSources extends SourcesFile {
  name: string;
  scope: "project" | "user";
}

/** Returns the file with source overrides of this user; none without a home folder. */
export function userSources(io: Environment): NamedSources[] {
  const home = homeOf(io);
  if (!home) return [];
  return [{
    scope: "user",
    name: "sources.yaml of $PREAMP_HOME",
    url: new URL("sources.yaml", home),
    base_url: home,
  }];
}

/**
 * Returns the files with source overrides of this folder and of this user, whether they are used or not, for
 * the commands that display and change them.
 */
export function sourceFilesOf(io: Environment): NamedSources[] {
  const url = new URL(SOURCES_FILE, io.cwd);
  return [{ scope: "project", name: SOURCES_FILE, url, base_url: io.cwd }, ...userSources(io)];
}

/** Returns the file that a command changes. @throws {UsageError} if there is no home folder. */
export function chosenSources(args: Arguments, io: Io): NamedSources {
  const scope = args.has("user") ? "user" : "project";
  const chosen = sourceFilesOf(io).find((file) => file.scope === scope);
  if (chosen) return chosen;
  throw new UsageError("Cannot use --user: there is no home folder; set PREAMP_HOME");
}

/** Resolves to the overrides of a file. @throws {DocumentFailure} if it is invalid. */
export async function readSources(file: NamedSources): Promise<Overrides> {
  return await inDocument(file.name, readOverrides(file, file.name));
}

/**
 * Replaces the overrides of a file. Resolves to a note if they are not used, because the folder's file was
 * not trusted before. @throws {UsageError} when it cannot be written.
 */
export async function writeSources(
  { url, name, scope }: NamedSources,
  sources: Record<string, string>,
  io: Io,
): Promise<string> {
  const write = () => replaceFile(url, formatOverrides(sources), name);
  if (scope === "user") return await write().then(() => "");
  return await changeSources(io, write)
    ? ""
    : `${name} has other overrides and is not trusted: preamp trust shows what they do, and uses them\n`;
}

/** Returns the text of each override by module id. */
export function textsOf(overrides: Overrides): Record<string, string> {
  return Object.fromEntries([...overrides].map(([id, { text }]) => [id, text]));
}
