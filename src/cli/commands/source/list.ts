/** `preamp source list`: lists the overrides of sources. */
import { escapeUnprintable } from "../../../text/escape.ts";
import { type Arguments, formatFlags } from "../../arguments.ts";
import type { Answer, Command } from "../../commands.ts";
import { readSources, sourceFilesOf } from "../../source_files.ts";
import { tableText } from "../../terminal/format.ts";
import type { Io } from "../../terminal/io.ts";

export const command: Command = {
  usage: "source list [flags]",
  summary: "Lists the source overrides of this folder and this user.",
  flags: formatFlags({ help: "a table (default), or {data: [{id, source, url, scope}]}" }),
  max_arguments: 0,
  run,
};

async function run(_args: Arguments, io: Io): Promise<Answer> {
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
