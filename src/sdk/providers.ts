/** Providers: the contract with LLM backends. */
import {
  fieldError,
  requireObject,
  requireOneOf,
  requireText,
  requireTexts,
  requireWhole,
} from "./checks.ts";
import type { ContextOverflow } from "./context_overflow.ts";
import { isObject, type JsonObject } from "./json.ts";
import type { ChatRequest, ChatResponse, StreamDelta } from "./messages.ts";
import type { ToolCall } from "./tools.ts";

/** A field of a provider's configuration, for set-up screens. */
export interface ConfigField {
  /** Key in the provider's `config`. */
  id: string;
  /** Name for people. */
  display_name: string;
  /** Kind of input. */
  field_type: "text" | "secret" | "choice" | "boolean";
  /** Question to the person who sets up the provider. */
  prompt: string;
  /** Environment variable that contains the value. */
  env_var?: string | null;
  /** Allowed values of a `choice`. */
  choices?: string[] | null;
  /** Whether the provider needs a value. */
  required: boolean;
  /** Default value. */
  default?: string | null;
  /** Field → value: the field is displayed only when all of them match. */
  show_when?: JsonObject | null;
  /** Whether a model must be chosen first. */
  requires_model: boolean;
}

/**
 * Metadata of a provider. Budgets come from `defaults.context_window` and `defaults.max_output_tokens`, in
 * tokens.
 */
export interface ProviderInfo {
  /** Identifier, such as `anthropic`. */
  id: string;
  /** Name for people. */
  display_name: string;
  /** Environment variables with credentials. */
  credential_env_vars: string[];
  /** Capabilities such as `streaming`, `tools`, `vision`. */
  capabilities: string[];
  /** Default configuration, including the window: `context_window`, `max_output_tokens`. */
  defaults: JsonObject;
  /** Fields of a set-up screen. */
  config_fields: ConfigField[];
}

/** Prices of a model for display; `Usage.cost_usd` has exact costs. */
export interface Pricing {
  /** Price of a million input tokens. */
  input_per_million: number;
  /** Price of a million output tokens. */
  output_per_million: number;
  /** Price of a million input tokens read from the cache; absent when it is not known. */
  cache_read_per_million?: number;
  /** Price of a million input tokens written to the cache; absent when it is not known. */
  cache_write_per_million?: number;
  /** Currency (ISO 4217), such as `USD`. */
  currency: string;
}

const PRICES = [
  "input_per_million",
  "output_per_million",
  "cache_read_per_million",
  "cache_write_per_million",
] as const;

/**
 * Returns prices for display; the default currency is `USD`.
 *
 * @throws {TypeError} when a price is no number, that of input or output is missing, or the currency is not
 * three capitals.
 */
export function Pricing(fields: unknown): Pricing {
  const values: JsonObject = isObject(fields) ? fields : {};
  const { currency = "USD" } = values;
  const pricing: JsonObject = { currency };
  for (const [index, name] of PRICES.entries()) {
    const price = values[name] ?? undefined;
    if (price === undefined && index > 1) continue;
    if (typeof price !== "number" || !Number.isFinite(price)) {
      throw fieldError("Pricing", name, "must be a number", price);
    }
    pricing[name] = price;
  }
  if (typeof currency !== "string" || !/^[A-Z]{3}$/.test(currency)) {
    throw fieldError("Pricing", "currency", "must be three capitals, such as USD", currency);
  }
  return pricing as unknown as Pricing; // checked field by field
}

/** Metadata of a model. */
export interface ModelInfo {
  /** Identifier of the backend. */
  id: string;
  /** Name for people. */
  display_name: string;
  /** Maximum tokens of request and answer together. */
  context_window: number;
  /** Maximum tokens of an answer. */
  max_output_tokens: number;
  /** Capabilities such as `tools`, `vision`, `thinking`. */
  capabilities: string[];
  /** Default configuration of this model. */
  defaults: JsonObject;
  /** Prices for display; absent when they are unknown. */
  pricing?: Pricing;
  /** Other fields, such as `cost_per_input_token`. */
  [key: string]: unknown;
}

/** Options of `complete`. */
export interface CompleteOptions {
  /** Aborts on immediate cancellation and at the run's deadline. */
  signal?: AbortSignal;
  /** Called with each delta of a streamed answer; returns at once and must not throw. */
  onDelta?: (delta: StreamDelta) => void;
  /**
   * Identifies the call. A provider that answers with another provider of the session passes it on, such as a
   * cache or a router: `coordinator.providers.other.complete(request, options)`. Both are then one call,
   * which is counted and logged once, with the usage of the provider that answered.
   */
  call?: object;
  /**
   * Attempts after the first one, of a call of the orchestrator; a provider that retries itself has none.
   * Default: 0.
   */
  max_retries?: number;
  /**
   * For a call of the orchestrator: resolves to a smaller request, after the provider refused the first one
   * as too long. Called once at most.
   */
  shorten?: (overflow: ContextOverflow) => Promise<ChatRequest>;
}

/** An LLM backend. */
export interface Provider {
  /** Mount name. */
  readonly name: string;
  /** Lower is preferred; default 100. */
  readonly priority?: number;
  /** Returns the provider's metadata; synchronous and cheap. */
  getInfo(): ProviderInfo;
  /** Resolves to the available models. */
  listModels(): Promise<ModelInfo[]>;
  /** Answers one request. Rejects with an `LLMError`; other errors are classified. */
  complete(request: ChatRequest, options?: CompleteOptions): Promise<ChatResponse>;
  /** Returns the tool calls of a response; an empty list for an answer without calls. */
  parseToolCalls(response: ChatResponse): ToolCall[];
}

const FIELD_TYPES: readonly ConfigField["field_type"][] = ["text", "secret", "choice", "boolean"];

/**
 * Returns a ConfigField with every default filled in.
 *
 * @throws {TypeError} when `id` is empty, the type unknown, or a choice has no choices.
 */
export function ConfigField(fields: { id: string } & Partial<ConfigField>): ConfigField {
  const field: ConfigField = {
    display_name: fields.id,
    field_type: "text",
    prompt: "",
    env_var: null,
    choices: null,
    required: true,
    default: null,
    show_when: null,
    requires_model: false,
    ...fields,
  };
  requireText("ConfigField", "id", field.id);
  requireOneOf("ConfigField", "field_type", field.field_type, FIELD_TYPES);
  if (field.field_type === "choice" && !field.choices?.length) {
    throw fieldError("ConfigField", "choices", "must list the choices", field.choices);
  }
  return field;
}

/**
 * Returns a ProviderInfo with every default filled in.
 *
 * @throws {TypeError} when `id` is empty or a field has the wrong shape.
 */
export function ProviderInfo(
  fields:
    & { id: string; config_fields?: ({ id: string } & Partial<ConfigField>)[] }
    & Partial<Omit<ProviderInfo, "config_fields">>,
): ProviderInfo {
  const info: ProviderInfo = {
    display_name: fields.id,
    credential_env_vars: [],
    capabilities: [],
    defaults: {},
    ...fields,
    config_fields: (fields.config_fields ?? []).map(ConfigField),
  };
  requireText("ProviderInfo", "id", info.id);
  requireText("ProviderInfo", "display_name", info.display_name);
  requireTexts("ProviderInfo", "credential_env_vars", info.credential_env_vars);
  requireTexts("ProviderInfo", "capabilities", info.capabilities);
  requireObject("ProviderInfo", "defaults", info.defaults);
  return info;
}

/**
 * Returns a ModelInfo with every default filled in.
 *
 * @throws {TypeError} when `id` is empty, a number of tokens is not a positive whole number, or `pricing` is
 * invalid.
 */
export function ModelInfo(
  fields: { id: string; context_window: number; max_output_tokens: number } & Partial<ModelInfo>,
): ModelInfo {
  const { pricing = null, ...given } = fields;
  const info: ModelInfo = { display_name: fields.id, capabilities: [], defaults: {}, ...given };
  if (pricing !== null) info.pricing = Pricing(pricing);
  requireText("ModelInfo", "id", info.id);
  requireText("ModelInfo", "display_name", info.display_name);
  requireWhole("ModelInfo", "context_window", info.context_window, 1);
  requireWhole("ModelInfo", "max_output_tokens", info.max_output_tokens, 1);
  requireTexts("ModelInfo", "capabilities", info.capabilities);
  requireObject("ModelInfo", "defaults", info.defaults);
  return info;
}
