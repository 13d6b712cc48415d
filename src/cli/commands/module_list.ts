/** `preamp module list`: lists the built-in modules. */
import { createModuleTable } from "../../app/module_table.ts";
import { type Arguments, UsageError } from "../arguments.ts";
import type { Command } from "../command.ts";
import { EXIT } from "../errors.ts";
import type { Io } from "../terminal/io.ts";
import { formatFlags, wantsJson, writeJson } from "../output_format.ts";
import { tableText } from "../terminal/format.ts";

/** The command. */
export const command: Command = {
  usage: "module list [flags]",
  summary: "Lists the built-in modules, which plans name without a source.",
  flags: formatFlags({
    help: "a table (default), or {data: [{id, type, version, description, permissions, config_schema}]}",
  }),
  run,
};

async function run(args: Arguments, io: Io): Promise<number> {
  if (args.rest.length > 0) {
    throw new UsageError(`Cannot list ${JSON.stringify(args.rest[0])}: module list takes no name`);
  }
  const json = wantsJson(args);
  const { ids, listing } = createModuleTable();
  const modules = await Promise.all([...ids].map(listing));
  if (json) writeJson(io, { data: modules });
  else {
    const rows = modules.map(({ id, type, version, description }) => [id, type, version, description]);
    io.out.write(tableText([["id", "type", "version", "description"], ...rows]));
  }
  return EXIT.done;
}
