/** `preamp provider list`: lists the providers with their keys and default models. Calls none of them. */
import { createModuleTable } from "../../app/module_table.ts";
import { type KnownProvider, listProviders } from "../../app/provider_service.ts";
import { type Arguments, UsageError } from "../arguments.ts";
import type { Command } from "../command.ts";
import { EXIT } from "../errors.ts";
import type { Io } from "../terminal/io.ts";
import { formatFlags, wantsJson, writeJson } from "../output_format.ts";
import { tableText } from "../terminal/format.ts";

/** The command. */
export const command: Command = {
  usage: "provider list [flags]",
  summary: "Lists the providers: the variables of their keys, whether one is set, and the default model.",
  flags: formatFlags({
    help:
      "a table (default), or {data: [{provider, module, display_name, variables, set_variable, needs_key, default_model}]}",
  }),
  details: () =>
    `A provider is used with preamp run -m PROVIDER/MODEL, or in a plan as the module provider-PROVIDER. Values of keys
are never printed.
`,
  run,
};

async function run(args: Arguments, io: Io): Promise<number> {
  if (args.rest.length > 0) {
    throw new UsageError(`Cannot list ${JSON.stringify(args.rest[0])}: provider list takes no name`);
  }
  const json = wantsJson(args);
  const providers = await listProviders({ modules: createModuleTable(), env: io.env });
  if (json) writeJson(io, { data: providers });
  else io.out.write(tableText([["provider", "key", "variable", "default model"], ...providers.map(rowOf)]));
  return EXIT.done;
}

function rowOf({ provider, variables, set_variable, needs_key, default_model }: KnownProvider): string[] {
  const key = set_variable !== null ? "set" : needs_key ? "not set" : "not needed";
  return [provider, key, set_variable ?? (variables.join(" or ") || "-"), default_model ?? "-"];
}
