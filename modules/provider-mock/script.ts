/** The entries of a script: their types, JSON Schema and checks. */
import {
  isObject,
  type JsonObject,
  type JsonSchema,
  LLM_ERROR_TYPES,
  type LLMErrorType,
  Usage,
} from "preamp";
import type { Findings } from "./findings.ts";

/** A tool call of an entry. */
export interface ScriptedCall {
  name: string;
  /** An object, or text to simulate a model whose arguments are not JSON. */
  arguments: JsonObject | string;
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

const ENTRY_KEYS = ["text", "thinking", "tool_calls", "usage", "delay_ms", "finish_reason", "error"] as const;

const TOKEN_KEYS = [
  "input_tokens",
  "output_tokens",
  "total_tokens",
  "reasoning_tokens",
  "cache_read_tokens",
  "cache_write_tokens",
] as const;

/** JSON Schema of an entry's usage. */
export const USAGE_SCHEMA: JsonSchema = {
  type: "object",
  properties: {
    ...Object.fromEntries(TOKEN_KEYS.map((key) => [key, { type: "integer", minimum: 0 }])),
    cost_usd: { type: ["string", "null"], description: 'US dollars, such as "0.0125"' },
  },
};

const ERROR_PROPERTIES = {
  type: { enum: [...LLM_ERROR_TYPES], default: "LLMError" },
  message: { type: "string" },
  status_code: { type: "integer", minimum: 100 },
  retryable: { type: "boolean" },
  retry_after: { type: "number", minimum: 0 },
  limit_tokens: { type: "integer", minimum: 1 },
  requested_tokens: { type: "integer", minimum: 1 },
};

/** JSON Schema of an entry's failure. */
export const ERROR_SCHEMA: JsonSchema = { type: "object", properties: ERROR_PROPERTIES };

/** Returns the entries of a script and adds problems to `findings`. A string is an entry with text only. */
export function readScript(path: string, value: unknown, findings: Findings): ScriptEntry[] {
  if (!Array.isArray(value)) {
    findings.add(path, "must be a list with one entry per call", value);
    return [];
  }
  return value.map((entry, index) => readEntry(`${path}[${index}]`, entry, findings));
}

function readEntry(path: string, value: unknown, findings: Findings): ScriptEntry {
  if (typeof value === "string") return { text: value };
  if (!isObject(value)) {
    findings.add(path, `must be a text or an object with ${ENTRY_KEYS.join(", ")}`, value);
    return {};
  }
  return withoutAbsent<ScriptEntry>({
    text: findings.text(`${path}.text`, value.text),
    thinking: findings.text(`${path}.thinking`, value.thinking),
    tool_calls: readCalls(`${path}.tool_calls`, value.tool_calls, findings),
    usage: readUsage(`${path}.usage`, value.usage, findings),
    delay_ms: findings.number(`${path}.delay_ms`, value.delay_ms, 0),
    finish_reason: findings.text(`${path}.finish_reason`, value.finish_reason),
    error: readError(`${path}.error`, value.error, findings),
  });
}

function readCalls(path: string, value: unknown, findings: Findings): ScriptedCall[] | undefined {
  if (value === undefined) return undefined;
  if (!Array.isArray(value)) {
    findings.add(path, "must be a list of {name, arguments, id?}", value);
    return undefined;
  }
  return value.flatMap((call, index) => readCall(`${path}[${index}]`, call, findings) ?? []);
}

function readCall(path: string, value: unknown, findings: Findings): ScriptedCall | undefined {
  if (!isObject(value)) {
    findings.add(path, "must be an object with name, arguments, id?", value);
    return undefined;
  }
  const name = value.name;
  if (typeof name !== "string" || name === "") {
    findings.add(`${path}.name`, "must be the name of a tool", name);
    return undefined;
  }
  const args = value.arguments ?? {};
  if (!isObject(args) && typeof args !== "string") {
    findings.add(`${path}.arguments`, "must be an object, or the text a model would send", args);
    return undefined;
  }
  const id = findings.text(`${path}.id`, value.id);
  return { name, arguments: args, ...(id ? { id } : {}) };
}

function readUsage(path: string, value: unknown, findings: Findings): JsonObject | undefined {
  if (value === undefined) return undefined;
  if (!isObject(value)) {
    findings.add(path, "must be an object such as {input_tokens: 10, output_tokens: 5}", value);
    return undefined;
  }
  for (const key of TOKEN_KEYS) findings.whole(`${path}.${key}`, value[key], 0);
  try {
    Usage({ cost_usd: value.cost_usd });
  } catch {
    // replaces the SDK's message by one with the path
    findings.add(`${path}.cost_usd`, 'must be a decimal text such as "0.0125"', value.cost_usd);
  }
  return value;
}

function readError(path: string, value: unknown, findings: Findings): ScriptedError | undefined {
  if (value === undefined) return undefined;
  if (!isObject(value)) {
    findings.add(path, `must be an object with ${Object.keys(ERROR_PROPERTIES).join(", ")}`, value);
    return undefined;
  }
  if (value.retryable !== undefined && typeof value.retryable !== "boolean") {
    findings.add(`${path}.retryable`, "must be true or false", value.retryable);
  }
  return withoutAbsent<ScriptedError>({
    type: findings.oneOf(`${path}.type`, value.type, LLM_ERROR_TYPES) ?? "LLMError",
    message: findings.text(`${path}.message`, value.message) ?? "Scripted failure",
    status_code: findings.whole(`${path}.status_code`, value.status_code, 100),
    retryable: typeof value.retryable === "boolean" ? value.retryable : undefined,
    retry_after: findings.number(`${path}.retry_after`, value.retry_after, 0),
    limit_tokens: findings.whole(`${path}.limit_tokens`, value.limit_tokens, 1),
    requested_tokens: findings.whole(`${path}.requested_tokens`, value.requested_tokens, 1),
  });
}

/** Returns the fields whose values are not undefined. */
function withoutAbsent<T extends object>(fields: { [K in keyof T]: T[K] | undefined }): T {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as T;
}
