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
export const MODELS: readonly KnownModel[] = [
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

/** What a model accepts. */
interface ModelTraits {
  /** Thinking: a token budget, the model's own decision, or both. */
  readonly thinking: "none" | "budget" | "both" | "adaptive";
  /** Whether it thinks unless a request switches thinking off. */
  readonly thinks_by_default: boolean;
  /** What switches thinking off; undefined: nothing. Only models with `disabled` can be forced to a call. */
  readonly thinking_off: "disabled" | "between_tools" | undefined;
  /** Whether it accepts `temperature` and `top_p`. */
  readonly sampling: boolean;
  /** Whether it accepts `output_config.effort`. */
  readonly effort: boolean;
  /** Whether it accepts `output_config.format`. */
  readonly structured_outputs: boolean;
}

/**
 * Returns what a model accepts, by the version in its id. Ids without a version are those of newer models.
 */
export function traitsOf(id: string): ModelTraits {
  const version = versionOf(id);
  const adaptive_only = version >= 4.7 || id.includes("mythos");
  return {
    thinking: adaptive_only ? "adaptive" : version >= 4.6 ? "both" : version >= 3.7 ? "budget" : "none",
    thinks_by_default: id.includes("claude") && version >= 5 && version < Infinity, // not those of other vendors
    thinking_off: /sonnet-5[-.]5/.test(id)
      ? "between_tools"
      : /fable|mythos|opus-5[-.]5/.test(id)
      ? undefined
      : "disabled",
    sampling: !adaptive_only,
    effort: version >= 4.6 || /opus-4-5/.test(id),
    structured_outputs: version >= 4.5 || /opus-4-1/.test(id),
  };
}

/**
 * Returns `4.5` for `claude-sonnet-4-5-20250929`, `3.7` for `claude-3-7-sonnet-latest`; infinity without a
 * version.
 */
function versionOf(id: string): number {
  const [, major, minor = "0"] = /-(\d{1,2})(?:[-.](\d{1,2}))?(?=$|[-@.:])/.exec(id) ?? [];
  return major === undefined ? Infinity : Number(`${major}.${minor}`);
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
  load: async (settings) => (await import("./backend.ts")).createBackend(settings),
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
