/** The files with source overrides of the project and of the user. */
import { formatOverrides, type Overrides, readOverrides, type SourcesFile } from "../app/source_overrides.ts";
import { type Arguments, type Flag, UsageError } from "./arguments.ts";
import { inDocument } from "./errors.ts";
import { type Environment, homeOf, replaceFile } from "./paths.ts";
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

/**
 * Returns the files with source overrides that apply in this folder: `.preamp/sources.yaml` of the working
 * directory, and `$PREAMP_HOME/sources.yaml` if there is a home folder.
 */
export function sourceFilesOf(io: Environment): NamedSources[] {
  const file = (scope: NamedSources["scope"], name: string, path: string, base_url: URL): NamedSources => ({
    scope,
    name,
    url: new URL(path, base_url),
    base_url,
  });
  const home = homeOf(io);
  return [
    file("project", ".preamp/sources.yaml", ".preamp/sources.yaml", io.cwd),
    ...(home ? [file("user", "sources.yaml of $PREAMP_HOME", "sources.yaml", home)] : []),
  ];
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

/** Replaces the overrides of a file. @throws {UsageError} when it cannot be written. */
export async function writeSources(
  { url, name }: NamedSources,
  sources: Record<string, string>,
): Promise<void> {
  const text = formatOverrides(sources);
  await replaceFile(url, text, name);
}

/** Returns the text of each override by module id. */
export function textsOf(overrides: Overrides): Record<string, string> {
  return Object.fromEntries([...overrides].map(([id, { text }]) => [id, text]));
}
