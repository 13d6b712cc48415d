/**
 * The commands `preamp source`: overrides of the sources of modules, in files of the project and of the user.
 */
import { formatOverrides, type Overrides, readOverrides } from "../../app/source_overrides.ts";
import { FORBIDDEN_KEYS } from "../../plan/parse/document_limits.ts";
import { parseSource } from "../../plan/source/source.ts";
import { escapeUnprintable } from "../../text/escape.ts";
import { adviceFor, type Arguments, type Flag, formatFlags, UsageError } from "../arguments.ts";
import type { Answer, Commands } from "../commands.ts";
import { inDocument } from "../errors.ts";
import { type NamedSources, replaceFile, sourceFilesOf } from "../paths.ts";
import { tableText } from "../terminal/format.ts";
import type { Io } from "../terminal/io.ts";

/** The flag that names the file. */
const USER_FLAG: Flag = {
  name: "user",
  help:
    "for all projects of this user ($PREAMP_HOME/sources.yaml) instead of this folder (.preamp/sources.yaml)",
};

export const commands: Commands = {
  "source add": {
    usage: "source add [--user] <id> <url>",
    summary:
      "Overrides the source of a module in all your plans. An override of the project applies before one of the user.",
    flags: [USER_FLAG, ...formatFlags({ help: "text (default), or {id, source, url, scope}" })],
    details: () =>
      `Overrides apply to plans on the command line and in plans/, not to plans in requests. A pinned module (integrity,
lock) must have the same files in the other place.

  preamp source add tool-orders ./orders            the exports of its deno.json, else its mod.ts
  preamp source add --user tool-orders https://modules.example.com/orders@1.3.0/mod.ts
`,
    run: runAdd,
  },
  "source remove": {
    usage: "source remove [--user] <id>",
    summary: "Removes a source override: the source in the plan applies again.",
    flags: [
      USER_FLAG,
      ...formatFlags({ help: "nothing (default), or {id, source, scope} of what was removed" }),
    ],
    run: runRemove,
  },
  "source list": {
    usage: "source list [flags]",
    summary: "Lists the source overrides of this folder and this user.",
    flags: formatFlags({ help: "a table (default), or {data: [{id, source, url, scope}]}" }),
    max_arguments: 0,
    run: runList,
  },
};

async function runAdd(args: Arguments, io: Io): Promise<Answer> {
  const [id, location, ...more] = args.rest;
  const refuse = (why: string) => new UsageError(`Cannot add a source: ${why}`);
  if (id === undefined || location === undefined || more.length > 0) {
    throw refuse("write preamp source add <id> <url>");
  }
  if (id === "" || /\s/.test(id) || id.length > 128 || FORBIDDEN_KEYS.has(id)) {
    throw refuse(`${JSON.stringify(id)} is not the id of a module`);
  }
  const parsed = parseSource(location, { base_url: io.cwd.href });
  if ("problem" in parsed) throw refuse(`${parsed.problem}: ${parsed.hint}`);
  const { source } = parsed;
  if (source.kind !== "url") throw refuse(`${JSON.stringify(location)} is not a URL or a path`);
  const { url } = source;
  const file = chosenSources(args, io);
  const { scope } = file;
  // a user's file applies in every folder, where a relative path would mean another file
  const text = scope === "user" && source.via === "path" ? url : location.trim();
  await writeSources(file, { ...textsOf(await readSources(file)), [id]: text });
  return { data: { id, source: text, url, scope }, text: `${escapeUnprintable(`${id}: ${url}`)}\n` };
}

async function runRemove(args: Arguments, io: Io): Promise<Answer> {
  const [id, ...more] = args.rest;
  if (id === undefined || more.length > 0) {
    throw new UsageError("Cannot remove a source: write preamp source remove <id>");
  }
  const file = chosenSources(args, io);
  const { [id]: known, ...remaining } = textsOf(await readSources(file));
  if (known === undefined) {
    const fact = `${file.name} has no override for ${JSON.stringify(id)}`;
    const advice = adviceFor(id, Object.keys(remaining), "preamp source list lists all");
    throw new UsageError(`Cannot remove a source: ${fact}; ${advice}`);
  }
  await writeSources(file, remaining);
  return { data: { id, source: known, scope: file.scope }, text: "" };
}

async function runList(_args: Arguments, io: Io): Promise<Answer> {
  const overrides = new Map<string, { id: string; source: string; url: string; scope: string }>();
  for (const file of sourceFilesOf(io)) {
    for (const [id, { source, text }] of await readSources(file)) {
      if (overrides.has(id)) continue;
      const url = source.kind === "url" ? source.url : text;
      overrides.set(id, { id, source: text, url, scope: file.scope });
    }
  }
  const data = [...overrides.values()].sort((a, b) => a.id < b.id ? -1 : 1);
  const rows = data.map(({ id, url, scope }) => [id, scope, url].map(escapeUnprintable));
  return { data: { data }, text: data.length === 0 ? "" : tableText([["id", "scope", "url"], ...rows]) };
}

/** Returns the file that a command changes. @throws {UsageError} if there is no home folder. */
function chosenSources(args: Arguments, io: Io): NamedSources {
  const scope = args.has("user") ? "user" : "project";
  const chosen = sourceFilesOf(io).find((file) => file.scope === scope);
  if (chosen) return chosen;
  throw new UsageError("Cannot use --user: there is no home folder; set PREAMP_HOME");
}

/** Resolves to the overrides of a file. @throws {DocumentFailure} if it is invalid. */
async function readSources(file: NamedSources): Promise<Overrides> {
  return await inDocument(file.name, readOverrides(file, file.name));
}

async function writeSources({ url, name }: NamedSources, sources: Record<string, string>): Promise<void> {
  const text = formatOverrides(sources);
  await replaceFile(url, text, name);
}

/** Returns the text of each override by module id. */
function textsOf(overrides: Overrides): Record<string, string> {
  return Object.fromEntries([...overrides].map(([id, { text }]) => [id, text]));
}
