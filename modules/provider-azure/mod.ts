/** `provider-azure`: OpenAI's models on Azure, by its API `v1`, through `@ai-sdk/openai`. */
import { PreampError } from "preamp/base";
import { moduleOf } from "../ai-sdk/others.ts";

export const { module, mount } = moduleOf({
  id: "azure",
  display_name: "Azure OpenAI",
  env_vars: ["AZURE_OPENAI_API_KEY", "AZURE_API_KEY"],
  base_url_env_vars: ["AZURE_OPENAI_ENDPOINT"],
  keys: "https://portal.azure.com",
  model: "gpt-6.1-terra",
  models: [], // a name on Azure is that of a deployment
  capabilities: ["vision", "pdf", "thinking"],
  load: async ({ base_url, api_key = "", ...settings }, session_id) => {
    if (base_url === undefined) {
      const hint =
        "set base_url, or the variable AZURE_OPENAI_ENDPOINT, such as https://NAME.openai.azure.com";
      throw new PreampError("module_invalid", `Cannot use provider-azure without an address: ${hint}`);
    }
    const { createBackend } = await import("../ai-sdk/openai.ts");
    const { headers = {} } = settings.config as { headers?: Record<string, string> };
    return createBackend({
      ...settings,
      base_url: /\/openai\/v1$/.test(base_url) ? base_url : `${base_url}/openai/v1`,
      config: { api: "responses", ...settings.config, headers: { "api-key": api_key, ...headers } },
    }, session_id);
  },
});
