/** `preamp provider models`: lists the models of accounts. */
import { createModuleTable } from "../../../app/module_table.ts";
import { listModels } from "../../../app/provider_service.ts";
import type { ListedModel } from "../../../app/types.ts";
import { readModelChoice } from "../../../plan/model_choice.ts";
import { errorCode, errorMessage } from "../../../sdk/errors.ts";
import { type Arguments, formatFlags } from "../../arguments.ts";
import type { Answer, Command } from "../../commands.ts";
import { EXIT } from "../../errors.ts";
import { type Failure, failuresText, providersWithKey } from "./accounts.ts";
import { tableText } from "../../terminal/format.ts";
import type { Io } from "../../terminal/io.ts";
import { messageText } from "../../terminal/progress_lines.ts";

export const command: Command = {
  usage: "provider models [flags] [<provider>…]",
  summary: "Lists the models of the accounts; by default of every provider whose key is set.",
  flags: formatFlags({
    help:
      "a table (default), or {data: [{model, provider, id, display_name, context_window, pricing, …}], errors: [{provider, code, message}]}",
  }),
  details: () =>
    `The first column is what -m of preamp run takes. Exit codes: 0 listed, 1 a provider failed.

  preamp provider models anthropic
`,
  run,
};

/** Prices are in US dollars per million tokens. */
const HEADER = ["model", "name", "window", "max output", "$/M input", "$/M output"];

async function run({ rest }: Arguments, io: Io): Promise<Answer> {
  const deps = { modules: createModuleTable(), env: io.env };
  const names = rest.length > 0
    ? rest.map((name) => readModelChoice(name, deps.modules.ids).provider)
    : await providersWithKey(io);
  const data: ListedModel[] = [];
  const errors: (Failure & { provider: string })[] = [];
  for (const provider of names) {
    try {
      const models = await listModels(provider, deps);
      data.push(...models.map((info) => ({ model: `${provider}/${info.id}`, provider, ...info })));
    } catch (error) {
      const code = errorCode(error);
      if (code === undefined) throw error;
      errors.push({ provider, code, message: errorMessage(error) });
    }
  }
  const rows = data.map(({ model, display_name, id, context_window, max_output_tokens, pricing }) => {
    const name = display_name === id ? "" : messageText(display_name);
    const prices = [pricing?.input_per_million, pricing?.output_per_million].map((price) =>
      String(price ?? "")
    );
    return [messageText(model), name, String(context_window), String(max_output_tokens), ...prices];
  });
  return {
    data: { data, errors },
    text: data.length === 0 ? "" : tableText([HEADER, ...rows]),
    notes: failuresText(errors, io),
    exit: errors.length === 0 ? EXIT.done : EXIT.failed,
  };
}
