/** What a vendor's module declares: names, key, settings, known models. */
import type { JsonObject, JsonSchema } from "../json.ts";
import type { ConfigField } from "../providers.ts";
import type { Prices } from "../prices.ts";
import type { Backend } from "./backend.ts";

/** A model that a module knows. */
export interface KnownModel {
  /** Id without a version; the ids of its versions, such as `id-20260101` or `id-latest`, mean it too. */
  readonly id: string;
  /** Name for people; default: the id. */
  readonly display_name?: string;
  /** Maximum tokens of request and answer together. */
  readonly context_window: number;
  /** Maximum tokens of an answer. */
  readonly max_output_tokens: number;
  /** Prices in US dollars per million tokens; absent when they are unknown. */
  readonly prices?: Prices;
  /** Prices of requests with more than `above_tokens` tokens, when they differ. */
  readonly long_prices?: { readonly above_tokens: number; readonly prices: Prices };
  /** Capabilities in addition to those of the provider. */
  readonly capabilities?: readonly string[];
}

/** Where a key comes from. */
export interface Credential {
  /** Environment variables, in order of preference. */
  readonly env_vars: readonly string[];
  /** Page on which a key is created. */
  readonly url: string;
  /** Whether the provider works without a key, such as a local server; default false. */
  readonly optional?: boolean | ((config: JsonObject) => boolean);
}

/** Defaults of a provider's settings. */
export interface ProviderDefaults {
  /** Model. */
  readonly model: string;
  /** Window of a model that is not known. */
  readonly context_window: number;
  /** Maximum tokens of an answer, for a request without its own; also the maximum of unknown models. */
  readonly max_output_tokens: number;
  /** Seconds until the first byte of a response; default 120. */
  readonly first_byte_timeout_s?: number;
  /** Seconds between two chunks of a response; default 30. */
  readonly idle_timeout_s?: number;
}

/** Settings of a provider, with defaults. */
export interface ProviderSettings {
  /** Model of requests that do not name one. */
  readonly model: string;
  /** Key of the vendor's API; undefined when the provider works without one. */
  readonly api_key?: string;
  /** Address of the API without a trailing slash; undefined: the vendor's own. */
  readonly base_url?: string;
  /** Preference among providers; lower is preferred. */
  readonly priority?: number;
  /** Sampling temperature. */
  readonly temperature?: number;
  /** Nucleus sampling. */
  readonly top_p?: number;
  /** Reasoning effort, such as `low`. */
  readonly reasoning_effort?: string;
  /** Tokens for reasoning. */
  readonly thinking_budget?: number;
  /** Maximum tokens of an answer, as configured. */
  readonly max_output_tokens?: number;
  /** Window of the model, as configured. */
  readonly context_window?: number;
  /** Prices of the configured model. */
  readonly prices?: Prices;
  /** Models of the config. */
  readonly models: readonly ({ readonly id: string } & Partial<KnownModel>)[];
  /** Attempts after the first one. */
  readonly max_retries: number;
  /** Seconds of one attempt. */
  readonly timeout_s: number;
  /** Seconds until the first byte of a response. */
  readonly first_byte_timeout_s: number;
  /** Seconds between two chunks of a streamed response. */
  readonly idle_timeout_s: number;
  /** Concurrent calls with the same key in this process; 0 = no limit. */
  readonly max_concurrent: number;
  /** Milliseconds between the starts of two calls with the same key; 0 = none. */
  readonly min_delay_ms: number;
  /** Maximum bytes of one response. */
  readonly max_response_bytes: number;
  /** Whether `llm:request` and `llm:response` contain the bodies. */
  readonly raw: boolean;
  /** The whole config with defaults, for settings of one vendor. */
  readonly config: JsonObject;
}

/** Definition of a provider module. */
export interface ProviderDefinition {
  /** Id and mount name, such as `anthropic`. Also the key of a tool's `native_specs`. */
  readonly id: string;
  /** Name for people. */
  readonly display_name: string;
  /** Id of the module, for messages; default `provider-` and the id. */
  readonly module?: string;
  /** Key of the vendor's API; absent when it needs no key. */
  readonly credential?: Credential;
  /** Environment variables with the address of the API, in order of preference; the vendor's names. */
  readonly base_url_env_vars?: readonly string[];
  /** Capabilities in addition to `streaming`, `tools` and `retries`, such as `vision`. */
  readonly capabilities?: readonly string[];
  /** Defaults of the settings. */
  readonly defaults: ProviderDefaults;
  /** Known models. */
  readonly models: readonly KnownModel[];
  /** Settings beyond the common ones, as properties of a JSON Schema. */
  readonly settings?: Readonly<Record<string, JsonSchema>>;
  /** Fields of a set-up screen beyond key and model. */
  readonly config_fields?: readonly ({ id: string } & Partial<ConfigField>)[];
  /** Resolves to the backend; called once, at the first call. Imports the vendor's client here. */
  load(settings: ProviderSettings): Promise<Backend> | Backend;
}

/** Returns whether a provider with this config works only with a key. */
export function needsKey(
  { credential }: Pick<ProviderDefinition, "credential">,
  config: JsonObject,
): boolean {
  const { optional = false } = credential ?? { optional: true };
  return !(typeof optional === "function" ? optional(config) : optional);
}
