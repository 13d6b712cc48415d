/** The settings that all providers share: their JSON Schema, and reading them from a config. */
import { readConfig } from "../config.ts";
import type { JsonObject, JsonSchema } from "../json.ts";
import { PRICES_SCHEMA } from "../prices.ts";
import type { ProviderDefinition, ProviderSettings } from "./definition.ts";

const COUNT: JsonSchema = { type: "integer", minimum: 1 };
const SECONDS: JsonSchema = { type: "number", exclusiveMinimum: 0 };

const COMMON: Readonly<Record<string, JsonSchema>> = {
  priority: { type: "number", description: "Lower is preferred; default 100." },
  temperature: { type: "number", minimum: 0 },
  top_p: { type: "number", minimum: 0, maximum: 1 },
  reasoning_effort: { type: "string", minLength: 1, description: "Such as low, medium, high." },
  thinking_budget: { type: "integer", minimum: 0, description: "Tokens for reasoning." },
  prices: PRICES_SCHEMA,
  context_window: { ...COUNT, description: "Window of the model, in tokens; needed for unknown models." },
  models: {
    type: "array",
    description: "Models that the module does not know, or knows differently.",
    items: {
      type: "object",
      required: ["id"],
      properties: {
        id: { type: "string", minLength: 1 },
        display_name: { type: "string" },
        context_window: COUNT,
        max_output_tokens: COUNT,
        prices: PRICES_SCHEMA,
      },
    },
  },
  max_retries: { type: "integer", minimum: 0, default: 2, description: "Attempts after the first one." },
  timeout_s: { ...SECONDS, default: 600, description: "Seconds of one attempt." },
  max_concurrent: { type: "integer", minimum: 0, default: 0, description: "Concurrent calls; 0 = no limit." },
  min_delay_ms: {
    type: "integer",
    minimum: 0,
    default: 0,
    description: "From one call's start to the next.",
  },
  max_response_bytes: { ...COUNT, default: 33_554_432 },
  raw: { type: "boolean", default: false, description: "Adds bodies to llm:request and llm:response." },
};

/**
 * Returns the JSON Schema of a provider's config: the common settings and the definition's own. In it,
 * `env_vars` of `api_key` and `base_url` name the variables from which the runtime fills in a missing value.
 */
export function providerConfigSchema(definition: ProviderDefinition): JsonSchema {
  const { defaults, credential, base_url_env_vars = [], settings } = definition;
  const api_key: JsonSchema = {
    type: "string",
    minLength: 1,
    ...(credential
      ? {
        description: `Default: the variable ${credential.env_vars.join(" or ")}.`,
        env_vars: [...credential.env_vars],
      }
      : { description: "Key of the API." }),
  };
  return {
    type: "object",
    properties: {
      model: { type: "string", minLength: 1, default: defaults.model },
      api_key,
      base_url: {
        type: "string",
        minLength: 1,
        description: `Address of the API; default: ${
          [...base_url_env_vars.map((name) => `the variable ${name}`), "the vendor's own"].join(", else ")
        }.`,
        ...(base_url_env_vars.length > 0 ? { env_vars: [...base_url_env_vars] } : {}),
      },
      max_output_tokens: {
        ...COUNT,
        description: `Default ${defaults.max_output_tokens} or the model's maximum.`,
      },
      first_byte_timeout_s: { ...SECONDS, default: defaults.first_byte_timeout_s ?? 120 },
      idle_timeout_s: { ...SECONDS, default: defaults.idle_timeout_s ?? 30 },
      ...COMMON,
      ...settings,
    },
  };
}

/**
 * Returns the settings of a config with their defaults.
 *
 * @throws {PreampError} `module_invalid` when a value is invalid; `details` has every problem.
 */
export function readSettings(config: JsonObject, definition: ProviderDefinition): ProviderSettings {
  const settings = readConfig<ProviderSettings>(
    providerConfigSchema(definition),
    config,
    ({ base_url }, refuse) => {
      if (base_url !== undefined && !isAddress(base_url)) {
        refuse(["base_url"], "must be an http or https URL without a user name");
      }
    },
  );
  const { base_url, api_key, models = [] } = settings;
  return {
    ...settings,
    models,
    ...(base_url === undefined ? {} : { base_url: base_url.replace(/\/+$/, "") }),
    ...(api_key === undefined ? {} : { api_key: api_key.trim() }), // a key from a file ends with a line break
    config: settings as unknown as JsonObject,
  };
}

function isAddress(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, username, password, search, hash } = new URL(text);
  return /^https?:$/.test(protocol) && !username && !password && !search && !hash;
}
