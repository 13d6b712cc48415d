/** `preamp source list`: lists the source overrides that apply in this folder, with their scope. */
import type { Override } from "../../app/source_overrides.ts";
import { escapeUnprintable } from "../../text/escape.ts";
import { type Arguments, UsageError } from "../arguments.ts";
import type { Command } from "../command.ts";
import { EXIT } from "../errors.ts";
import type { Io } from "../terminal/io.ts";
import { formatFlags, wantsJson, writeJson } from "../output_format.ts";
import { allSources, readSources } from "../source_store.ts";
import { tableText } from "../terminal/format.ts";

/** The command. */
export const command: Command = {
  usage: "source list [flags]",
  summary: "Lists the source overrides of this folder and this user.",
  flags: formatFlags({ help: "a table (default), or {data: [{id, source, url, scope}]}" }),
  run,
};

async function run(args: Arguments, io: Io): Promise<number> {
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
