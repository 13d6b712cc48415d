/** Servers with OpenAI's Chat Completions API, through `@ai-sdk/openai-compatible`. */
import { OpenAICompatibleChatLanguageModel } from "@ai-sdk/openai-compatible";
import type { JsonObject } from "preamp/base";
import type { AnswerUsage, Backend, ProviderSettings } from "preamp/provider";
import { aiSdkBackend } from "./adapter.ts";
import { authorization, classify, formatOf, functionSchema, listed, noBudget } from "./openai_facts.ts";
import type { Vendor } from "./vendor.ts";
import { ChatReader } from "./wire/chat_reader.ts";

/** Returns a vendor with this API at `base_url` of the settings, else at `default_url`. */
export function compatibleVendor(settings: ProviderSettings, default_url: string, key = "openai"): Vendor {
  const { base_url = default_url, config: { parallel_tool_calls } } = settings;
  const headers = authorization(settings);
  return {
    key,
    media: /^image\/|^application\/pdf$/,
    urls: /^image\//,
    takes_ids: true,
    is_chat: true,
    instructs: true,
    schema: functionSchema,
    states_cost: /(^|\.)openrouter\.ai$/.test(new URL(base_url).hostname),
    model: (id, { fetch }) =>
      new OpenAICompatibleChatLanguageModel(id, {
        provider: `${key}.chat`,
        url: ({ path }) => base_url + path,
        headers,
        fetch,
        includeUsage: true,
        supportsStructuredOutputs: true,
      }),
    options: (call, degradations) => {
      const { is_strict, ...format } = formatOf(call, degradations);
      const { reasoning_effort, thinking_budget } = call;
      if (thinking_budget !== undefined) noBudget(thinking_budget, degradations);
      return {
        ...format,
        providerOptions: {
          [key]: {
            strictJsonSchema: is_strict,
            ...(reasoning_effort === undefined ? {} : { reasoningEffort: reasoning_effort }),
            ...(typeof parallel_tool_calls === "boolean" && call.tools.length > 0
              ? { parallel_tool_calls }
              : {}),
          },
        },
      };
    },
    classify,
    reader: () => new ChatReader(),
    think_tags: true,
    readUsage,
    models: () => ({ url: `${base_url}/models`, headers }),
    listed,
  };
}

/** DeepSeek has its own field for cache reads; xAI and Gemini count reasoning in the total only. */
function readUsage(usage: JsonObject): Partial<AnswerUsage> {
  const { prompt_tokens, completion_tokens, total_tokens, prompt_tokens_details, prompt_cache_hit_tokens } =
    usage;
  const [sent, answered, total] = [prompt_tokens, completion_tokens, total_tokens].map((count) =>
    Number(count ?? 0)
  );
  const written = Number((prompt_tokens_details as JsonObject | null | undefined)?.cache_write_tokens ?? 0);
  return {
    input_tokens: sent! - written,
    output_tokens: Math.max(answered!, total! - sent!),
    ...(written > 0 ? { cache_write_tokens: written } : {}),
    ...(typeof prompt_cache_hit_tokens === "number" ? { cache_read_tokens: prompt_cache_hit_tokens } : {}),
  };
}

/** Returns the backend of a server with this API. */
export function createBackend(settings: ProviderSettings, default_url: string, key: string): Backend {
  return aiSdkBackend(compatibleVendor(settings, default_url, key));
}
