/** The files of source overrides: choosing, reading and atomically writing them, for the `source` commands. */
import { formatOverrides, type Overrides, readOverrides, type SourcesFile } from "../app/source_overrides.ts";
import { type Arguments, type Flag, UsageError } from "./arguments.ts";
import { DocumentFailure } from "./errors.ts";
import { sourceFilesOf } from "./paths.ts";
import type { Io } from "./terminal/io.ts";

/** The flag that names the file. */
export const USER_FLAG: Flag = {
  name: "user",
  help:
    "for all projects of this user ($PREAMP_HOME/sources.yaml) instead of this folder (.preamp/sources.yaml)",
};

/** A file of overrides with its name in messages. */
export interface NamedSources extends SourcesFile {
  name: string;
  scope: "project" | "user";
}

/** Returns the files that apply in this folder. For a module in several files the first file applies. */
export function allSources(io: Io): NamedSources[] {
  const { project, user } = sourceFilesOf(io);
  return [
    { ...project, scope: "project", name: ".preamp/sources.yaml" },
    ...(user ? [{ ...user, scope: "user" as const, name: "sources.yaml of the user's home" }] : []),
  ];
}

/** Returns the file that a command changes. @throws {UsageError} if there is no home folder. */
export function chosenSources(args: Arguments, io: Io): NamedSources {
  const scope = args.has("user") ? "user" : "project";
  const chosen = allSources(io).find((file) => file.scope === scope);
  if (chosen) return chosen;
  throw new UsageError("Cannot use --user: there is no home folder; set PREAMP_HOME");
}

/** Resolves to the overrides of a file. @throws {DocumentFailure} if it is invalid. */
export async function readSources(file: NamedSources): Promise<Overrides> {
  try {
    return await readOverrides(file, file.name);
  } catch (error) {
    throw new DocumentFailure(file.name, error);
  }
}

/** Replaces a file atomically. @throws {UsageError} if this process may not write it. */
export async function writeSources(
  { url, name }: NamedSources,
  sources: Record<string, string>,
): Promise<void> {
  const temporary = new URL(`${url.href}.${crypto.randomUUID()}`);
  try {
    await Deno.mkdir(new URL(".", url), { recursive: true });
    await Deno.writeTextFile(temporary, formatOverrides(sources));
    await Deno.rename(temporary, url);
  } catch (error) {
    await Deno.remove(temporary).catch(() => {}); // it may not exist
    if (!(error instanceof Deno.errors.PermissionDenied) && !(error instanceof Deno.errors.NotCapable)) {
      throw error;
    }
    throw new UsageError(`Cannot write ${JSON.stringify(name)}: this process may not write it`, {
      cause: error,
    });
  }
}

/** Returns the text of each override by module id. */
export function textsOf(overrides: Overrides): Record<string, string> {
  return Object.fromEntries([...overrides].map(([id, { text }]) => [id, text]));
}
