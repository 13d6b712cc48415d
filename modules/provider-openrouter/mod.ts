/** `provider-openrouter`: models of many vendors through OpenRouter, which states the cost of each answer. */
import { moduleOf } from "../ai-sdk/others.ts";

export const { module, mount } = moduleOf({
  id: "openrouter",
  display_name: "OpenRouter",
  env_vars: ["OPENROUTER_API_KEY"],
  keys: "https://openrouter.ai/settings/keys",
  model: "openrouter/auto",
  models: [],
  load: async (settings) => {
    const { createBackend } = await import("../ai-sdk/compatible.ts");
    return createBackend(settings, "https://openrouter.ai/api/v1", "openrouter");
  },
});
