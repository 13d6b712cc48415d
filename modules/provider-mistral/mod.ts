/** `provider-mistral`: models of Mistral, through `@ai-sdk/mistral`. Prices as of 2026-11-22. */
import { modelsOf, moduleOf } from "../ai-sdk/others.ts";

export const { module, mount } = moduleOf({
  id: "mistral",
  display_name: "Mistral",
  env_vars: ["MISTRAL_API_KEY"],
  keys: "https://console.mistral.ai/api-keys",
  model: "mistral-medium-latest",
  models: modelsOf(
    "mistral-medium-latest 262144 1.5 7.5 0.15",
    "mistral-medium-3-5 262144 1.5 7.5 0.15",
    "mistral-large-2512 262144 0.5 1.5 0.05",
    "mistral-small-2603 262144 0.15 0.6 0.015",
    "devstral-2512 262144 0.4 2 0.04",
  ),
  load: async (settings) => {
    const [{ createMistral }, { packageBackend }] = await Promise.all([
      import("@ai-sdk/mistral"),
      import("../ai-sdk/package_backend.ts"),
    ]);
    return packageBackend("mistral", "https://api.mistral.ai/v1", createMistral, settings);
  },
});
