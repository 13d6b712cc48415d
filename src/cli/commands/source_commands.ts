/** The commands `preamp source`: overrides of the sources of modules, in files of the project and of the user. */
import {
  formatOverrides,
  type Override,
  type Overrides,
  readOverrides,
  type SourcesFile,
} from "../../app/source_overrides.ts";
import { parseSource } from "../../plan/source/source.ts";
import { didYouMean } from "../../sdk/did_you_mean.ts";
import { escapeUnprintable } from "../../text/escape.ts";
import { type Arguments, type Flag, UsageError } from "../arguments.ts";
import type { Command } from "../command.ts";
import { DocumentFailure, EXIT } from "../errors.ts";
import { formatFlags, wantsJson, writeJson } from "../output_format.ts";
import { sourceFilesOf } from "../paths.ts";
import { tableText } from "../terminal/format.ts";
import type { Io } from "../terminal/io.ts";

/** The flag that names the file. */
const USER_FLAG: Flag = {
  name: "user",
  help:
    "for all projects of this user ($PREAMP_HOME/sources.yaml) instead of this folder (.preamp/sources.yaml)",
};

/** `preamp source add`: overrides the source of a module in operators' plans. */
export const add: Command = {
  usage: "source add [--user] <id> <url>",
  summary:
    "Overrides the source of a module in all your plans. An override of the project applies before one of the user.",
  flags: [USER_FLAG, ...formatFlags({ help: "text (default), or {id, source, url, scope}" })],
  details: () =>
    `Overrides apply to plans on the command line and in plans/, not to plans in requests. A pinned module (integrity,
lock) must have the same files in the other place.

  preamp source add tool-orders ./orders            a folder means its mod.ts
  preamp source add --user tool-orders https://modules.example.com/orders@1.3.0/mod.ts
`,
  run: runAdd,
};

async function runAdd(args: Arguments, io: Io): Promise<number> {
  const json = wantsJson(args);
  const [id, location, ...more] = args.rest;
  if (id === undefined || location === undefined || more.length > 0) {
    throw new UsageError("Cannot add a source: write preamp source add <id> <url>");
  }
  if (id.trim() === "" || /\s/.test(id) || id.length > 128) {
    throw new UsageError(
      `Cannot add a source: ${JSON.stringify(id)} is not the id of a module`,
    );
  }
  const parsed = parseSource(location, { base_url: io.cwd.href });
  if ("problem" in parsed) throw new UsageError(`Cannot add a source: ${parsed.problem}: ${parsed.hint}`);
  const { source } = parsed;
  if (source.kind !== "url") {
    throw new UsageError(`Cannot add a source: ${JSON.stringify(location)} is not a URL or a path`);
  }
  const file = chosenSources(args, io);
  // a user's file applies in every folder, where a relative path would mean another file
  const text = file.scope === "user" && source.via === "path" ? source.url : location.trim();
  await writeSources(file, { ...textsOf(await readSources(file)), [id]: text });
  if (json) writeJson(io, { id, source: text, url: source.url, scope: file.scope });
  else io.out.write(`${escapeUnprintable(`${id}: ${source.url}`)}\n`);
  return EXIT.done;
}

/** `preamp source remove`: removes a source override. */
export const remove: Command = {
  usage: "source remove [--user] <id>",
  summary: "Removes a source override: the source in the plan applies again.",
  flags: [
    USER_FLAG,
    ...formatFlags({ help: "nothing (default), or {id, source, scope} of what was removed" }),
  ],
  run: runRemove,
};

async function runRemove(args: Arguments, io: Io): Promise<number> {
  const json = wantsJson(args);
  const [id, ...more] = args.rest;
  if (id === undefined || more.length > 0) {
    throw new UsageError("Cannot remove a source: write preamp source remove <id>");
  }
  const file = chosenSources(args, io);
  const { [id]: known, ...remaining } = textsOf(await readSources(file));
  if (known === undefined) {
    const meant = didYouMean(id, Object.keys(remaining));
    throw new UsageError(
      `Cannot remove a source: ${file.name} has no override for ${JSON.stringify(id)}${
        meant === undefined ? "; preamp source list lists all" : `; did you mean "${meant}"?`
      }`,
    );
  }
  await writeSources(file, remaining);
  if (json) writeJson(io, { id, source: known, scope: file.scope });
  return EXIT.done;
}

/** `preamp source list`: lists the source overrides that apply in this folder, with their scope. */
export const list: Command = {
  usage: "source list [flags]",
  summary: "Lists the source overrides of this folder and this user.",
  flags: formatFlags({ help: "a table (default), or {data: [{id, source, url, scope}]}" }),
  run: runList,
};

async function runList(args: Arguments, io: Io): Promise<number> {
  if (args.rest.length > 0) {
    throw new UsageError(`Cannot list ${JSON.stringify(args.rest[0])}: source list takes no name`);
  }
  const json = wantsJson(args);
  const overrides = new Map<string, { id: string; source: string; url: string; scope: string }>();
  for (const file of allSources(io)) {
    for (const [id, override] of await readSources(file)) {
      if (!overrides.has(id)) {
        overrides.set(id, { id, source: override.text, url: urlOf(override), scope: file.scope });
      }
    }
  }
  const data = [...overrides.values()].sort((a, b) => a.id < b.id ? -1 : 1);
  if (json) writeJson(io, { data });
  else if (data.length > 0) {
    const rows = data.map(({ id, url, scope }) => [id, scope, url].map(escapeUnprintable));
    io.out.write(tableText([["id", "scope", "url"], ...rows]));
  }
  return EXIT.done;
}

function urlOf({ source, text }: Override): string {
  return source.kind === "url" ? source.url : text;
}

/** A file of overrides with its name in messages. */
interface NamedSources extends SourcesFile {
  name: string;
  scope: "project" | "user";
}

/** Returns the files that apply in this folder. For a module in several files the first file applies. */
function allSources(io: Io): NamedSources[] {
  const { project, user } = sourceFilesOf(io);
  return [
    { ...project, scope: "project", name: ".preamp/sources.yaml" },
    ...(user ? [{ ...user, scope: "user" as const, name: "sources.yaml of the user's home" }] : []),
  ];
}

/** Returns the file that a command changes. @throws {UsageError} if there is no home folder. */
function chosenSources(args: Arguments, io: Io): NamedSources {
  const scope = args.has("user") ? "user" : "project";
  const chosen = allSources(io).find((file) => file.scope === scope);
  if (chosen) return chosen;
  throw new UsageError("Cannot use --user: there is no home folder; set PREAMP_HOME");
}

/** Resolves to the overrides of a file. @throws {DocumentFailure} if it is invalid. */
async function readSources(file: NamedSources): Promise<Overrides> {
  try {
    return await readOverrides(file, file.name);
  } catch (error) {
    throw new DocumentFailure(file.name, error);
  }
}

/** Replaces a file atomically. @throws {UsageError} if this process may not write it. */
async function writeSources(
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
function textsOf(overrides: Overrides): Record<string, string> {
  return Object.fromEntries([...overrides].map(([id, { text }]) => [id, text]));
}
