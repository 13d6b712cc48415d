/** The backend of a vendor whose package needs no more than a key and an address. */
import type { Backend, ProviderSettings } from "preamp/provider";
import { aiSdkBackend } from "./adapter.ts";
import { authorization, classify, functionSchema, listed } from "./openai_facts.ts";
import type { CreateModels } from "./others.ts";
import type { Vendor } from "./vendor.ts";
import { ChatReader } from "./wire/chat_reader.ts";

/** Returns the backend; `facts` differ from those of most vendors. */
export function packageBackend(
  key: string,
  url: string,
  create: CreateModels,
  settings: ProviderSettings,
  facts: Partial<Vendor> = {},
): Backend {
  const { api_key: apiKey = "", base_url: baseURL = url } = settings;
  const headers = authorization(settings);
  return aiSdkBackend({
    key,
    media: /^image\/(jpeg|png|gif|webp)$/,
    is_chat: true,
    reader: () => new ChatReader({ reasoning_in_parts: key === "mistral" }),
    think_tags: true,
    schema: functionSchema,
    model: (id, { fetch }) => create({ apiKey, baseURL, headers, fetch })(id),
    classify,
    models: () => ({ url: `${baseURL}/models`, headers }),
    listed,
    ...facts,
  });
}
