/** `preamp source add`: overrides the source of a module. */
import { FORBIDDEN_KEYS } from "../../../plan/parse/document_limits.ts";
import { parseSource } from "../../../plan/source/source.ts";
import { escapeUnprintable } from "../../../text/escape.ts";
import { type Arguments, formatFlags, UsageError } from "../../arguments.ts";
import type { Answer, Command } from "../../commands.ts";
import { chosenSources, readSources, textsOf, USER_FLAG, writeSources } from "../../source_files.ts";
import type { Io } from "../../terminal/io.ts";

export const command: Command = {
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
  run,
};

async function run(args: Arguments, io: Io): Promise<Answer> {
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
  const notes = await writeSources(file, { ...textsOf(await readSources(file)), [id]: text }, io);
  return { data: { id, source: text, url, scope }, text: `${escapeUnprintable(`${id}: ${url}`)}\n`, notes };
}
