/** `provider-anthropic`: Claude models through Anthropic's Messages API. */
import type { Coordinator, JsonObject, ModuleInfo, MountReturn } from "preamp/base";
import { mountProvider, providerConfigSchema, type ProviderDefinition } from "preamp/provider";
import { MODELS } from "./models.ts";

const DEFINITION: ProviderDefinition = {
  id: "anthropic",
  display_name: "Anthropic",
  credential: { env_vars: ["ANTHROPIC_API_KEY"], url: "https://platform.claude.com/settings/keys" },
  base_url_env_vars: ["ANTHROPIC_BASE_URL"],
  capabilities: ["vision", "pdf", "thinking", "prompt_caching", "json_schema"],
  defaults: { model: "claude-sonnet-5-5", context_window: 200_000, max_output_tokens: 32_000 },
  models: MODELS,
  load: async (settings) => (await import("./backend.ts")).createBackend(settings),
};

export const module: ModuleInfo = {
  id: "provider-anthropic",
  name: "Anthropic",
  version: "1.0.0",
  type: "provider",
  mount_point: "providers",
  description: "Claude models through Anthropic's Messages API",
  config_schema: providerConfigSchema(DEFINITION),
};

/** Mounts the provider as `anthropic`; without a key it is skipped. */
export function mount(coordinator: Coordinator, config: JsonObject = {}): Promise<MountReturn> {
  return mountProvider(coordinator, config, DEFINITION);
}
