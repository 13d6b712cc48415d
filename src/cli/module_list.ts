/** `preamp module list`: what is compiled in. */
import { BUILTIN_IDS, listingOf } from "../app/builtins.ts";
import type { Arguments } from "./arguments.ts";
import type { Command } from "./command.ts";
import { EXIT } from "./exit.ts";
import type { Io } from "./io.ts";
import { tableText } from "./table.ts";
import { UsageError } from "./usage_error.ts";

/** The command. */
export const command: Command = {
  usage: "module list [--json]",
  summary: "Lists the built-in modules: what a plan may name without a source.",
  flags: [{
    name: "json",
    help: "print {data: [{id, type, version, description, permissions, config_schema}]}",
  }],
  run,
};

async function run(args: Arguments, io: Io): Promise<number> {
  if (args.rest.length > 0) {
    throw new UsageError(`Cannot list ${JSON.stringify(args.rest[0])}: module list takes no name`);
  }
  const modules = await Promise.all([...BUILTIN_IDS].map(listingOf));
  if (args.has("json")) io.out.write(`${JSON.stringify({ data: modules }, null, io.out.terminal ? 2 : 0)}\n`);
  else {
    const rows = modules.map(({ id, type, version, description }) => [id, type, version, description]);
    io.out.write(tableText([["id", "type", "version", "description"], ...rows]));
  }
  return EXIT.done;
}
