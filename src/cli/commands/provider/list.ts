/** `preamp provider list`: lists the providers, the variables of their keys, and default models. */
import { createModuleTable } from "../../../app/module_table.ts";
import { listProviders } from "../../../app/provider_service.ts";
import { formatFlags } from "../../arguments.ts";
import type { Command } from "../../commands.ts";
import { tableText } from "../../terminal/format.ts";

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
  max_arguments: 0,
  async run(_args, io) {
    const data = await listProviders({ modules: createModuleTable(), env: io.env });
    const rows = data.map(({ provider, variables, set_variable, needs_key, default_model }) => {
      const key = set_variable !== null ? "set" : needs_key ? "not set" : "not needed";
      return [provider, key, set_variable ?? (variables.join(" or ") || "-"), default_model ?? "-"];
    });
    return { data: { data }, text: tableText([["provider", "key", "variable", "default model"], ...rows]) };
  },
};
