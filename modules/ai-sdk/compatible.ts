/** Servers with OpenAI's Chat Completions API, through `@ai-sdk/openai-compatible`. */
import { OpenAICompatibleChatLanguageModel } from "@ai-sdk/openai-compatible";
import { isObject, type JsonObject } from "preamp/base";
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

/** The package reads no cache writes. */
function readUsage({ prompt_tokens_details: details }: JsonObject): Partial<AnswerUsage> {
  const written = isObject(details) ? details.cache_write_tokens : undefined;
  return typeof written === "number" && written > 0 ? { cache_write_tokens: written } : {};
}

/** Returns the backend of a server with this API. */
export function createBackend(settings: ProviderSettings, default_url: string, key: string): Backend {
  return aiSdkBackend(compatibleVendor(settings, default_url, key));
}
