/** The module's config: the entries of a script, the JSON Schema, and the settings with defaults. */
import {
  type JsonObject,
  type JsonSchema,
  LLM_ERROR_TYPES,
  type LLMErrorOptions,
  type LLMErrorType,
  ModelInfo,
  type Prices,
  PRICES_SCHEMA,
  readConfig,
} from "preamp/base";

/** A tool call of an entry. */
export interface ScriptedCall {
  name: string;
  /** An object, or text to simulate a model whose arguments are not JSON; default `{}`. */
  arguments?: JsonObject | string | null;
  /** Default: the next of `call_1`, `call_2`, … */
  id?: string;
}

/** The failure of an entry; it comes after the entry's other content. */
type ScriptedError =
  & { type: LLMErrorType; message: string }
  & Pick<LLMErrorOptions, "status_code" | "retryable" | "retry_after" | "limit_tokens" | "requested_tokens">;

export interface ScriptEntry {
  text?: string;
  thinking?: string;
  tool_calls?: readonly ScriptedCall[];
  /** Missing `input_tokens` and `output_tokens` are estimated. */
  usage?: JsonObject;
  /** Milliseconds before the first delta. */
  delay_ms?: number;
  finish_reason?: string;
  error?: ScriptedError;
}

const TOKENS: JsonSchema = { type: "integer", minimum: 0 };

const USAGE_SCHEMA: JsonSchema = {
  type: "object",
  properties: {
    input_tokens: TOKENS,
    output_tokens: TOKENS,
    total_tokens: TOKENS,
    reasoning_tokens: TOKENS,
    cache_read_tokens: TOKENS,
    cache_write_tokens: TOKENS,
    cost_usd: { type: ["string", "null"], format: "decimal", description: 'US dollars, such as "0.0125"' },
  },
};

const ERROR_SCHEMA: JsonSchema = {
  type: "object",
  properties: {
    type: { enum: [...LLM_ERROR_TYPES], default: "LLMError" },
    message: { type: "string", default: "Scripted failure" },
    status_code: { type: "integer", minimum: 100 },
    retryable: { type: "boolean" },
    retry_after: { type: "number", minimum: 0 },
    limit_tokens: { type: "integer", minimum: 1 },
    requested_tokens: { type: "integer", minimum: 1 },
  },
};

const ENTRY_SCHEMA: JsonSchema = {
  type: "object",
  properties: {
    text: { type: "string" },
    thinking: { type: "string" },
    tool_calls: {
      type: "array",
      items: {
        type: "object",
        required: ["name"],
        properties: {
          name: { type: "string", minLength: 1 },
          arguments: { type: ["object", "string", "null"] },
          id: { type: "string" },
        },
      },
    },
    usage: USAGE_SCHEMA,
    delay_ms: { type: "number", minimum: 0 },
    finish_reason: { type: "string" },
    error: ERROR_SCHEMA,
  },
};

/** The settings of a config, with defaults. */
interface Settings {
  /** Maximum code points of one text delta. */
  chunk_chars: number;
  /** Maximum tokens of request and answer together. */
  context_window: number;
  /** Maximum tokens of an answer; reported, but not enforced. */
  max_output_tokens: number;
  /** The answer after the last entry: the last text again, an error, or the prompt. */
  after: "repeat" | "error" | "echo";
  /** Prices; without them the cost of a call is unknown unless its entry has one. */
  prices?: Prices;
  priority?: number;
}

export interface MockConfig extends Settings {
  /** The answers in order; null: those of the default rule. */
  script: readonly ScriptEntry[] | null;
  models: ModelInfo[];
}

/** The answer after a script without text. */
export const DEFAULT_TEXT = "Mock response";

const MODEL_SCHEMA: JsonSchema = {
  type: "object",
  required: ["id"],
  properties: {
    id: { type: "string", minLength: 1 },
    display_name: { type: "string" },
    context_window: { type: "integer", minimum: 1 },
    max_output_tokens: { type: "integer", minimum: 1 },
    capabilities: { type: "array", items: { type: "string" } },
    defaults: { type: "object" },
  },
};

export const CONFIG_SCHEMA: JsonSchema = {
  type: "object",
  properties: {
    response: { type: "string", description: "The answer to every call." },
    responses: {
      type: "array",
      description: "A script: one entry for each call of the session. A string is {text}.",
      items: { anyOf: [{ type: "string" }, ENTRY_SCHEMA] },
    },
    after: {
      enum: ["repeat", "error", "echo"],
      description: "The answer after the last entry of responses; repeat by default.",
    },
    chunk_chars: { type: "integer", minimum: 1, default: 20 },
    context_window: { type: "integer", minimum: 1, default: 100_000 },
    max_output_tokens: { type: "integer", minimum: 1, default: 4096 },
    models: { type: "array", items: { anyOf: [{ type: "string", minLength: 1 }, MODEL_SCHEMA] } },
    prices: PRICES_SCHEMA,
    priority: { type: "number" },
    model: { type: "string", description: "Same as default_model; the key that other providers use." },
    default_model: {
      type: "string",
      default: "mock-model",
      description: "Id of the model when models is absent.",
    },
    debug: { type: "boolean", description: "Ignored; accepted for plans for other mocks." },
  },
};

/** A config that fits {@link CONFIG_SCHEMA}, with its defaults. */
interface FittingConfig extends Omit<Settings, "after"> {
  response?: string;
  responses?: (string | ScriptEntry)[];
  after?: Settings["after"];
  models?: (string | Partial<ModelInfo> & { id: string })[];
  model?: string;
  default_model: string;
}

/**
 * Returns the settings of a config.
 *
 * @throws {PreampError} `module_invalid` with all problems and their paths, such as
 * `config.responses[1].text`.
 */
export function readMockConfig(config: JsonObject): MockConfig {
  const { response, responses, model, default_model, ...settings } = readConfig<FittingConfig>(
    CONFIG_SCHEMA,
    config,
    ({ response, responses, after }, refuse) => {
      if (responses && response !== undefined) refuse(["response"], "give response or responses, not both");
      if (!responses && after) refuse(["after"], "needs responses, which may be an empty list");
    },
  );
  const { context_window, max_output_tokens, models = [model || default_model || "mock-model"] } = settings;
  const script = responses ?? (response === undefined ? null : [response]);
  return {
    ...settings,
    after: settings.after ?? "repeat",
    script: script && script.map((entry) => typeof entry === "string" ? { text: entry } : entry),
    models: models.map((model) => {
      const fields = typeof model === "string" ? { id: model } : model;
      const capabilities = ["tools", "streaming"];
      return ModelInfo({ context_window, max_output_tokens, capabilities, ...fields });
    }),
  };
}
