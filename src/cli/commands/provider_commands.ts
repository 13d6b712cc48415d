/** The commands `preamp provider list` and `preamp provider models`. */
import { createModuleTable } from "../../app/module_table.ts";
import { type KnownProvider, listModels, listProviders } from "../../app/provider_service.ts";
import { readModelChoice } from "../../plan/model_choice.ts";
import { errorCode, errorMessage } from "../../sdk/errors.ts";
import type { ModelInfo } from "../../sdk/types.ts";
import { type Arguments, UsageError } from "../arguments.ts";
import type { Command } from "../command.ts";
import { EXIT } from "../errors.ts";
import { formatFlags, wantsJson, writeJson } from "../output_format.ts";
import { styleOf, tableText } from "../terminal/format.ts";
import type { Io } from "../terminal/io.ts";
import { messageText } from "../terminal/progress_lines.ts";

/** `preamp provider list`: lists the providers with their keys and default models. Calls none of them. */
export const list: Command = {
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
  run: runList,
};

async function runList(args: Arguments, io: Io): Promise<number> {
  if (args.rest.length > 0) {
    throw new UsageError(`Cannot list ${JSON.stringify(args.rest[0])}: provider list takes no name`);
  }
  const json = wantsJson(args);
  const providers = await listProviders({ modules: createModuleTable(), env: io.env });
  if (json) writeJson(io, { data: providers });
  else {io.out.write(
      tableText([["provider", "key", "variable", "default model"], ...providers.map(providerRow)]),
    );}
  return EXIT.done;
}

function providerRow(
  { provider, variables, set_variable, needs_key, default_model }: KnownProvider,
): string[] {
  const key = set_variable !== null ? "set" : needs_key ? "not set" : "not needed";
  return [provider, key, set_variable ?? (variables.join(" or ") || "-"), default_model ?? "-"];
}

/** `preamp provider models`: lists the models of the accounts whose keys are set. */
export const models: Command = {
  usage: "provider models [flags] [<provider>…]",
  summary: "Lists the models of the accounts; by default of every provider whose key is set.",
  flags: formatFlags({
    help:
      "a table (default), or {data: [{model, provider, id, display_name, context_window, …}], errors: [{provider, code, message}]}",
  }),
  details: () =>
    `The first column is what -m of preamp run takes. Exit codes: 0 listed, 1 a provider failed.

  preamp provider models anthropic
`,
  run: runModels,
};

/** A model with its name for `-m`. */
type ListedModel = ModelInfo & { model: string; provider: string };

interface Failure {
  provider: string;
  code: string;
  message: string;
}

async function runModels(args: Arguments, io: Io): Promise<number> {
  const json = wantsJson(args);
  const deps = { modules: createModuleTable(), env: io.env };
  const names = args.rest.length > 0
    ? args.rest.map((name) => readModelChoice(name, deps.modules.ids).provider)
    : await providersWithKey(io);
  const data: ListedModel[] = [];
  const errors: Failure[] = [];
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
  if (json) writeJson(io, { data, errors });
  else {
    if (data.length > 0) {
      io.out.write(tableText([["model", "name", "window", "max output"], ...data.map(modelRow)]));
    }
    const { red } = styleOf(io.err);
    for (const { code, message } of errors) {
      io.err.write(`${red("error:")} ${messageText(message)} (${code})\n`);
    }
  }
  return errors.length === 0 ? EXIT.done : EXIT.failed;
}

function modelRow({ model, display_name, id, context_window, max_output_tokens }: ListedModel): string[] {
  const name = display_name === id ? "" : messageText(display_name);
  return [messageText(model), name, String(context_window), String(max_output_tokens)];
}

/** Resolves to the providers whose key is set. @throws {UsageError} if no key is set. */
export async function providersWithKey(io: Pick<Io, "env">): Promise<string[]> {
  const known = await listProviders({ modules: createModuleTable(), env: io.env });
  const names = known.filter(({ set_variable }) => set_variable !== null).map(({ provider }) => provider);
  if (names.length > 0) return names;
  const variables = known.flatMap(({ variables }) => variables.slice(0, 1));
  throw new UsageError(
    `Cannot choose a provider: no key is set; set ${variables.join(" or ")}, or name a provider: ${
      known.map(({ provider }) => provider).join(", ")
    }`,
  );
}
