/** `provider-openai`: models of OpenAI and of servers with its API, through Responses or Chat Completions. */
import type { Coordinator, JsonObject, ModuleInfo, MountReturn } from "preamp/base";
import { mountProvider, providerConfigSchema, type ProviderDefinition } from "preamp/provider";
import { MODELS } from "./models.ts";

const DEFINITION: Omit<ProviderDefinition, "load"> = {
  id: "openai",
  display_name: "OpenAI",
  credential: {
    env_vars: ["OPENAI_API_KEY"],
    url: "https://platform.openai.com/api-keys",
    optional: isOtherServer,
  },
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
  description: "Models of OpenAI and of servers with its API (Responses, Chat Completions)",
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
    load: async (settings) => new (await import("./backend.ts")).OpenAIBackend(settings, session_id),
  };
}
