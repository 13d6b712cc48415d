/** `provider-anthropic`: Claude models through Anthropic's Messages API. */
import type { Coordinator, JsonObject, ModuleInfo, MountReturn, Prices } from "preamp/base";
import {
  type KnownModel,
  mountProvider,
  providerConfigSchema,
  type ProviderDefinition,
} from "preamp/provider";

/**
 * Known models, as of 2026-11-22. Prices: input, output, cache write (5 minutes) and cache read, in US
 * dollars per million tokens.
 */
const MODELS: readonly KnownModel[] = [
  { id: "claude-fable-5-2", ...large("8 40 10 0.2") },
  { id: "claude-fable-5-1", ...large("10 50 12.5 0.25") },
  { id: "claude-fable-5", ...large("10 50 12.5 1") },
  { id: "claude-opus-5-5", ...large("4 20 5 0.2") },
  { id: "claude-opus-5", ...large("5 25 6.25 0.5") },
  { id: "claude-opus-4-8", ...large("5 25 6.25 0.5") },
  { id: "claude-opus-4-7", ...large("5 25 6.25 0.5") },
  { id: "claude-opus-4-6", ...large("5 25 6.25 0.5") },
  { id: "claude-opus-4-5", ...small("5 25 6.25 0.5") },
  { id: "claude-sonnet-5-5", ...large("2 10 2.5 0.1") },
  { id: "claude-sonnet-5", ...large("2 10 2.5 0.2") },
  { id: "claude-sonnet-4-6", ...large("3 15 3.75 0.3") },
  { id: "claude-sonnet-4-5", ...small("3 15 3.75 0.3") },
  {
    id: "claude-haiku-5-5",
    ...large("0.1 0.5 0.125 0.01"),
    long_prices: { above_tokens: 100_000, prices: pricesOf("0.5 2.5 0.625 0.05") },
  },
  { id: "claude-haiku-4-5", ...small("1 5 1.25 0.1") },
];

function large(prices: string): Omit<KnownModel, "id"> {
  return { context_window: 1_000_000, max_output_tokens: 128_000, prices: pricesOf(prices) };
}

function small(prices: string): Omit<KnownModel, "id"> {
  return { context_window: 200_000, max_output_tokens: 64_000, prices: pricesOf(prices) };
}

function pricesOf(text: string): Prices {
  const [input = "", output = "", cache_write = "", cache_read = ""] = text.split(" ");
  return { input, output, cache_write, cache_read };
}

const DEFINITION: ProviderDefinition = {
  id: "anthropic",
  display_name: "Anthropic",
  credential: { env_vars: ["ANTHROPIC_API_KEY"], url: "https://platform.claude.com/settings/keys" },
  vendor_url: "https://api.anthropic.com",
  base_url_env_vars: ["ANTHROPIC_BASE_URL"],
  capabilities: ["vision", "pdf", "thinking", "prompt_caching", "json_schema"],
  defaults: { model: "claude-sonnet-5-5", context_window: 200_000, max_output_tokens: 32_000 },
  models: MODELS,
  load: async (settings) => (await import("../ai-sdk/anthropic.ts")).createBackend(settings),
};

export const module: ModuleInfo = {
  id: "provider-anthropic",
  name: "Anthropic",
  version: "1.0.0",
  type: "provider",
  mount_point: "providers",
  description: "Claude models through Anthropic's Messages API.",
  config_schema: providerConfigSchema(DEFINITION),
};

/** Mounts the provider as `anthropic`; without a key it is skipped. */
export function mount(coordinator: Coordinator, config: JsonObject = {}): Promise<MountReturn> {
  return mountProvider(coordinator, config, DEFINITION);
}
