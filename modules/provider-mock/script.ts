/** The entries of a script: their types and their JSON Schema. */
import { type JsonObject, type JsonSchema, LLM_ERROR_TYPES, type LLMErrorType } from "preamp/base";

/** A tool call of an entry. */
export interface ScriptedCall {
  name: string;
  /** An object, or text to simulate a model whose arguments are not JSON; default `{}`. */
  arguments?: JsonObject | string | null;
  /** Default: the next of `call_1`, `call_2`, … */
  id?: string;
}

/** The failure of an entry; it comes after the entry's other content. */
export interface ScriptedError {
  type: LLMErrorType;
  message: string;
  status_code?: number;
  retryable?: boolean;
  /** Seconds. */
  retry_after?: number;
  /** Of a `ContextLengthError`: input tokens that the model takes. */
  limit_tokens?: number;
  /** Of a `ContextLengthError`: input tokens of the request. */
  requested_tokens?: number;
}

/** One entry of the script. */
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

/** JSON Schema of {@link ScriptEntry}. */
export const ENTRY_SCHEMA: JsonSchema = {
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
