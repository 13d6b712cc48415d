/** `provider-xai`: models of xAI, through `@ai-sdk/xai`. Prices as of 2026-11-22. */
import type { Prices } from "preamp/base";
import { modelsOf, moduleOf } from "../ai-sdk/others.ts";

/** Requests of 200,000 tokens and more cost twice as much. */
function doubled({ input, output, cache_read = "0" }: Prices): Prices {
  const twice = (price: string) => String(2 * Number(price));
  return { input: twice(input), output: twice(output), cache_read: twice(cache_read) };
}

export const { module, mount } = moduleOf({
  id: "xai",
  display_name: "xAI",
  env_vars: ["XAI_API_KEY"],
  keys: "https://console.x.ai",
  model: "grok-4.6",
  models: [
    ...modelsOf("grok-4.6 500000 2 6 0.5", "grok-4.5 500000 2 6 0.3", "grok-4.3 1000000 1.25 2.5 0.2")
      .map((model) => ({ ...model, long_prices: { above_tokens: 199_999, prices: doubled(model.prices!) } })),
    ...modelsOf("grok-code-fast-1 256000 0.2 1.5 0.02", "grok-4-fast-reasoning 2000000 0.2 0.5 0.05"),
  ],
  load: async (settings) => {
    const [{ createXai }, { packageBackend }, { ResponsesReader }] = await Promise.all([
      import("@ai-sdk/xai"),
      import("../ai-sdk/package_backend.ts"),
      import("../ai-sdk/wire/responses_reader.ts"),
    ]);
    const facts = { is_chat: false, reader: () => new ResponsesReader() };
    return packageBackend("xai", "https://api.x.ai/v1", createXai, settings, facts);
  },
});
