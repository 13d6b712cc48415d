/** `provider-deepseek`: models of DeepSeek, through `@ai-sdk/deepseek`. Prices as of 2026-11-22. */
import { modelsOf, moduleOf } from "../ai-sdk/others.ts";

export const { module, mount } = moduleOf({
  id: "deepseek",
  display_name: "DeepSeek",
  env_vars: ["DEEPSEEK_API_KEY"],
  keys: "https://platform.deepseek.com/api_keys",
  model: "deepseek-v4-flash",
  capabilities: ["thinking"],
  models: modelsOf("deepseek-v4-pro 1000000 0.66 1.98 0.022", "deepseek-v4-flash 1000000 0.22 0.66 0.007"),
  load: async (settings) => {
    const [{ createDeepSeek }, { packageBackend }] = await Promise.all([
      import("@ai-sdk/deepseek"),
      import("../ai-sdk/package_backend.ts"),
    ]);
    return packageBackend("deepseek", "https://api.deepseek.com", createDeepSeek, settings, {
      text_models: /./,
    });
  },
});
