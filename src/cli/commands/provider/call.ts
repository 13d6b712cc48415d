/**
 * `preamp provider test`: calls models once with a tiny prompt, and reports what each call took or what is
 * wrong. The name `test.ts` would make it a test file.
 */
import { createModuleTable } from "../../../app/module_table.ts";
import { listProviders } from "../../../app/provider_service.ts";
import { createRuntime } from "../../../app/runtime.ts";
import type { Runtime } from "../../../app/types.ts";
import type { Entry } from "../../../kernel/host.ts";
import { readModelChoice } from "../../../plan/model_choice.ts";
import type { RunUsage } from "../../../runs/types.ts";
import { errorCode, errorMessage } from "../../../sdk/errors.ts";
import type { JsonObject } from "../../../sdk/json.ts";
import { type Arguments, formatFlags } from "../../arguments.ts";
import type { Answer, Command } from "../../commands.ts";
import { TERMINAL } from "../../terminal_caller.ts";
import { EXIT } from "../../errors.ts";
import { failuresText, providersWithKey } from "./accounts.ts";
import { reportedSettings, withSettings } from "../../settings.ts";
import { tableText } from "../../terminal/format.ts";
import type { Io } from "../../terminal/io.ts";
import { messageText } from "../../terminal/progress_lines.ts";

export const command: Command = {
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
  run,
};

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

async function run(args: Arguments, io: Io): Promise<Answer> {
  const { policy } = await reportedSettings(args, io);
  const modules = createModuleTable();
  const named = [...args.rest, ...args.all("model")];
  const models = named.length > 0 ? named : await providersWithKey(io);
  const choices = models.map((model) => ({ model, choice: readModelChoice(model, modules.ids) }));
  const known = await listProviders({ modules, env: io.env });
  await using runtime = createRuntime({ policy, env: io.env });
  const data: Tested[] = [];
  for (const { model, choice: { provider, model: id } } of choices) {
    const facts = known.find((each) => each.provider === provider);
    const name = id === undefined && facts?.default_model ? `${provider}/${facts.default_model}` : model;
    data.push({ model: name, ...await testModel(runtime, model) });
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

async function testModel(runtime: Runtime, model: string): Promise<Omit<Tested, "model">> {
  const failed = (code: string, message: string): Omit<Tested, "model"> => ({
    ok: false,
    latency_ms: null,
    usage: null,
    output_text: "",
    error: { code, message, advice: ADVICE[code] ?? null },
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

/** What to do about a failure whose message does not say so itself. */
const ADVICE: Readonly<Record<string, string>> = {
  provider_rate_limited: "wait a minute, or check quota and billing of the account",
  provider_overloaded: "try again later, or check the vendor's status page",
  provider_unreachable: "check the network and the address in base_url",
  provider_timeout: "try again, or raise timeout_s in the provider's config",
};
