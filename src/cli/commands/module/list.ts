/** `preamp module list`: lists the built-in modules. */
import { createModuleTable } from "../../../app/module_table.ts";
import type { ModuleListing } from "../../../app/types.ts";
import { formatFlags } from "../../arguments.ts";
import type { Command } from "../../commands.ts";
import { tableText } from "../../terminal/format.ts";

export const command: Command = {
  usage: "module list [flags]",
  summary: "Lists the built-in modules, which plans name without a source.",
  flags: formatFlags({
    help: "a table (default), or {data: [{id, type, version, description, permissions, config_schema}]}",
  }),
  max_arguments: 0,
  async run() {
    const data = await builtInModules();
    const rows = data.map(({ id, type, version, description }) => [id, type, version, description]);
    return { data: { data }, text: tableText([["id", "type", "version", "description"], ...rows]) };
  },
};

/** Resolves to the descriptions of the built-in modules. */
export async function builtInModules(): Promise<ModuleListing[]> {
  const { ids, listing } = createModuleTable();
  return await Promise.all([...ids].map(listing));
}
