/**
 * What a vendor's module declares, the settings that all providers share, and the facts about models: from
 * the plan's config, else from the module's table, else its defaults.
 */
import { readConfig, type RefuseConfig } from "../config.ts";
import { PreampError } from "../errors.ts";
import { isObject, type JsonObject, type JsonSchema } from "../json.ts";
import { costOf, type Prices, PRICES_SCHEMA } from "../money.ts";
import { type ConfigField, type ModelInfo, Pricing } from "../providers.ts";
import type { Backend, CallSettings, ListedModel } from "./backend.ts";
import type { Usage } from "../messages.ts";

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

/** Settings of a provider, with defaults. Sizes and prices are those of the configured model. */
export interface ProviderSettings
  extends
    Pick<CallSettings, "model" | "temperature" | "top_p" | "reasoning_effort" | "thinking_budget">,
    Partial<Pick<KnownModel, "max_output_tokens" | "context_window" | "prices">>,
    Required<Pick<ProviderDefaults, "first_byte_timeout_s" | "idle_timeout_s">> {
  /** Key of the vendor's API; undefined when the provider works without one. */
  readonly api_key?: string;
  /** Address of the API without a trailing slash; undefined: the vendor's own. */
  readonly base_url?: string;
  /** Preference among providers; lower is preferred. */
  readonly priority?: number;
  /** Models of the config. */
  readonly models: readonly ({ readonly id: string } & Partial<KnownModel>)[];
  /** Attempts after the first one. */
  readonly max_retries: number;
  /** Seconds of one attempt. */
  readonly timeout_s: number;
  /** Concurrent calls with the same key in this process; 0 = no limit. */
  readonly max_concurrent: number;
  /** Milliseconds between the starts of two calls with the same key; 0 = none. */
  readonly min_delay_ms: number;
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
  /** Address of the vendor's API, to which prompts go without another one. */
  readonly vendor_url?: string;
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
  /** Resolves to the backend; called once, at the first call. Imports the vendor's package here. */
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

/** Where a setting of a provider comes from, for messages. */
interface Origin {
  /** Whether the plan states it. */
  readonly stated: boolean;
  /**
   * The variables that the plan names in its place; where the plan does not state it, those from which the
   * runtime fills it in, which it does for built-in modules.
   */
  readonly variables: readonly string[];
}

/**
 * Returns the origin of a setting.
 *
 * @param plan The plan as written, of which a sandbox may know only a part.
 * @param config The config that the module received, for a plan that does not name it, as in a test.
 */
export function originOf(
  setting: "api_key" | "base_url",
  { providers }: JsonObject,
  config: JsonObject,
  { id, module = `provider-${id}`, credential, base_url_env_vars }: ProviderDefinition,
): Origin {
  const all: readonly unknown[] = Array.isArray(providers) ? providers : [];
  const named = all.map((entry) => isObject(entry) ? entry : { module: entry })
    .filter((entry) => entry.module === module);
  const entries: readonly JsonObject[] = named.length > 0 ? named : [{ config }];
  const values = entries.map(({ config }) => String((isObject(config) ? config[setting] : null) ?? "").trim())
    .filter((value) => value !== "");
  if (values.length === 0) {
    const defaults = setting === "api_key" ? credential?.env_vars : base_url_env_vars;
    const is_built_in = entries.every(({ source }) => source === undefined);
    return { stated: false, variables: is_built_in ? defaults ?? [] : [] };
  }
  const names = values.flatMap((value) => [...value.matchAll(/\$\{(\w+)/g)]).map(([, name]) => name!);
  return { stated: true, variables: [...new Set(names)] };
}

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
  min_delay_ms: { type: "integer", minimum: 0, default: 0, description: "Between the starts of two calls." },
  raw: { type: "boolean", default: false, description: "Adds bodies to llm:request and llm:response." },
  // the keys of Amplifier's own plans
  default_model: { type: "string", minLength: 1, description: "Same as model, which comes first." },
  max_tokens: { ...COUNT, description: "Same as max_output_tokens, which comes first." },
  extended_thinking: {
    type: "boolean",
    description: "Same as reasoning_effort high; of Anthropic, a thinking_budget.",
  },
};

/**
 * Returns the JSON Schema of a provider's config: the common settings and the definition's own. In it,
 * `env_vars` of `api_key` and `base_url` name the variables from which the runtime fills in a missing value;
 * `vendor_url` is the address of the API without any.
 */
export function providerConfigSchema(definition: ProviderDefinition): JsonSchema {
  const { defaults, credential, base_url_env_vars = [], vendor_url, settings } = definition;
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
          [...base_url_env_vars.map((name) => `the variable ${name}`), vendor_url ?? "the vendor's own"].join(
            ", else ",
          )
        }.`,
        ...(base_url_env_vars.length > 0 ? { env_vars: [...base_url_env_vars] } : {}),
        ...(vendor_url === undefined ? {} : { vendor_url }),
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
 * @param plan The plan as written; messages name the variables of a value.
 * @throws {PreampError} `module_invalid` when a value is invalid; `details` has every problem.
 */
export function readSettings(
  config: JsonObject,
  definition: ProviderDefinition,
  plan: JsonObject,
): ProviderSettings {
  const schema = providerConfigSchema(definition);
  const settings = readConfig<ProviderSettings>(
    schema,
    withAliases(config, definition.id),
    ({ base_url, api_key = "" }, refuse) => {
      if (base_url !== undefined && !isAddress(base_url)) {
        invalid("base_url", "must be an http or https URL without a user name", refuse);
      }
      const odd = /[^\x20-\x7e]/u.exec(api_key.trim());
      if (odd) {
        invalid(
          "api_key",
          `must be a key, but ${nameOf(odd[0])} at character ${odd.index + 1} is in no key`,
          refuse,
        );
      }
    },
  );
  /** Refuses a setting at its place, or a variable by its name. */
  function invalid(
    setting: "api_key" | "base_url",
    fact: string,
    refuse: RefuseConfig,
  ): void {
    const { variables } = originOf(setting, plan, config, definition);
    if (variables.length === 0) return refuse([setting], fact);
    const message = `Cannot use the variable ${variables.join(" or ")}: ${fact}`;
    throw new PreampError("module_invalid", message);
  }
  const { base_url, api_key, models = [], ...rest } = settings;
  const key = api_key?.trim(); // a key from a file ends with a line break
  return {
    ...rest,
    models,
    ...(base_url === undefined ? {} : { base_url: base_url.replace(/\/+$/, "") }),
    ...(key ? { api_key: key } : {}),
    config: settings as unknown as JsonObject,
  };
}

/** Tokens of thinking for `extended_thinking` of Anthropic, whose older models need a budget. */
const THINKING_BUDGET = 8192;

/** Returns a config with the values of the keys of Amplifier's plans under ours, unless ours are set. */
function withAliases(config: JsonObject, provider: string): JsonObject {
  const { default_model: model, max_tokens: max_output_tokens, extended_thinking: thinks } = config;
  const is_set = config.reasoning_effort !== undefined || config.thinking_budget !== undefined;
  const thinking = provider === "anthropic"
    ? { thinking_budget: thinks ? THINKING_BUDGET : 0 }
    : thinks
    ? { reasoning_effort: "high" }
    : {};
  return {
    ...(model === undefined ? {} : { model }),
    ...(max_output_tokens === undefined ? {} : { max_output_tokens }),
    ...(is_set || typeof thinks !== "boolean" ? {} : thinking),
    ...config,
  };
}

/** Returns a character that no header takes by its code: the key itself must be in no message. */
function nameOf(character: string): string {
  return `U+${character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}`;
}

function isAddress(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, username, password, search, hash } = new URL(text);
  return /^https?:$/.test(protocol) && !username && !password && !search && !hash;
}

/** Facts about one model; `max_output_tokens` is the model's own maximum, undefined for unknown models. */
type ModelFacts =
  & Required<Pick<KnownModel, "display_name" | "context_window" | "capabilities">>
  & { readonly [Field in "max_output_tokens" | "prices" | "long_prices"]: KnownModel[Field] | undefined };

/** Looks up the facts about models of one provider. */
export class ModelTable {
  readonly #settings: ProviderSettings;
  readonly #definition: ProviderDefinition;
  readonly capabilities: readonly string[];

  /** Creates a table; facts of the config win. */
  constructor(settings: ProviderSettings, definition: ProviderDefinition) {
    this.#settings = settings;
    this.#definition = definition;
    this.capabilities = ["streaming", "tools", ...(definition.capabilities ?? [])];
  }

  /**
   * Returns the facts about a model. `context_window` and `prices` of the config are those of its `model`.
   */
  factsOf(model: string): ModelFacts {
    const { context_window, prices, models } = this.#settings;
    const { defaults } = this.#definition;
    const own = model === this.#settings.model;
    const configured = models.find(({ id }) => id === model);
    const known = findKnown(this.#definition.models, model);
    const stated = configured?.prices ?? (own ? prices : undefined);
    const listed = stated === undefined ? known : undefined; // also at another address, such as a gateway's
    return {
      display_name: configured?.display_name ?? (known?.id === model ? known.display_name : undefined) ??
        model,
      context_window: configured?.context_window ?? (own ? context_window : undefined) ??
        known?.context_window ??
        context_window ?? defaults.context_window,
      max_output_tokens: configured?.max_output_tokens ?? known?.max_output_tokens,
      prices: stated ?? listed?.prices,
      long_prices: listed?.long_prices,
      capabilities: [...this.capabilities, ...(known?.capabilities ?? [])],
    };
  }

  /** Returns the maximum tokens of an answer for a request that asks for `requested`, or for no number. */
  outputLimit(model: string, requested: number | undefined): number {
    const { max_output_tokens: configured } = this.#settings;
    const wanted = requested ?? configured ?? this.#definition.defaults.max_output_tokens;
    return Math.min(wanted, this.factsOf(model).max_output_tokens ?? Infinity);
  }

  /** Returns a listed model with its sizes and capabilities. */
  infoOf(model: ListedModel): ModelInfo {
    const facts = this.factsOf(model.id);
    const prices = facts.prices ? { prices: facts.prices, pricing: pricingOf(facts.prices) } : {};
    return {
      ...prices,
      ...model,
      display_name: model.display_name || facts.display_name,
      context_window: model.context_window || facts.context_window,
      max_output_tokens: model.max_output_tokens || this.outputLimit(model.id, undefined),
      capabilities: model.capabilities ?? [...facts.capabilities],
      defaults: model.defaults ?? {},
    };
  }

  /** Returns the cost of a call as a decimal string; null when the price is unknown. */
  costOf(model: string, usage: Omit<Usage, "cost_usd">): string | null {
    const { prices, long_prices } = this.factsOf(model);
    if (long_prices && usage.input_tokens > long_prices.above_tokens) {
      return costOf(usage, long_prices.prices);
    }
    return prices ? costOf(usage, prices) : null;
  }
}

/** Returns prices in US dollars as numbers, for display. */
function pricingOf({ input, output, cache_read, cache_write }: Prices): Pricing {
  return Pricing({
    input_per_million: Number(input),
    output_per_million: Number(output),
    ...(cache_read === undefined ? {} : { cache_read_per_million: Number(cache_read) }),
    ...(cache_write === undefined ? {} : { cache_write_per_million: Number(cache_write) }),
  });
}

/**
 * Suffixes of one version of a model: a date, a number, `latest`. Previews and other models have other
 * prices.
 */
const VERSION = /^[-@](latest|\d{3}|\d{8}|\d{4}-\d{2}-\d{2})$/;

function findKnown(models: readonly KnownModel[], id: string): KnownModel | undefined {
  return models.find((model) => model.id === id) ??
    models.find((model) => id.startsWith(model.id) && VERSION.test(id.slice(model.id.length)));
}
