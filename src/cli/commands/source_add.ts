/** `preamp source add`: overrides the source of a module in operators' plans. */
import { parseSource } from "../../plan/source/source.ts";
import { escapeUnprintable } from "../../text/escape.ts";
import { type Arguments, UsageError } from "../arguments.ts";
import type { Command } from "../command.ts";
import { EXIT } from "../errors.ts";
import type { Io } from "../terminal/io.ts";
import { formatFlags, wantsJson, writeJson } from "../output_format.ts";
import { chosenSources, readSources, textsOf, USER_FLAG, writeSources } from "../source_store.ts";

/** The command. */
export const command: Command = {
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
  run,
};

async function run(args: Arguments, io: Io): Promise<number> {
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
