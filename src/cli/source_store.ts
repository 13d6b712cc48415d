/** What the commands around overrides of sources share: which file is meant, reading it, writing it whole. */
import { formatOverrides, type Overrides, readOverrides, type SourcesFile } from "../app/source_overrides.ts";
import type { Arguments, Flag } from "./arguments.ts";
import { DocumentFailure } from "./errors.ts";
import { sourceFilesOf } from "./home.ts";
import type { Io } from "./terminal/io.ts";
import { UsageError } from "./usage_error.ts";

/** The flag that names the file. */
export const USER_FLAG: Flag = {
  name: "user",
  help:
    "for all projects of this user ($PREAMP_HOME/sources.yaml), not this folder alone (.preamp/sources.yaml)",
};

/** A file of overrides and what people call it. */
export interface NamedSources extends SourcesFile {
  name: string;
  scope: "project" | "user";
}

/** Returns every file that holds here; the first one wins. */
export function allSources(io: Io): NamedSources[] {
  const { project, user } = sourceFilesOf(io);
  return [
    { ...project, scope: "project", name: ".preamp/sources.yaml" },
    ...(user ? [{ ...user, scope: "user" as const, name: "sources.yaml of the user's home" }] : []),
  ];
}

/** Returns the file that a command is about. @throws {UsageError} when there is no home folder. */
export function chosenSources(args: Arguments, io: Io): NamedSources {
  const scope = args.has("user") ? "user" : "project";
  const chosen = allSources(io).find((one) => one.scope === scope);
  if (chosen) return chosen;
  throw new UsageError("Cannot use --user: there is no home folder: set PREAMP_HOME");
}

/** Resolves to the overrides of a file. @throws {DocumentFailure} when it cannot be read as one. */
export async function readSources(file: NamedSources): Promise<Overrides> {
  try {
    return await readOverrides(file, file.name);
  } catch (error) {
    throw new DocumentFailure(file.name, error);
  }
}

/** Writes a file whole, or not at all. @throws {UsageError} when this process may not. */
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
    await Deno.remove(temporary).catch(() => {}); // it may never have been made
    if (!(error instanceof Deno.errors.PermissionDenied) && !(error instanceof Deno.errors.NotCapable)) {
      throw error;
    }
    throw new UsageError(`Cannot write ${JSON.stringify(name)}: it may not be written by this process`, {
      cause: error,
    });
  }
}

/** Returns overrides as they are written. */
export function textsOf(overrides: Overrides): Record<string, string> {
  return Object.fromEntries([...overrides].map(([id, { text }]) => [id, text]));
}
