/** `provider-openai`: models of OpenAI and of servers with its API, through Responses or Chat Completions. */
import type { Coordinator, JsonObject, ModuleInfo, MountReturn, Prices } from "preamp/base";
import {
  type KnownModel,
  mountProvider,
  providerConfigSchema,
  type ProviderDefinition,
} from "preamp/provider";

/** Input tokens above which a request to a large model costs more. */
const LONG_TOKENS = 272_000;

/**
 * Models that are not retired, as of 2026-11-22. Prices: input, output, cached input, and cache writes where
 * they are billed, in US dollars per million tokens.
 */
const MODELS: readonly KnownModel[] = [
  { id: "gpt-6.2-astra", ...large("8 40 0.4 10", "16 60 0.8 20") },
  { id: "gpt-6.2-sol", ...large("2 10 0.1 2.5", "4 15 0.2 5") },
  { id: "gpt-6-astra", ...large("10 50 1 12.5", "20 75 2 25") },
  { id: "gpt-6.1-sol", ...large("2 10 0.1 2.5", "4 15 0.2 5") },
  { id: "gpt-6.1-terra", ...large("1 5 0.05 1.25", "2 7.5 0.1 2.5") },
  { id: "gpt-6-sol", ...large("2 10 0.2 2.5", "4 15 0.4 5") },
  { id: "gpt-6-luna", ...large("0.1 0.5 0.01 0.125", "0.2 0.75 0.02 0.25") },
  { id: "gpt-5.6-sol", ...large("4 20 0.4 5", "8 30 0.8 10") },
  { id: "gpt-5.6-terra", ...large("2 12 0.2 2.5", "4 18 0.4 5") },
  { id: "gpt-5.6-luna", ...large("0.2 1.2 0.02 0.25", "0.4 1.8 0.04 0.5") },
  { id: "gpt-5.5", ...large("5 30 0.5", "10 45 1") },
  { id: "gpt-5.5-pro", ...large("30 180", "60 270") },
  { id: "gpt-5.4", ...large("2.5 15 0.25", "5 22.5 0.5") },
  { id: "gpt-5.4-pro", ...large("30 180", "60 270") },
  { id: "gpt-5.4-mini", ...gpt5("0.75 4.5 0.075") },
  { id: "gpt-5.4-nano", ...gpt5("0.2 1.25 0.02") },
  { id: "gpt-5.3-codex", ...gpt5("1.75 14 0.175") },
  { id: "gpt-5.2", ...gpt5("1.75 14 0.175") },
  { id: "gpt-5.2-pro", ...gpt5("21 168") },
  { id: "gpt-5.1", ...gpt5("1.25 10 0.125") },
  { id: "gpt-5", ...gpt5("1.25 10 0.125") },
  { id: "gpt-5-mini", ...gpt5("0.25 2 0.025") },
  { id: "gpt-5-nano", ...gpt5("0.05 0.4 0.005") },
  { id: "gpt-5-pro", ...gpt5("15 120") },
  { id: "o3", ...sized(200_000, 100_000, "2 8 0.5") },
  { id: "o3-pro", ...sized(200_000, 100_000, "20 80") },
  { id: "gpt-4.1", ...sized(1_047_576, 32_768, "2 8 0.5") },
  { id: "gpt-4.1-mini", ...sized(1_047_576, 32_768, "0.4 1.6 0.1") },
  { id: "gpt-4o-2024-05-13", ...sized(128_000, 4096, "5 15") },
  { id: "gpt-4o", ...sized(128_000, 16_384, "2.5 10 1.25") },
  { id: "gpt-4o-mini", ...sized(128_000, 16_384, "0.15 0.6 0.075") },
];

type Facts = Omit<KnownModel, "id">;

function large(prices: string, long: string): Facts {
  return {
    ...sized(1_050_000, 128_000, prices),
    long_prices: { above_tokens: LONG_TOKENS, prices: pricesOf(long) },
  };
}

function gpt5(prices: string): Facts {
  return sized(400_000, 128_000, prices);
}

function sized(context_window: number, max_output_tokens: number, prices: string): Facts {
  return { context_window, max_output_tokens, prices: pricesOf(prices) };
}

function pricesOf(text: string): Prices {
  const [input = "", output = "", cache_read, cache_write] = text.split(" ");
  return {
    input,
    output,
    ...(cache_read === undefined ? {} : { cache_read }),
    ...(cache_write === undefined ? {} : { cache_write }),
  };
}

const DEFINITION: Omit<ProviderDefinition, "load"> = {
  id: "openai",
  display_name: "OpenAI",
  credential: {
    env_vars: ["OPENAI_API_KEY"],
    url: "https://platform.openai.com/api-keys",
    optional: isOtherServer,
  },
  vendor_url: "https://api.openai.com",
  base_url_env_vars: ["OPENAI_BASE_URL"],
  // a model may reason for minutes without sending anything
  defaults: {
    model: "gpt-6.1-terra",
    context_window: 32_768,
    max_output_tokens: 32_000,
    idle_timeout_s: 300,
  },
  models: MODELS,
  settings: {
    api: {
      type: "string",
      enum: ["responses", "chat"],
      description: "The API to use; default: responses, and chat when base_url is set.",
    },
    reasoning_summary: {
      type: "string",
      enum: ["auto", "concise", "detailed", "none"],
      default: "auto",
      description: "Detail of the reasoning that is streamed as thinking (responses).",
    },
    parallel_tool_calls: {
      type: "boolean",
      description: "Whether the model may make several calls at once; default: the API's.",
    },
    headers: {
      type: "object",
      additionalProperties: { type: "string" },
      description: "Further headers of each request, such as OpenAI-Project.",
    },
  },
  config_fields: [
    {
      id: "base_url",
      display_name: "Address",
      prompt: "Address of another server with this API, such as http://localhost:1234/v1",
      required: false,
    },
  ],
};

/** Maximum tokens of an answer of a model that another server has. */
const OTHER_MAX_OUTPUT_TOKENS = 4096;

export const module: ModuleInfo = {
  id: "provider-openai",
  name: "OpenAI",
  version: "1.0.0",
  type: "provider",
  mount_point: "providers",
  description: "Models of OpenAI and of servers with its API (Responses, Chat Completions).",
  config_schema: providerConfigSchema({ ...DEFINITION, load: () => Promise.reject() }),
};

/** Mounts the provider as `openai`; without a key it is skipped, unless `base_url` names another server. */
export function mount(coordinator: Coordinator, config: JsonObject = {}): Promise<MountReturn> {
  return mountProvider(coordinator, config, definitionFor(coordinator, config));
}

function isOtherServer({ base_url }: JsonObject): boolean {
  return base_url !== undefined && base_url !== null;
}

/** Other servers may ignore response formats, so the loop describes them in words, too. */
function definitionFor({ session_id }: Coordinator, config: JsonObject): ProviderDefinition {
  const other = isOtherServer(config);
  const defaults = other
    ? { ...DEFINITION.defaults, max_output_tokens: OTHER_MAX_OUTPUT_TOKENS }
    : DEFINITION.defaults;
  const own = ["pdf", "thinking", "structured_output", "prompt_caching"];
  return {
    ...DEFINITION,
    defaults,
    capabilities: ["vision", ...(other ? [] : own)],
    load: async (settings) => (await import("../ai-sdk/openai.ts")).createBackend(settings, session_id),
  };
}
