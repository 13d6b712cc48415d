/** `preamp source add`: where a module comes from, whatever an operator's plan says. */
import { parseSource } from "../../plan/source/source.ts";
import { escapeUnprintable } from "../../text/escape.ts";
import type { Arguments } from "../arguments.ts";
import type { Command } from "../command.ts";
import { EXIT } from "../exit.ts";
import type { Io } from "../terminal/io.ts";
import { formatFlags, wantsJson, writeJson } from "../output_format.ts";
import { chosenSources, readSources, textsOf, USER_FLAG, writeSources } from "../source_store.ts";
import { UsageError } from "../usage_error.ts";

/** The command. */
export const command: Command = {
  usage: "source add [--user] <id> <url>",
  summary:
    "Takes a module from another place, in every plan of yours that names it. A project's word goes over the user's.",
  flags: [USER_FLAG, ...formatFlags({ help: "text (default), or {id, source, url, scope}" })],
  details: () =>
    `Plans on the command line and in plans/ obey it; plans in requests do not. A pinned module (integrity, lock) must
have the same bytes there.

  preamp source add tool-orders ./orders            a folder means its mod.ts
  preamp source add --user tool-orders https://modules.example.com/orders@1.3.0/mod.ts
`,
  run,
};

async function run(args: Arguments, io: Io): Promise<number> {
  const json = wantsJson(args);
  const [id, given, ...more] = args.rest;
  if (id === undefined || given === undefined || more.length > 0) {
    throw new UsageError("Cannot add a source: write preamp source add <id> <url>");
  }
  if (id.trim() === "" || /\s/.test(id) || id.length > 128) {
    throw new UsageError(
      `Cannot add a source: it must be for the id of a module: received ${JSON.stringify(id)}`,
    );
  }
  const parsed = parseSource(given, { base_url: io.cwd.href });
  if ("problem" in parsed) throw new UsageError(`Cannot add a source: ${parsed.problem}: ${parsed.hint}`);
  const { source } = parsed;
  if (source.kind !== "url") throw new UsageError(`Cannot add a source: received ${JSON.stringify(given)}`);
  const file = chosenSources(args, io);
  // a user's file holds in every folder: there a relative path would mean another file
  const text = file.scope === "user" && source.via === "path" ? source.url : given.trim();
  await writeSources(file, { ...textsOf(await readSources(file)), [id]: text });
  if (json) writeJson(io, { id, source: text, url: source.url, scope: file.scope });
  else io.out.write(`${escapeUnprintable(`${id}: ${source.url}`)}\n`);
  return EXIT.done;
}
