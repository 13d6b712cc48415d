/** `provider-groq`: models of Groq, through `@ai-sdk/groq`. Prices as of 2026-11-22. */
import { modelsOf, moduleOf } from "../ai-sdk/others.ts";

export const { module, mount } = moduleOf({
  id: "groq",
  display_name: "Groq",
  env_vars: ["GROQ_API_KEY"],
  keys: "https://console.groq.com/keys",
  model: "openai/gpt-oss-120b",
  models: modelsOf(
    "openai/gpt-oss-120b 131072 0.15 0.6 0.075",
    "openai/gpt-oss-20b 131072 0.075 0.3 0.0375",
    "llama-3.3-70b-versatile 131072 0.59 0.79",
    "moonshotai/kimi-k2-instruct 131072 1 3 0.5",
    "qwen/qwen3-32b 131072 0.29 0.59",
  ),
  load: async (settings) => {
    const [{ createGroq }, { packageBackend }] = await Promise.all([
      import("@ai-sdk/groq"),
      import("../ai-sdk/package_backend.ts"),
    ]);
    return packageBackend("groq", "https://api.groq.com/openai/v1", createGroq, settings);
  },
});
