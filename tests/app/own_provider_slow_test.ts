/** A provider of a module author on `mountProvider` of `preamp/provider`, in each tier. */
import { assertEquals } from "../assert.ts";
import { runWithFiles, TIERS } from "../support/own_modules.ts";

const PROVIDER = `
import { LLMError, toLLMError } from "preamp";
import { mountProvider, providerConfigSchema } from "preamp/provider";

const DEFINITION = {
  id: "echo",
  display_name: "Echo",
  module: "provider-echo",
  credential: { env_vars: ["ECHO_KEY"], url: "https://example.com/keys" },
  defaults: { model: "echo-1", context_window: 8000, max_output_tokens: 1000 },
  models: [{ id: "echo-1", context_window: 8000, max_output_tokens: 1000, prices: { input: "1", output: "1" } }],
  load() {
    let attempts = 0;
    return {
      toRequest: ({ conversation }) => ({ body: { text: conversation.turns.at(-1).parts.at(-1).text } }),
      async send({ body }, { onDelta, signal }) {
        signal.throwIfAborted();
        if (++attempts === 1) throw new LLMError("RateLimitError", "slow down", { retry_after: 0.01 });
        for (const delta of [body.text, "!"]) onDelta?.({ block_index: 0, block_type: "text", delta });
        const usage = { input_tokens: 3, output_tokens: 2 };
        return { content: [{ type: "text", text: body.text + "!" }], finish_reason: "stop", usage };
      },
      toError: (error) => toLLMError(error),
      listModels: () => Promise.resolve([{ id: "echo-1" }]),
    };
  },
};

export const module = { id: "provider-echo", type: "provider", config_schema: providerConfigSchema(DEFINITION) };
export const mount = (coordinator, config) => mountProvider(coordinator, config, DEFINITION);
`;

for (const tier of TIERS) {
  Deno.test(`a provider on mountProvider answers, retries and reports its cost in tier ${tier}`, async () => {
    const { run, entries } = await runWithFiles(tier, { "provider.js": PROVIDER }, {
      providers: [{
        module: "provider-echo",
        source: "./provider.js",
        config: { api_key: "sk-own-0123456789" },
      }],
    });
    assertEquals([run.status, run.output_text, run.error], ["completed", "go!", null]);
    assertEquals([run.usage.input_tokens, run.usage.cost_usd], [3, "0.000005"]);
    const [retry, ...more] = entries.filter(({ event }) => event === "provider:retry");
    assertEquals([retry?.data.provider, retry?.data.error_type, more.length], ["echo", "RateLimitError", 0]);
  });

  Deno.test(`a provider without its key is skipped with the reason in tier ${tier}`, async () => {
    const providers = [{ module: "provider-echo", source: "./provider.js" }, "provider-mock"];
    const { run, entries } = await runWithFiles(tier, { "provider.js": PROVIDER }, { providers });
    assertEquals(run.status, "completed");
    const skipped = entries.find(({ event }) => event === "module:skipped");
    assertEquals(
      skipped?.data.message,
      "Cannot use provider-echo without a key: state the key as api_key in its config, such as ${ECHO_KEY}; keys are " +
        "created at https://example.com/keys",
    );
  });
}
