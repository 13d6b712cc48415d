/**
 * The commands `preamp provider list`, `provider models` and `provider test`. The last one calls models once
 * with a tiny prompt, and reports what each call took or what is wrong.
 */
import { createModuleTable } from "../../app/module_table.ts";
import { listModels, listProviders } from "../../app/provider_service.ts";
import type { Runtime } from "../../app/types.ts";
import type { Entry } from "../../kernel/host.ts";
import { readModelChoice } from "../../plan/model_choice.ts";
import type { RunUsage } from "../../runs/types.ts";
import { errorCode, errorMessage } from "../../sdk/errors.ts";
import type { JsonObject } from "../../sdk/json.ts";
import type { ModelInfo } from "../../sdk/types.ts";
import { type Arguments, formatFlags, UsageError } from "../arguments.ts";
import { type Answer, type Commands, TERMINAL } from "../commands.ts";
import { EXIT } from "../errors.ts";
import { reportedSettings, withSettings } from "../settings.ts";
import { styleOf, tableText } from "../terminal/format.ts";
import type { Io } from "../terminal/io.ts";
import { messageText } from "../terminal/progress_lines.ts";

export const commands: Commands = {
  "provider list": {
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
  },
  "provider models": {
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
  },
  "provider test": {
    usage: "provider test [flags] [<provider>[/<model>]…]",
    summary:
      "Calls models once with a tiny prompt; by default the default model of every provider whose key is set.",
    flags: withSettings([
      {
        name: "model",
        short: "m",
        value: "PROVIDER/MODEL",
        many: true,
        help: "model to call, such as anthropic/claude-sonnet-5-5",
      },
      ...formatFlags({
        help:
          "a table (default), or {data: [{model, ok, latency_ms, usage, output_text, error: {code, message, advice}}]}",
      }),
    ]),
    details: () =>
      `Exit codes: 0 every model answered, 1 one did not.

  preamp provider test
  preamp provider test -m ollama/qwen3:8b
`,
    run: runTest,
  },
};

/** A model with its name for `-m`. */
type ListedModel = ModelInfo & { model: string; provider: string };

interface Failure {
  code: string;
  message: string;
}

async function runModels({ rest }: Arguments, io: Io): Promise<Answer> {
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
  const rows = data.map(({ model, display_name, id, context_window, max_output_tokens }) => {
    const name = display_name === id ? "" : messageText(display_name);
    return [messageText(model), name, String(context_window), String(max_output_tokens)];
  });
  return {
    data: { data, errors },
    text: data.length === 0 ? "" : tableText([["model", "name", "window", "max output"], ...rows]),
    notes: failuresText(errors, io),
    exit: errors.length === 0 ? EXIT.done : EXIT.failed,
  };
}

function failuresText(failures: readonly Failure[], io: Io): string {
  const { red } = styleOf(io.err);
  return failures.map(({ code, message }) => `${red("error:")} ${messageText(message)} (${code})\n`).join("");
}

/** Resolves to the providers whose key is set. @throws {UsageError} if no key is set. */
async function providersWithKey(io: Pick<Io, "env">): Promise<string[]> {
  const known = await listProviders({ modules: createModuleTable(), env: io.env });
  const names = known.filter(({ set_variable }) => set_variable !== null).map(({ provider }) => provider);
  if (names.length > 0) return names;
  const variables = known.flatMap(({ variables }) => variables.slice(0, 1)).join(" or ");
  const providers = known.map(({ provider }) => provider).join(", ");
  throw new UsageError(
    `Cannot choose a provider: no key is set; set ${variables}, or name a provider: ${providers}`,
  );
}

interface Tested {
  model: string;
  ok: boolean;
  /** Milliseconds from the request to the whole answer; null without an answer. */
  latency_ms: number | null;
  usage: RunUsage | null;
  output_text: string;
  error: { code: string; message: string; advice: string | null } | null;
}

const PLAN: JsonObject = {
  session: {
    orchestrator: { module: "loop-basic", config: { max_retries: 0, max_output_tokens: 512 } },
    context: "context-simple",
  },
  providers: ["provider-mock"],
  limits: { max_iterations: 1, max_duration_s: 60 },
};

const PROMPT = "Answer with the single word OK.";

async function runTest(args: Arguments, io: Io): Promise<Answer> {
  const { policy } = await reportedSettings(args, io);
  const modules = createModuleTable();
  const named = [...args.rest, ...args.all("model")];
  const models = named.length > 0 ? named : await providersWithKey(io);
  const choices = models.map((model) => ({ model, choice: readModelChoice(model, modules.ids) }));
  const known = await listProviders({ modules, env: io.env });
  const { createRuntime } = await import("../../app/runtime.ts"); // the other commands need none
  await using runtime = createRuntime({ policy, env: io.env });
  const data: Tested[] = [];
  for (const { model, choice: { provider, model: id } } of choices) {
    const facts = known.find((each) => each.provider === provider);
    const name = id === undefined && facts?.default_model ? `${provider}/${facts.default_model}` : model;
    data.push({ model: name, ...await testModel(runtime, model, facts?.variables ?? []) });
  }
  const rows = data.map(({ model, ok, latency_ms, usage }) => [
    messageText(model),
    ok ? "ok" : "failed",
    latency_ms === null ? "-" : `${latency_ms} ms`,
    usage === null ? "-" : `${usage.input_tokens} in, ${usage.output_tokens} out`,
    usage === null ? "-" : usage.cost_usd === null ? "unknown" : `$${usage.cost_usd}`,
  ]);
  const failures = data.flatMap(({ model, error }) => {
    if (error === null) return [];
    const advice = error.advice === null ? "" : `; ${error.advice}`;
    return [{ code: error.code, message: `${model}: ${error.message}${advice}` }];
  });
  return {
    data: { data },
    text: tableText([["model", "result", "latency", "tokens", "cost"], ...rows]),
    notes: failuresText(failures, io),
    exit: failures.length === 0 ? EXIT.done : EXIT.failed,
  };
}

async function testModel(
  runtime: Runtime,
  model: string,
  variables: readonly string[],
): Promise<Omit<Tested, "model">> {
  const failed = (code: string, message: string): Omit<Tested, "model"> => ({
    ok: false,
    latency_ms: null,
    usage: null,
    output_text: "",
    error: { code, message, advice: adviceFor(code, model, variables) },
  });
  try {
    const handle = await runtime.runs.create({ prompt: PROMPT, plan: PLAN, model }, TERMINAL, {});
    const { id, error, usage, output_text } = await handle.settled("end");
    if (error !== null) return failed(error.code, error.message);
    const entries = await runtime.runs.events(TERMINAL, id, {});
    return { ok: true, latency_ms: latencyOf(entries), usage, output_text, error: null };
  } catch (error) {
    const code = errorCode(error);
    if (code === undefined) throw error;
    return failed(code, errorMessage(error));
  }
}

function latencyOf(entries: readonly Entry[]): number | null {
  const at = (name: string) => entries.find(({ event }) => event === name)?.ts;
  const [from, to] = [at("provider:request"), at("provider:response")];
  return from === undefined || to === undefined ? null : Date.parse(to) - Date.parse(from);
}

/** Returns what to do about a failure; null when its message says so itself. */
function adviceFor(code: string, model: string, variables: readonly string[]): string | null {
  const [provider] = model.split("/");
  switch (code) {
    case "provider_auth":
      return variables.length === 0
        ? null
        : `check the key in ${variables.join(" or ")}, and what the account may use`;
    case "provider_rate_limited":
      return "wait a minute, or check quota and billing of the account";
    case "provider_overloaded":
      return "check the network, the address in base_url, and the vendor's status page";
    case "provider_timeout":
      return "try again, or raise timeout_s in the provider's config";
    case "provider_bad_response":
      return `check the model's name: preamp provider models ${provider}`;
    default:
      return null;
  }
}
